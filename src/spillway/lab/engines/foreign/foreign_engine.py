"""Flink and Pathway as engines of `bench join`: their environments, programs and what each was given.

Flink and Pathway read text: Flink's Parquet format is not part of its Python package, and Pathway reads
Parquet only as Delta tables. The text files hold the same rows in the same number of files and are written
before the clock starts. Known limit: both engines also write text, so a part of their time is its formatting
and parsing; `notes` of a result says so.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from spillway.lab.engines.data import SHAPES, WARM_UP_ROWS, JoinShape, parquet_row_count, write_warm_up
from spillway.lab.engines.foreign.environment import EngineEnvironment
from spillway.lab.engines.foreign.text_files import write_text_streams
from spillway.lab.engines.live import ARRIVALS_NAME, FEEDER, VISIBLE_NAME, LiveJob
from spillway.lab.engines.result import FLINK, FLINK_BINARY, FLINK_UNCHECKED, PATHWAY
from spillway.spark.jvm import find_java

WARM_UP_RUNS = 3
"""One is not enough: repeated in one process on a busy machine, a job took Flink 13.1, 5.6, 7.1 and 3.5 s,
and Pathway 8.8, 6.0 and 4.4 s."""
_FLINK_ENVIRONMENT = EngineEnvironment(
    "flink", "2.3.0", ("apache-flink==2.3.0",), ((3, 11), (3, 12), (3, 10))
)
_PATHWAY_ENVIRONMENT = EngineEnvironment(
    "pathway", "0.33.0", ("pathway==0.33.0",), ((3, 11), (3, 12), (3, 13), (3, 10))
)


@dataclass(frozen=True, slots=True)
class ForeignEngine:
    """An engine's environment and the program that runs in it."""

    name: str
    environment: EngineEnvironment
    program: str
    options: tuple[str, ...]
    has_header: bool
    needs_java: bool

    def argv(
        self, python: Path, job: Mapping[str, object], *, cores: int, java_home: str | None
    ) -> list[str]:
        """The command; `-I` keeps the program's neighbours here out of its imports."""
        script = Path(__file__).with_name(self.program)
        java = [] if java_home is None else ["--java-home", java_home]
        return [
            str(python), "-I", str(script), json.dumps(job), "--cores", str(cores), *java, *self.options
        ]  # fmt: skip


_ALL = (
    ForeignEngine(
        FLINK, _FLINK_ENVIRONMENT, "flink_join.py", ("--checkpoint-ms", "1000"), False, needs_java=True
    ),
    ForeignEngine(FLINK_UNCHECKED, _FLINK_ENVIRONMENT, "flink_join.py", (), False, needs_java=True),
    ForeignEngine(FLINK_BINARY, _FLINK_ENVIRONMENT, "flink_join.py", (), False, needs_java=True),
    ForeignEngine(PATHWAY, _PATHWAY_ENVIRONMENT, "pathway_join.py", (), True, needs_java=False),
)
FOREIGN: Mapping[str, ForeignEngine] = MappingProxyType({engine.name: engine for engine in _ALL})


def prepare_foreign(
    engine: ForeignEngine,
    shape_name: str,
    data: Path,
    out: Path,
    note: Callable[[str], None],
    *,
    cores: int = 2,
    warm_up: bool = True,
) -> list[str]:
    """Make the environment if need be, write the rows of `data` as text, and return the command."""
    python = engine.environment.ensure(note)
    java_home = str(find_java(os.environ).home) if engine.needs_java else None
    shape = SHAPES[shape_name]
    text = out / "text"
    note(f"writing the rows as text for {engine.name}")
    write_text_streams(data, text / "data", shape.streams, header=engine.has_header)
    if warm_up:
        _write_warm_up(engine, shape, out, WARM_UP_ROWS)
    job = _job(engine.name, shape_name) | {
        "data": str(text / "data"),
        "warm_up": str(text / "warm-up") if warm_up else None,
        "out": str(out / "runs"),
        "rows_in": sum(parquet_row_count(data / stream) for stream in shape.streams),
    }
    return engine.argv(python, job, cores=cores, java_home=java_home)


def prepare_flink_live(
    live: LiveJob, out: Path, note: Callable[[str], None], *, checkpoint_ms: int, warm_up_rows: int
) -> list[str]:
    """The command of Flink under live input, with its environment and files ready."""
    engine = replace(FOREIGN[FLINK], program="flink_live.py", options=("--checkpoint-ms", str(checkpoint_ms)))
    python = engine.environment.ensure(note)
    java_home = str(find_java(os.environ).home)
    text = out / "text" / "waiting"
    write_text_streams(Path(live.waiting), text, live.shape.streams, header=False)
    _write_warm_up(engine, live.shape, out, warm_up_rows)
    job = _job(FLINK, live.shape_name) | {
        "waiting": str(text),
        "warm_up": str(out / "text" / "warm-up"),
        "out": str(out / "runs"),
        "feeder": str(FEEDER),
        "arrivals_name": ARRIVALS_NAME,
        "visible_name": VISIBLE_NAME,
        "drops": live.schedule.drops,
        "interval_seconds": live.schedule.interval_seconds,
        "expected_results": live.expected_results,
        "drain_seconds": live.drain_seconds,
        "rows_in": live.schedule.rows_per_stream * live.schedule.streams,
    }
    return engine.argv(python, job, cores=2, java_home=java_home)


def _job(name: str, shape_name: str) -> dict[str, object]:
    """What every program is told."""
    shape = SHAPES[shape_name]
    return {
        "engine": name,
        "shape": shape_name,
        "streams": shape.streams,
        "schema": shape.schema_sql,
        "view": shape.view_sql,
        "multi_join": name != FLINK_BINARY,
        "warm_up_runs": WARM_UP_RUNS,
    }


def _write_warm_up(engine: ForeignEngine, shape: JoinShape, out: Path, rows: int) -> None:
    write_warm_up(shape, out / "warm-up", rows)
    write_text_streams(out / "warm-up", out / "text" / "warm-up", shape.streams, header=engine.has_header)
