"""The command line: one command per file, all with `--json`."""

from spillway.cli.app import main

__all__ = ["main"]
