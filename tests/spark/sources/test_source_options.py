"""The list of known options against those of the running Spark: none that it accepts may be refused."""

from typing import TYPE_CHECKING, Any

import pytest

from spillway.errors import SourceError
from spillway.job.source_options import OPTIONS, STREAM_OPTIONS
from spillway.job.sources import SourceSpec
from spillway.spark.sources.streaming import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Lab

CLASSES = {
    "csv": "org.apache.spark.sql.catalyst.csv.CSVOptions",
    "json": "org.apache.spark.sql.catalyst.json.JSONOptions",
    "xml": "org.apache.spark.sql.catalyst.xml.XmlOptions",
    "parquet": "org.apache.spark.sql.execution.datasources.parquet.ParquetOptions",
    "orc": "org.apache.spark.sql.execution.datasources.orc.OrcOptions",
    "text": "org.apache.spark.sql.execution.datasources.text.TextOptions",
    "avro": "org.apache.spark.sql.avro.AvroOptions",
}
INDEX = "org.apache.spark.sql.execution.datasources.FileIndexOptions"
SOURCE = "org.apache.spark.sql.catalyst.FileSourceOptions"
NOT_LISTED = {"json": {"maxnestingdepth", "maxnumlen", "maxstringlen"}}
"""Options that Spark reads and its own list does not have."""
PATHS = {"path", "paths"}


def companion(spark: "SparkSession", name: str) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)


def listed(spark: "SparkSession", name: str) -> set[str]:
    found, names = companion(spark, name).getAllOptions().iterator(), set()
    while found.hasNext():
        names.add(found.next().lower())
    return names


def of_all_files(spark: "SparkSession") -> set[str]:
    source = companion(spark, SOURCE)
    constants = (getattr(source, name)() for name in dir(source) if name.isupper())
    return listed(spark, INDEX) | {name.lower() for name in constants if isinstance(name, str)}


@pytest.mark.parametrize("source_format", CLASSES)
def test_the_options_are_those_of_the_running_spark(spark: "SparkSession", source_format: str) -> None:
    ours = {name.lower() for name in OPTIONS[source_format]} - {
        name.lower() for name in STREAM_OPTIONS.split()
    }
    theirs = listed(spark, CLASSES[source_format]) | of_all_files(spark)
    assert {name for name in theirs if "." not in name} - ours == set(), "valid options that we would refuse"
    assert ours - theirs - PATHS == NOT_LISTED.get(source_format, set()), "options that Spark does not have"


def test_options_of_streams_are_those_that_spark_reads(spark: "SparkSession") -> None:
    """Each changes what Spark makes of it, or is refused for its value."""
    jvm: Any = spark.sparkContext._jvm
    values = {
        "cleanSource": "delete", "discardCachedInputRatio": "0.5", "fileNameOnly": "true",
        "latestFirst": "true", "maxBytesPerTrigger": "7", "maxCachedFiles": "7", "maxFileAge": "1d",
        "maxFilesPerTrigger": "7", "sourceArchiveDir": "/archive",
    }  # fmt: skip
    assert set(values) == set(STREAM_OPTIONS.split())

    def made(given: dict[str, str]) -> Any:
        options = jvm.org.apache.spark.sql.execution.streaming.runtime.FileStreamOptions
        return options(jvm.PythonUtils.toScalaMap(given))

    accessors = {"maxFileAge": "maxFileAgeMs"}
    for name, value in values.items():
        given = {name: value} | ({"cleanSource": "archive"} if name == "sourceArchiveDir" else {})
        accessor = accessors.get(name, name)
        assert str(getattr(made(given), accessor)()) != str(getattr(made({}), accessor)()), name


def test_a_misspelt_option_of_a_stream_is_refused(lab: "Lab", caplog: pytest.LogCaptureFixture) -> None:
    (lab.directory / "data").mkdir()
    path = str(lab.directory / "data")

    def opened(**options: str) -> None:
        open_source(lab.spark, SourceSpec("a", "csv", path, "k long", options))

    with pytest.raises(
        SourceError, match=r"\[sources\.a\] options: csv has no option heder; did you mean header"
    ):
        opened(heder="true")
    opened(HEADER="true", maxFilesPerTrigger="1")
    assert caplog.text == ""
    opened(ownersNote="x")
    assert "[sources.a] options: csv has no option ownersNote, so Spark ignores it" in caplog.text
