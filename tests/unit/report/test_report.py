"""The page of a real journal says what the manifest says; anything that is no journal is refused."""

import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kit.commands import Call
from spillway.manager.engine import Engine
from spillway.manager.journal.file import FILE_NAME, read_journal
from spillway.report.checkpoint_report import write_report
from spillway.report.page import ranges
from spillway.report.series import POINTS, memory, productivity, running_time, spill_marks, throughput
from spillway.report.totals import totals

Finished = tuple[Path, Engine]


class Elements(HTMLParser):
    """Collects the elements, identifiers and addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.ids[str(value)] += 1
            if name in ("src", "href", "xlink:href"):
                self.addresses.append(str(value))


@pytest.fixture(scope="module")
def page(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of the finished checkpoint, drawn once, and what was told of it."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    return path, write_report(str(finished[0]), path)


def test_totals_are_those_of_the_manifest(finished: Finished, page: tuple[Path, dict[str, Any]]) -> None:
    counters = finished[1].manifest.counters
    path, told = page
    assert counters.spills > 0
    assert counters.results_cleanup > 0
    for key in ("input_rows", "results_runtime", "results_cleanup", "epochs", "spills"):
        assert told[key] == getattr(counters, key), key
    assert told["restarts"] == 1
    assert told["missing_epochs"] == 0
    assert told["budget_bytes"] == 4 << 20
    assert told["report_bytes"] == path.stat().st_size


def test_the_page_is_whole_and_fetches_nothing(finished: Finished, page: tuple[Path, Any]) -> None:
    engine, text = finished[1], page[0].read_text()
    elements = Elements(text)
    assert elements.tags["svg"] == 5
    assert elements.tags["script"] == elements.tags["link"] == elements.tags["img"] == 0
    assert {"throughput", "memory", "results", "productivity", "phases", "events"} <= set(elements.ids)
    assert [name for name, count in elements.ids.items() if count > 1] == []
    assert all(address.startswith("#") for address in elements.addresses)
    assert {address[1:] for address in elements.addresses} <= set(elements.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(elements.ids)
    assert elements.tags["tr"] == 1 + engine.manifest.counters.spills
    assert "SELECT a &lt; b &amp; c" in text
    for drawing in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ET.fromstring(drawing)


def test_series_follow_the_journal(finished: Finished) -> None:
    directory, engine = finished
    epochs = tuple(read_journal(directory / FILE_NAME))
    time = running_time(epochs)
    assert list(time.begins) == sorted(time.begins)
    assert len(throughput(epochs, time).values) == sum(not epoch.is_cleanup for epoch in epochs)
    lines = memory(epochs, time)
    assert [line.label for line in lines] == ["processor 0", "processor 1"]
    assert max(lines[0].values) <= 4 << 20
    assert len(spill_marks(epochs, time)) == engine.manifest.counters.spills
    groups = productivity(epochs)
    assert sum(group.results for group in groups) == engine.manifest.counters.results_runtime
    # The journal's bytes are what the manifest knows of each group, over all its generations.
    for group in groups:
        assert group.bytes == engine.manifest.groups[group.group].total_bytes


def test_time_without_a_driver_is_left_out(finished: Finished, tmp_path: Path) -> None:
    lines = (finished[0] / FILE_NAME).read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    second = next(n for n, entry in enumerate(entries) if entry["token"] != entries[0]["token"])
    for entry in entries[second:]:
        entry["time"] += 86_400
    late = tmp_path / FILE_NAME
    late.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    time = running_time(tuple(read_journal(late)))
    assert time.begins[second] == time.ends[second - 1] == time.restarts[0]
    assert time.ends[-1] < 86_400


def test_a_long_journal_is_thinned_and_keeps_its_sums(finished: Finished) -> None:
    epochs = tuple(read_journal(finished[0] / FILE_NAME))
    many = epochs * (2 * POINTS // len(epochs) + 1)
    time = running_time(many)
    line = memory(many, time)[0]
    assert len(line.values) == POINTS
    assert max(line.values) == max(memory(epochs, running_time(epochs))[0].values)
    assert line.seconds[-1] == time.ends[-1]
    assert totals(many, time).input_rows == len(many) // len(epochs) * totals(epochs, time).input_rows


def test_rows_that_are_late_or_expired_have_a_plot(finished: Finished, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(finished[0], state)
    entries = [json.loads(line) for line in (state / FILE_NAME).read_text().splitlines()]
    for entry in entries:
        entry.update(late_rows=2, expired_rows=5)
    (state / FILE_NAME).write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    told = write_report(str(state), tmp_path / "page.html")
    assert (told["late_rows"], told["expired_rows"]) == (2 * len(entries), 5 * len(entries))
    assert Elements((tmp_path / "page.html").read_text()).ids["lateness"] == 1


def test_a_journal_without_budget_and_bytes_still_gives_a_page(finished: Finished, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(finished[0], state)
    entries = [json.loads(line) for line in (state / FILE_NAME).read_text().splitlines()]
    for entry in entries:
        for key in ("budget_bytes", "state_bytes", "token", "late_rows", "expired_rows"):
            entry.pop(key)
        for part in entry["processors"]:
            part.pop("group_bytes")
    (state / FILE_NAME).write_text("".join(json.dumps(entry) + "\n" for entry in entries[1:]))
    told = write_report(str(state), tmp_path / "page.html")
    assert (told["budget_bytes"], told["missing_epochs"]) == (None, 1)
    elements = Elements((tmp_path / "page.html").read_text())
    assert (elements.tags["svg"], elements.ids["productivity"]) == (4, 0)


def test_the_command_prints_one_json_object(finished: Finished, tmp_path: Path, call: Call) -> None:
    out = tmp_path / "page.html"
    code, output, error = call("report", finished[0], "--out", out, "--json")
    assert (code, error) == (0, "")
    told: dict[str, Any] = json.loads(output)
    assert told["report"] == str(out)
    assert told["spills"] == finished[1].manifest.counters.spills


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: shutil.rmtree(state), "is not a directory"),
        (lambda state: (state / "query.json").unlink(), "is not a checkpoint: it has no query.json"),
        (lambda state: (state / "query.json").write_text("{}\n{}"), "is corrupted"),
        (lambda state: (state / FILE_NAME).unlink(), "has no journal"),
        (lambda state: (state / FILE_NAME).write_text(""), "is empty: no epoch has completed"),
        (lambda state: insert(state, "\x00garbage"), "line 2 is not a JSON object"),
        (lambda state: insert(state, "[1]"), "line 2 is not a JSON object"),
        (
            lambda state: insert(state, '{"sequence":1}'),
            "line 2 is not an epoch: key 'input_rows' is missing",
        ),
        (lambda state: insert(state, '{"seconds":3}'), "line 2 is not an epoch"),
    ],
)
def test_what_is_no_journal_is_refused_in_one_line(
    finished: Finished,
    tmp_path: Path,
    call: Call,
    spoil: Any,
    message: str,
) -> None:
    state, out = tmp_path / "state", tmp_path / "page.html"
    shutil.copytree(finished[0], state)
    spoil(state)
    code, output, error = call("report", state, "--out", out)
    assert (code, output, len(error.splitlines())) == (1, "", 1)
    assert message in error
    assert not out.exists()


def insert(state: Path, line: str) -> None:
    first, *rest = (state / FILE_NAME).read_text().splitlines()
    (state / FILE_NAME).write_text("\n".join([first, line, *rest]) + "\n")


def test_a_place_that_cannot_be_written_is_refused(finished: Finished, tmp_path: Path, call: Call) -> None:
    code, _, error = call("report", finished[0], "--out", tmp_path / "no" / "page.html")
    assert (code, len(error.splitlines())) == (1, 1)
    assert "cannot be written: No such file or directory" in error


def test_a_remote_checkpoint_has_no_journal(call: Call) -> None:
    code, _, error = call("report", "s3://bucket/state")
    assert (code, len(error.splitlines())) == (1, 1)
    assert "only local ones have a journal" in error


def test_a_line_that_is_being_written_is_left_out(finished: Finished, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(finished[0], state)
    with (state / FILE_NAME).open("a") as journal:
        journal.write('{"sequence":')
    told = write_report(str(state), tmp_path / "page.html")
    assert told["epochs"] == finished[1].manifest.counters.epochs


def test_groups_are_shown_as_ranges() -> None:
    assert ranges([]) == ""
    assert ranges([7, 0, 1, 2, 9]) == "0-2, 7, 9"


def test_the_command_line_does_not_load_matplotlib_before_it_draws() -> None:
    code = "import sys; import spillway.cli.app; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
