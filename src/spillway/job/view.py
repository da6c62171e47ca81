"""The table `[view]`: a query as SQL, and for `run` how its joins are done."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from spillway.errors import JobError
from spillway.job.keys import Key
from spillway.job.kinds import FilePath, KeyPlace, OneOf, Schema, Text, is_list
from spillway.model import View


def _join_kinds() -> tuple[str, ...]:
    from spillway.plan.operators import JOIN_KINDS

    return JOIN_KINDS


@dataclass(frozen=True, slots=True)
class InputTree:
    """Nested lists of input names."""

    type: str = 'nested lists, such as `[["a", "b"], "c"]`'

    def parse(self, value: Any, place: KeyPlace) -> tuple[Any, ...]:
        if not is_list(value) or not _is_shape(value):
            place.refuse(value, 'give nested lists of input names, such as [["a", "b"], "c"]')
        return tuple(value)

    def schema(self) -> Schema:
        return {"type": "array", "items": {"$ref": "#/$defs/joined"}}


JOINED: Schema = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/joined"}}]}
"""A part of a join shape, for the schema."""


@dataclass(frozen=True, slots=True)
class ViewTable:
    """The query. Give `sql` or `file`."""

    sql: Annotated[str | None, Key(Text("SQL"), "The query itself.", unset="read from `file`")] = None
    file: Annotated[str | None, Key(FilePath(), "A file with the query.", unset="none")] = None
    tree: Annotated[
        tuple[Any, ...] | None,
        Key(InputTree(), "Which inputs are joined first, for `run`.", unset="planned"),
    ] = None
    join: Annotated[
        str | None,
        Key(
            OneOf(_join_kinds),
            "How rows are spread over the groups of several joins, for `run`.",
            unset='`"tree"`',
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.sql is None) == (self.file is None):
            raise JobError('[view] needs either sql = "SELECT ..." or file = "view.sql"')

    def view(self, *, streams: bool) -> View:
        """The view; how its joins are done can be said where it runs over streams."""
        if not streams and (self.tree is not None or self.join is not None):
            name = "join" if self.tree is None else "tree"
            raise JobError(f"[view] {name} is for spillway run only; remove it")
        view = View.sql(self._text())
        if self.join is not None:
            view = view.with_join(self.join)
        return view if self.tree is None else view.with_tree(*self.tree)

    def _text(self) -> str:
        if self.sql is not None:
            return self.sql
        assert self.file is not None
        try:
            return Path(self.file).read_text(encoding="utf-8")
        except OSError as error:
            raise JobError(
                f"[view] file {self.file} cannot be read: {error.strerror}; check its path"
            ) from None
        except UnicodeDecodeError:
            raise JobError(f"[view] file {self.file} is not a text in UTF-8; save it as one") from None


def _is_shape(part: object) -> bool:
    return isinstance(part, str) or (isinstance(part, list | tuple) and all(map(_is_shape, part)))
