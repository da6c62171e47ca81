"""Where a view stands at a source, as a vector says it, and what makes a source another incarnation."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from spillway.errors import IncarnationError


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """`at` is a place in the changes, in the source's own terms; `of` is the incarnation of each table.

    `mark` is a name of this position that no other has: two histories of a restored source reach equal
    places, but never equal marks.
    """

    at: Any
    of: dict[str, str]
    mark: str = ""

    @staticmethod
    def read(vector: str) -> SourcePosition:
        return SourcePosition(**json.loads(vector))

    @property
    def text(self) -> str:
        return json.dumps({"at": self.at, "of": self.of, "mark": self.mark})


def new_mark() -> str:
    return uuid4().hex


def recreated(table: str) -> IncarnationError:
    """`table` says the kind of source, the table and where it is."""
    return IncarnationError(
        f"{table} is not the table that the view was loaded from: it was recreated, restored or altered; "
        "run spillway maintain with --reload to load the view again"
    )


def restored(source: str) -> IncarnationError:
    """`source` says the kind of source and where it is."""
    return IncarnationError(
        f"{source} and the stored view do not fit together: an older copy of one of them was restored, or "
        "changes are no longer kept for this view; run spillway maintain with --reload to load the view again"
    )
