#!/usr/bin/env python3
"""Version of the library, in one place: meson.build runs this file, everything else imports it."""

__version__ = "0.1.0"

if __name__ == "__main__":
    print(__version__)
