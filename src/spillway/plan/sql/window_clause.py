"""Sliding time windows in FROM: `prices p [RANGE 2 MINUTES]`.

No SQL parser knows this clause. It is found among the tokens of the view and replaced by blanks, so that
positions in messages stay right, and then attached to the table that it follows. It means: the youngest row
of a result is at most the range younger than the row of this input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from spillway.errors import ViewError
from spillway.plan.sql.dialect import SpillwayDialect
from spillway.plan.sql.render import quote

_UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
}
_KEY = "spillway_range_us"
_LONGEST_US = 1 << 60


@dataclass(frozen=True, slots=True)
class RangeClause:
    """One `[RANGE ...]` and where the word before it ends."""

    after: int
    text: str
    range_us: int


def cut_windows(sql: str) -> tuple[str, list[RangeClause]]:
    """The text with blanks in place of every window clause, and the clauses in order."""
    tokens = SpillwayDialect().tokenize(sql)
    clauses = []
    for before, first, second in zip(tokens, tokens[1:], tokens[2:], strict=False):
        kind = second.token_type
        if first.token_type is not TokenType.L_BRACKET or kind not in (TokenType.RANGE, TokenType.ROWS):
            continue
        closing = next(
            (t for t in tokens if t.start > second.start and t.token_type is TokenType.R_BRACKET), None
        )
        if closing is None:
            raise ViewError(f"the window {sql[first.start :]!r} has no closing bracket; write {_EXAMPLE}")
        text = " ".join(sql[first.start : closing.end + 1].split())
        between = [token for token in tokens if second.start < token.start < closing.start]
        if kind is TokenType.ROWS:
            raise ViewError(f"{text}: a join has windows of time only; write {_EXAMPLE}")
        clauses.append(RangeClause(before.end, text, _microseconds(between, text)))
        blank = " " * (closing.end + 1 - first.start)
        sql = sql[: first.start] + blank + sql[closing.end + 1 :]
    return sql, clauses


def attach_windows(select: exp.Expr, clauses: Sequence[RangeClause]) -> None:
    """Attach each clause to the table that it follows."""
    tables = {_end(table): table for table in select.find_all(exp.Table)}
    for clause in clauses:
        table = tables.get(clause.after)
        if table is None or _KEY in table.meta:
            raise ViewError(f"{clause.text} follows no source; write FROM prices AS p {_EXAMPLE}")
        table.meta[_KEY] = clause.range_us


def range_of(table: exp.Expr) -> int | None:
    """The range of the window attached to the table, in microseconds."""
    found: int | None = table.meta.get(_KEY)
    return found


_EXAMPLE = "[RANGE 2 MINUTES]"


def _end(table: exp.Table) -> int:
    alias = table.args.get("alias")
    names = [table.this, *([alias.this] if alias is not None else [])]
    return max(int(name.meta.get("end", -1)) for name in names)


def _microseconds(tokens: Sequence[Token], text: str) -> int:
    if len(tokens) != 2 or tokens[0].token_type is not TokenType.NUMBER:
        raise ViewError(f"{text} is not a window; write {_EXAMPLE}")
    return _whole(tokens[0].text, tokens[1].text, text)


def interval_us(interval: exp.Interval) -> int:
    """The microseconds of `INTERVAL 30 SECONDS`, `INTERVAL '1.5' MINUTE` or `INTERVAL '30 seconds'`."""
    text = quote(interval)
    unit = interval.args.get("unit")
    words = f"{interval.this.name} {'' if unit is None else unit.name}".upper().split()
    if len(words) != 2 or not words[0].replace(".", "", 1).isdecimal():
        raise ViewError(f"{text} is not one number and one unit; write INTERVAL 30 SECONDS")
    return _whole(words[0], words[1], text)


def _whole(number: str, unit: str, text: str) -> int:
    factor = _UNITS.get(unit.upper().removesuffix("S"))
    if factor is None:
        raise ViewError(f"{text}: unknown unit {unit}; known units: {', '.join(f'{u}S' for u in _UNITS)}")
    microseconds = Decimal(number) * factor
    if microseconds != int(microseconds) or not 0 < microseconds < _LONGEST_US:
        raise ViewError(f"{text}: must be a whole number of microseconds, above 0 and below 36000 years")
    return int(microseconds)
