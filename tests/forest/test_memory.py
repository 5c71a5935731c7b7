"""Memory that runs out while ORF3V learns: an exception, and a learner that goes on."""

import subprocess
import sys
import textwrap

import pytest

SCRIPT = """
    import resource
    import numpy as np
    from varifold import ORF3V, to_block

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 300))
    y = (X[:, 0] > 0).tolist()
    block = to_block(X, y)
    model = ORF3V(compression=10_000)
    model.learn_many(block[:100])
    held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + 8_000_000, resource.RLIM_INFINITY))
    try:
        model.learn_many(block[100:])
    except MemoryError as error:
        message = str(error)
    else:
        message = "none"
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    step = model._engine.step
    seen = model.features[0].count
    right = model.predict_many(block) == np.array(y)
    model.learn_many(block[step:])
    print(message)
    print(100 < step < 4000, seen == step, right.mean() > 0.6, model._engine.step)
    model.save("kept")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited by RLIMIT_AS")
def test_no_memory_left_is_an_exception_after_which_learning_goes_on(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    message, facts = done.stdout.splitlines()
    assert message.startswith("no memory was left at step ")
    assert facts == "True True True 4000"
