"""The program: signal handlers are set before the commands are imported: that takes most of a second."""

import sys
import traceback
from types import TracebackType

from spillway.cli.interruptible import supervise
from spillway.redaction import redacted


def main() -> None:
    sys.excepthook = _show
    sys.exit(supervise(_command, last=True))


def _command() -> None:
    from spillway.cli.app import command

    command()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A bug keeps its traceback, but libraries may have put secrets into their messages."""
    sys.stderr.write(redacted("".join(traceback.format_exception(kind, error, trace))))
