"""Processor time counts children that run, and children that have ended; it never goes back."""

import subprocess
import sys

from spillway.lab.engines.processor_time import ProcessorTime, spent

BURN = "import time\nwhile time.process_time() < 0.5: pass\nprint('done', flush=True)\ninput()"


def test_a_child_counts_while_it_runs_and_after_it_has_ended() -> None:
    time = ProcessorTime()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        running = time.seconds()
        child.communicate(b"\n")
    ended = time.seconds()
    assert 0.45 < running < 3.0
    assert running - 0.05 < ended < running + 1.0


def test_a_child_of_before_that_ended_counts_only_for_what_came_after() -> None:
    before = {1: (10.0, 0.0), 2: (8.0, 1.0)}
    assert spent(before, {1: (12.0, 11.0), 3: (0.5, 0.25)}) == 2.0 + 0.5 + 2.25
    assert spent(before, {1: (12.0, 0.0)}) == 2.0  # nobody waited for it
