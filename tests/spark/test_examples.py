"""The examples that need Spark, run from end to end; their results are DuckDB's, as multisets."""

import ast
import json
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from matplotlib import pyplot

from kit.projects import EXAMPLES, copied

Command = Callable[..., tuple[int, str, str]]
Counted = Callable[[pa.Table], Counter[Any]]


def test_orders(command: Command, counted: Counted, tmp_path: Path) -> None:
    example = copied("orders", tmp_path)
    example.script("generate.py")
    code, output, error = command("run", example.job, "--json")
    assert code == 0, error
    summary = json.loads(output)
    assert summary["complete"] and summary["spills"] and summary["results_cleanup"]
    assert max(summary["memory_bytes_peak"]) <= 4 << 20
    rows, results = summary["input_rows"], summary["results_runtime"] + summary["results_cleanup"]
    assert f"{rows:,} rows in, {results:,} results" in example.readme
    data = example.directory / "data"
    with duckdb.connect() as database:
        database.execute(
            f"CREATE VIEW orders AS FROM read_csv('{data}/orders/*', types = {{'amount': 'DECIMAL(10, 2)'}})"
        )
        database.execute(f"CREATE VIEW payments AS FROM '{data}/payments/*.parquet'")
        database.execute(f"CREATE VIEW shipments AS FROM read_json('{data}/shipments/*')")
        expected = counted(database.sql(example.sql).to_arrow_table())
    assert counted(DeltaTable(example.directory / "out").to_pyarrow_table()) == expected
    example.script("ask.py")


def test_star(command: Command, counted: Counted, tmp_path: Path) -> None:
    example = copied("star", tmp_path)
    example.script("generate.py")
    code, output, error = command("compute", example.job, "--json")
    assert code == 0, error
    assert f"{json.loads(output)['rows']:,} rows in " in example.readme
    with duckdb.connect() as database:
        for table in (example.directory / "data").iterdir():
            database.register(table.name, DeltaTable(table).to_pyarrow_table())
        expected = counted(database.sql(example.sql).to_arrow_table())
    assert counted(DeltaTable(example.directory / "out").to_pyarrow_table()) == expected
    example.script("ask.py")


def test_notebook(spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell by cell; what they print, or have as value, is what the file has stored."""
    example = copied("orders", tmp_path)
    monkeypatch.chdir(example.directory)
    monkeypatch.syspath_prepend(example.directory)
    monkeypatch.delitem(sys.modules, "generate", raising=False)
    monkeypatch.setattr(pyplot, "show", pyplot.close)
    space: dict[str, Any] = {"__name__": "__main__"}
    notebook = json.loads((EXAMPLES / "orders" / "orders.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, start=1):
        assert cell["execution_count"] == number, "run all cells of the notebook in order, and save it"
        stored = "".join(text for output in cell["outputs"] for text in _text(output))
        assert _run("".join(cell["source"]), space) == stored.strip()
    assert space["summary"]["spills"] and space["summary"]["results_cleanup"]
    assert any("image/png" in output.get("data", ()) for cell in cells for output in cell["outputs"])


def _text(output: dict[str, Any]) -> list[str]:
    """What a stored output says, save pictures."""
    if output["output_type"] == "stream":
        return list(output["text"])
    return [] if "image/png" in output["data"] else list(output["data"]["text/plain"])


def _run(source: str, space: dict[str, Any]) -> str:
    """Run a cell; what it prints, and the value of its last line if that is an expression."""
    *body, last = ast.parse(source).body
    printed = StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), "cell", "exec"), space)
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
            if value is not None:
                printed.write(repr(value))
        else:
            exec(compile(source, "cell", "exec"), space)
    return printed.getvalue().strip()
