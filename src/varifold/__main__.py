"""Run the command ``varifold`` as ``python -m varifold``."""

import sys

from varifold.cli import main

if __name__ == "__main__":
    sys.exit(main())
