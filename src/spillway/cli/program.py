"""The program: signal handlers are set before the commands are imported: that takes most of a second."""

import sys

from spillway.cli.interruptible import supervise


def main() -> None:
    sys.exit(supervise(_command, last=True))


def _command() -> None:
    from spillway.cli.app import command

    command()
