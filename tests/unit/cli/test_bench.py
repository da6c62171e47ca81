"""Every `bench` command calls its benchmark with what that takes, and prints its metrics."""

import json
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

import spillway.lab.bench
from spillway.cli.app import app


@pytest.mark.parametrize(
    ("command", "function"),
    [
        (["join", "--free-run"], "bench_join"),
        (["join", "--engines", "flink,pathway", "--free", "--cold", "--repeats", "2"], "bench_join"),
        (["tree", "--repeats", "1"], "bench_join"),
        (["latency", "--rate", "1000", "--streams", "2", "--engines", "spillway"], "bench_latency"),
        (["epoch", "--epochs", "40"], "bench_epoch"),
        (["start", "--repeats", "1"], "bench_start"),
        (["spill", "--no-pause", "--no-rocksdb", "--shares", "5", "--repeats", "2"], "bench_spill"),
        (["scarce", "--scale", "0.1", "--memory", "8MB", "--deferred"], "bench_scarce"),
        (["maintain", "--indexed"], "bench_maintain"),
        (["compute", "--relations", "3"], "bench_compute"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else value,
)
def test_arguments(command: list[str], function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = getattr(spillway.lab.bench, function)
    metrics: dict[str, Any] = {"bench": command[0], "claims": []}
    called = mock.create_autospec(benchmark, return_value=metrics)
    monkeypatch.setattr(spillway.lab.bench, function, called)
    result = CliRunner().invoke(app, ["bench", *command, "--json"])
    assert result.exit_code == 0, result.exception
    assert called.call_count == 1
    assert json.loads(result.stdout.splitlines()[-1]) == metrics
