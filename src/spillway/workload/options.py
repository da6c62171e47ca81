"""Reads a workload from the options of a job file or a Spark reader.

`stream`, `rows`, `rowsPerTrigger`, `tupleRange`, `joinRatio`, `partitions`, `rate`, `alternate`, `width`,
`plainKeys`, `seed`, `paced`, `rowsPerTask`; names in any case, as Spark passes them. `joinRatio` is one
number, or `ratio:share[:tupleRange]` by comma ("4:1/3,2:1/3,1:1/3"); `alternate` is `period:factor` or
`first/period:factor` ("600s:10", "300s/600s:10"). An unknown name is refused, because a typing error would
silently give the default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spillway.errors import SourceError
from spillway.workload.workload import Alternation, PartitionClass, Workload

DEFAULT_ROWS_PER_TASK = 250_000  # about 0.2 s of generation and transfer: above Spark's cost of one more task

_NAMES = {
    name.lower(): name
    for name in (
        "stream", "rows", "rowsPerTrigger", "tupleRange", "joinRatio", "partitions",
        "rate", "alternate", "width", "plainKeys", "seed", "paced", "rowsPerTask", "path",
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """One stream of a workload: its length, and how it is handed out."""

    workload: Workload
    stream: str
    rows: int | None  # absent: endless
    rows_per_trigger: int | None  # absent: all that is available
    rows_per_task: int
    paced: bool  # rows become available at the arrival rate, by the clock


def parse_options(options: Mapping[str, str]) -> StreamOptions:
    """Read and check the options; every mistake is a `SourceError` that names the option."""
    given = {}
    for name, text in options.items():
        if name.lower() not in _NAMES:
            known = ", ".join(name for name in _NAMES.values() if name != "path")
            raise SourceError(f"workload: unknown option {name!r}; use one of {known}")
        given[_NAMES[name.lower()]] = str(text).strip()
    if "path" in given:
        raise SourceError("workload: takes no path, because its rows are generated; remove it")
    stream = given.get("stream", "")
    if not stream:
        raise SourceError('workload: option stream is missing; name the stream, for example stream = "a"')
    parameters: dict[str, Any] = {"streams": (stream,)}
    for option, parameter in (("tupleRange", "tuple_range"), ("partitions", "partitions"),
                              ("width", "width_bytes"), ("seed", "seed")):  # fmt: skip
        if option in given:
            parameters[parameter] = _whole(option, given[option], least=0)
    parameters["plain_keys"] = _truth("plainKeys", given.get("plainKeys", "false"))
    if "rate" in given:
        parameters["rate_rows_per_second"] = _number("rate", given["rate"])
    if "joinRatio" in given:
        parameters["classes"] = _classes(given["joinRatio"])
    if "alternate" in given:
        parameters["alternation"] = _alternation(given["alternate"])
    result = StreamOptions(
        workload=Workload(**parameters),
        stream=stream,
        rows=_whole("rows", given["rows"], least=0) if "rows" in given else None,
        rows_per_trigger=_whole("rowsPerTrigger", given["rowsPerTrigger"])
        if "rowsPerTrigger" in given
        else None,
        rows_per_task=_whole("rowsPerTask", given.get("rowsPerTask", str(DEFAULT_ROWS_PER_TASK))),
        paced=_truth("paced", given.get("paced", "false")),
    )
    if result.rows is None and result.rows_per_trigger is None and not result.paced:
        raise SourceError(
            f"workload: stream {stream!r} has no end and its batches no limit; give rows, "
            "rowsPerTrigger or paced"
        )
    return result


def _classes(text: str) -> tuple[PartitionClass, ...]:
    classes = []
    for part in text.split(","):
        ratio, *rest = part.split(":")
        if len(rest) > 2:
            raise _fault("joinRatio", text, "write ratio:share[:tupleRange], for example 4:1/3,2:1/3,1:1/3")
        share = Fraction(1)
        if rest:
            try:
                share = Fraction(rest[0].strip())
            except (ValueError, ZeroDivisionError):
                raise _fault("joinRatio", text, "write a share as 1/3 or 0.25") from None
        own_range = _whole("joinRatio", rest[1]) if len(rest) == 2 else None
        classes.append(PartitionClass(_number("joinRatio", ratio), share, own_range))
    return tuple(classes)


def _alternation(text: str) -> Alternation:
    advice = "write period:factor, for example 600s:10 or 300s/600s:10"
    periods, colon, factor = text.partition(":")
    lengths = [_number("alternate", part.strip().removesuffix("s")) for part in periods.split("/")]
    if not colon or len(lengths) > 2 or min(lengths) <= 0:
        raise _fault("alternate", text, advice)
    first = lengths[0] if len(lengths) == 2 else None
    return Alternation(lengths[-1], _whole("alternate", factor), first)


def _whole(option: str, text: str, least: int = 1) -> int:
    try:
        value = int(text)
    except ValueError:
        raise _fault(option, text, "write a whole number") from None
    if value < least:
        raise _fault(option, text, f"use {least} or more")
    return value


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _fault(option, text, "write a number") from None


def _truth(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _fault(option, text, "write true or false")
    return text.lower() == "true"


def _fault(option: str, text: str, advice: str) -> SourceError:
    return SourceError(f"workload: option {option} = {text!r}: {advice}")
