"""Plays random histories for as long as you like: `make histories MINUTES=60`.

Each pass has another seed. It ends at the first failure, with a history that can be pasted into a test. It
always says how many histories were played.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import SystemRandom

ROOT = Path(__file__).parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Plays random histories of the engine.")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=None, help="of the first pass; the next ones follow")
    chosen = parser.parse_args()
    seed = SystemRandom().randrange(1 << 32) if chosen.seed is None else chosen.seed
    started, played = time.monotonic(), 0
    while (minutes := (time.monotonic() - started) / 60) < chosen.minutes:
        counts, failure = one_pass(seed, chosen.workers)
        played += counts
        minutes = (time.monotonic() - started) / 60
        print(f"seed {seed}: {counts} histories, {played} in all, {minutes:.1f} minutes", flush=True)
        if failure:
            print(failure)
            print(f"seed {seed} failed after {played} histories in {minutes:.1f} minutes")
            return 1
        seed += 1
    print(f"{played} histories in {minutes:.1f} minutes, all exact")
    return 0


def one_pass(seed: int, workers: int) -> tuple[int, str]:
    """How many histories were played, and what was printed if one of them failed."""
    with tempfile.NamedTemporaryFile("r") as counts:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "histories", "--timeout=0"]
        command += ["-p", "no:cacheprovider", f"--numprocesses={workers}", f"--hypothesis-seed={seed}"]
        environment = os.environ | {"HYPOTHESIS_PROFILE": "histories", "SPILLWAY_HISTORIES": counts.name}
        ended = subprocess.run(
            [*command, "tests/property"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        played = sum(map(int, counts.read().split()))
    return played, "" if ended.returncode == 0 else ended.stdout + ended.stderr


if __name__ == "__main__":
    sys.exit(main())
