"""Variables in job files: what they give, what is refused, and what is never shown again."""

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spillway.cli.output import print_json
from spillway.errors import JobError, SourceError
from spillway.job import Document, as_written
from spillway.job.environment import Expanded, expanded
from spillway.maintain import FailedRoundEntry
from spillway.manager.journal import Journal
from spillway.redaction import hide, redacted, redacted_values

WHERE = "[sink] path"
PASSWORD = "hunter2 & 'Co'/ü"
VARIABLES = {"DIR": "here", "EMPTY": "", "PASSWORD": PASSWORD}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain $HOME", "plain $HOME"),
        ("a/${DIR}/b", "a/here/b"),
        ("${DIR}${DIR}", "herehere"),
        ("${EMPTY}", ""),
        ("${NONE:-there}", "there"),
        ("${NONE:-}", ""),
        ("${EMPTY:-there}", "there"),
        ("${DIR:-there}", "here"),
        ("$${DIR}", "${DIR}"),
        ("$${", "${"),
        ("$$${DIR}", "$${DIR}"),
    ],
)
def test_what_a_variable_gives(text: str, value: str) -> None:
    assert expanded(text, WHERE, VARIABLES) == value
    assert as_written(expanded(text, WHERE, VARIABLES)) == (value if "$${" in text else text)


@given(st.text())
def test_a_text_without_variables_stays(text: str) -> None:
    assert expanded(text.replace("${", "$${"), WHERE, {}) == text


def test_lists_and_tables() -> None:
    given_ = {"a": ["${DIR}", 1], "b": {"c": "${DIR}"}}
    assert expanded(given_, "[x]", VARIABLES) == {"a": ["here", 1], "b": {"c": "here"}}


@pytest.mark.parametrize("text", ["${", "${}", "${a b}", "x${1A}", "${DIR"])
def test_what_is_no_variable(text: str) -> None:
    with pytest.raises(JobError, match=r"\[sink\] path = .*: write \$\{NAME\} for a variable"):
        expanded(text, WHERE, VARIABLES)


def test_an_unset_variable_is_named_with_its_place(tmp_path: Path) -> None:
    tables = {"view": {"sql": "SELECT 1"}, "sources": {"a": {"format": "x", "options": {"user": "${WHO}"}}}}
    tables["run"] = {"checkpoint": "state"}
    with pytest.raises(
        JobError, match=r"\[sources.a\] options.user: the environment variable WHO is not set"
    ):
        Document(tables, tmp_path, environment={}).run_job()
    with pytest.raises(
        JobError, match=r"^job file job.toml: .* WHO is not set; set it, or write \$\{WHO:-def"
    ):
        Document(tables, tmp_path, Path("job.toml"), {}).check()


def test_an_expanded_text_is_a_plain_one_elsewhere() -> None:
    text = expanded("${DIR}/x", WHERE, VARIABLES)
    assert isinstance(text, Expanded)
    assert (text.written, text.taken) == ("${DIR}/x", {"DIR": "here"})
    copy = pickle.loads(pickle.dumps(text))
    assert (copy, type(copy)) == ("here/x", str)


def test_the_environment_is_not_in_the_representation(tmp_path: Path) -> None:
    assert "hunter2" not in repr(Document({}, tmp_path, environment=VARIABLES))


def test_hidden_values_are_shown_by_name(tmp_path: Path) -> None:
    hide("PASSWORD", PASSWORD)
    for spelling in (PASSWORD, repr(PASSWORD), json.dumps(PASSWORD), "hunter2%20%26%20%27Co%27/%C3%BC"):
        shown = redacted(f"the server refused user=a password={spelling}, twice: {spelling}")
        assert "hunter2" not in shown and shown.count("${PASSWORD}") == 2
    error = SourceError(f"cannot open {PASSWORD}")
    assert (str(error), error.args) == ("cannot open ${PASSWORD}", ("cannot open ${PASSWORD}",))
    assert "hunter2" not in repr(pickle.loads(pickle.dumps(error)))
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(FailedRoundEntry(7.5, f"no {PASSWORD}"))
    assert json.loads((tmp_path / "journal.jsonl").read_text()) == {
        "kind": "failed round",
        "error": "no ${PASSWORD}",
        "time": 7.5,
    }


def test_longer_values_are_hidden_first() -> None:
    hide("SHORT", "abcd")
    hide("LONG", "abcdef")
    assert redacted("abcdef abcd") == "${LONG} ${SHORT}"


def test_what_is_too_ordinary_to_be_hidden() -> None:
    for value in ("", "1", "abc", "true", "False"):
        hide("X", value)
    assert redacted("1 abc true False") == "1 abc true False"
    assert redacted_values({"a": (1, None, "1")}) == {"a": (1, None, "1")}


SECRETS = {
    "view": {"sql": "SELECT * FROM a WHERE a.s <> '${PASSWORD}'"},
    "sources": {"a": {"format": "x", "path": "data/${DIR}", "options": {"key": "${PASSWORD}"}}},
    "run": {"checkpoint": "state", "processors": "${N}", "spill": "${SPILL:-random}"},
    "spark": {"spark.key": "${PASSWORD}"},
}


def test_a_job_with_variables(tmp_path: Path) -> None:
    job = Document(SECRETS, tmp_path, environment={**VARIABLES, "N": "3"}).run_job()
    assert (job.run.processors, job.run.spill) == (3, "random")
    assert job.sources["a"].options == {"key": PASSWORD}
    assert as_written(job.sources["a"].path or "") == str(tmp_path / "data/${DIR}")
    assert job.spark == {"spark.key": PASSWORD}
    assert redacted(job.view.text) == SECRETS["view"]["sql"]
    assert redacted("3 random") == "3 random", "numbers and choices are no secrets"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"N": "hunter2"}, r'\[run\] processors = "\$\{N\}": must be a whole number'),
        ({"N": "3", "SPILL": "hunter2"}, r'\[run\] spill = "\$\{SPILL:-random\}": must be one of'),
    ],
)
def test_a_wrong_value_is_told_by_the_name_of_its_variable(
    tmp_path: Path, variables: dict[str, str], message: str
) -> None:
    with pytest.raises(JobError, match=message) as caught:
        Document(SECRETS, tmp_path, environment=VARIABLES | variables).run_job()
    assert "hunter2" not in str(caught.value)


def test_words_of_a_journal_entry_stay_readable(tmp_path: Path) -> None:
    """A value that is also an ordinary word hides nothing but free texts."""
    hide("WORD", "failed round")
    with Journal(tmp_path / "journal.jsonl") as journal:
        journal.append(FailedRoundEntry(7.5, "the failed round of hunter2"))
    found = json.loads((tmp_path / "journal.jsonl").read_text())
    assert (found["kind"], found["error"]) == ("failed round", "the ${WORD} of hunter2")


def test_keys_of_printed_json_stay(capsys: pytest.CaptureFixture[str]) -> None:
    hide("STORE", "rows")
    print_json({"rows": 2, "path": "a/rows"})
    assert json.loads(capsys.readouterr().out) == {"rows": 2, "path": "a/${STORE}"}
