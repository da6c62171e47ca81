"""Processor time counts children that run, and children that have ended."""

import subprocess
import sys

from spillway.lab.engines.processor_time import tree_cpu_seconds

BURN = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"


def test_a_child_counts_while_it_runs_and_after_it_has_ended() -> None:
    before = tree_cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = tree_cpu_seconds() - before
        child.communicate(b"\n")
    ended = tree_cpu_seconds() - before
    assert 0.45 < running < 3.0
    assert running - 0.05 < ended < running + 1.0
