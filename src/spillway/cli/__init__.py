"""The command line: one command per file, all with `--json`.

Contract: an error is one line on standard error and a non-zero exit code; with `--json` the last line of
standard output is one JSON object. A command imports what it needs when it is run, so `--help` is quick.
Start with `app`.
"""

from spillway.cli.program import main

__all__ = ["main"]
