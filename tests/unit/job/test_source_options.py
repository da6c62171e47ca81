"""Options of file sources: a misspelt one is refused with a suggestion, all others pass."""

from pathlib import Path

import pytest

from kit.commands import Call
from spillway.errors import SourceError
from spillway.job.source_options import OPTIONS, ignored_options

WHERE = "[sources.a]"


@pytest.mark.parametrize(
    ("source_format", "name", "meant"),
    [
        ("csv", "heder", "header"),
        ("CSV", "delimeter", "delimiter"),
        ("json", "multiLines", "multiLine"),
        ("parquet", "maxFilesPerTriger", "maxFilesPerTrigger"),
        ("orc", "mergeschemas", "mergeSchema"),
        ("text", "wholeTexts", "wholetext"),
        ("avro", "avroSchemaURI", "avroSchemaUrl"),
    ],
)
def test_a_misspelt_option_is_refused_with_a_suggestion(source_format: str, name: str, meant: str) -> None:
    told = rf"\[sources\.a\] options: {source_format} has no option {name}; did you mean {meant}\?"
    with pytest.raises(SourceError, match=told):
        ignored_options(source_format, ["timeZone", name], WHERE)


@pytest.mark.parametrize("source_format", OPTIONS)
def test_no_known_option_is_refused_whatever_its_case(source_format: str) -> None:
    for name in OPTIONS[source_format]:
        assert ignored_options(source_format, [name, name.lower(), name.upper()], WHERE) == []


def test_what_is_not_ours_to_know_passes() -> None:
    assert ignored_options("delta", ["heder"], WHERE) == []
    assert ignored_options("csv", ["fs.s3a.access.key", "spark.sql.heder"], WHERE) == []
    assert ignored_options("parquet", ["header", "ownersNote"], WHERE) == ["header", "ownersNote"]


def test_explain_refuses_it_without_spark(tmp_path: Path, call: Call) -> None:
    sources = "".join(
        f'[sources.{name}]\nformat = "csv"\npath = "{name}"\nschema = "k long, id long"\n'
        f"options = {{ {option} }}\n"
        for name, option in (("a", 'header = "true"'), ("b", 'heder = "true"'))
    )
    file = tmp_path / "job.toml"
    file.write_text(
        f'[view]\nsql = "SELECT a.id AS p FROM a, b WHERE a.k = b.k"\n{sources}'
        '[run]\ncheckpoint = "state"\n[sink]\npath = "out"\n'
    )
    code, _, error = call("explain", file)
    assert code == 1
    assert error == "error: [sources.b] options: csv has no option heder; did you mean header?\n"
