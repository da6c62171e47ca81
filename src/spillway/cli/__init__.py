"""The command line: one command per file, all with `--json`."""

from spillway.cli.program import main

__all__ = ["main"]
