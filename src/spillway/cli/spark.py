"""A Spark session for a command. To start one takes seconds, so the terminal says so."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.cli.output import STARTING_SPARK, is_verbose, starting

if TYPE_CHECKING:
    from spillway.spark.session import Session


@contextmanager
def spark_session(
    settings: Mapping[str, str], *, log: Path | None = None, shows: bool = True
) -> Iterator["Session"]:
    """A session that ends with the block; `shows`: nobody else says meanwhile that Spark is starting."""
    if shows:
        with starting(STARTING_SPARK):
            session = _started(settings, log)
    else:
        session = _started(settings, log)
    with session:
        yield session


def _started(settings: Mapping[str, str], log: Path | None) -> "Session":
    from spillway.spark.session import Session

    return Session(settings=settings, verbose=is_verbose(), log=log)
