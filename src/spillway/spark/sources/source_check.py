"""Checks the files of a batch before its rows are read: they must have the columns that the view reads.

Spark reads null for a column that a Parquet or ORC file lacks, and for a cell of a CSV or JSON file that does
not fit its type. Rows with a null key join nothing, so all rows of such a file could be lost silently. Here a
file that lacks a column, or has it with another type, ends the query with an error that names the file. The
epoch has not begun at that point, and a restart checks the same batch again. Text formats refuse records that
do not fit (`text_options`), or count them if the job says so.

Cost: one footer per new file, and one inspection by Spark for each new kind of footer.
Known limit: a JSON file without a column is like one with nulls.
"""

from collections.abc import Sequence
from typing import Protocol
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs
from pyarrow import orc
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from spillway.errors import SourceError
from spillway.spark.sources.file_input import FileInput
from spillway.spark.sources.text import FAIL_FAST, MODE, TEXT_FORMATS

SELF_DESCRIBING = ("parquet", "orc", "avro")
SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"
CORRUPT_RECORD = "columnNameOfCorruptRecord"
_MALFORMED = "_spillway_malformed"


class ColumnCheck:
    """Refuses a file that lacks a column which every file must have, or has it with another type."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._seen: dict[tuple[str, str], dict[str, str]] = {}
        """The columns that Spark finds in files with such a footer."""

    def check_all(self, relation: FileInput, paths: Sequence[str], *, is_inferred: bool) -> None:
        """`is_inferred`: the schema comes from one of the files, so files with the same footer have it
        too."""
        footers = {_footer(relation.format, path) for path in paths}
        if is_inferred and None not in footers and len(footers) < 2:
            return
        for path in paths:
            self.check(relation, path)

    def check(self, relation: FileInput, path: str) -> None:
        stored = self._stored(relation.format, path)
        if stored is None:
            return  # The scan, which is next, reports what is wrong with the file, or is told to ignore it.
        where = f"[sources.{relation.name}] file {unquote(path)}"
        in_path = _partition_columns(path, relation.root)
        remedy = "write the file again with the columns of the others, then run the job again"
        for field in relation.schema.fields:
            name, declared = field.name.lower(), field.dataType.simpleString()
            if name not in relation.needed or name in in_path:
                continue
            found = stored.get(name)
            if found is None and name in relation.required:
                raise SourceError(
                    f"{where} has no column {field.name}, which the view reads; it has "
                    f"{', '.join(stored)}; {remedy}"
                )
            if found is not None and found != declared:
                raise SourceError(f"{where} has {field.name} {found}, expected {declared}; {remedy}")

    def _stored(self, file_format: str, path: str) -> dict[str, str] | None:
        """Name and type of each column of a file, as Spark sees it; None if it cannot be read."""
        footer = _footer(file_format, path)
        if footer is not None and (file_format, footer) in self._seen:
            return self._seen[file_format, footer]
        try:
            schema = self._spark.read.format(file_format).load(unquote(path)).schema
        except PySparkException:
            return None
        columns = {field.name.lower(): field.dataType.simpleString() for field in schema.fields}
        if footer is not None:
            self._seen[file_format, footer] = columns
        return columns


class FilesOfBatches(Protocol):
    """Knows which files are in a batch, before it is run."""

    def of(self, batch_id: int, relation: int, source: int) -> list[str]:
        """The addresses of a relation's files; it is given by its place in the stream and in the log."""
        ...


class SourceCheck:
    """Checks the batches of one query."""

    def __init__(self, spark: SparkSession, files: FilesOfBatches, relations: Sequence[FileInput]) -> None:
        self._spark = spark
        self._files = files
        self._relations = [relation for relation in relations if _is_checked(relation)]
        self._columns = ColumnCheck(spark)

    def malformed_rows(self, batch_id: int) -> int:
        """Refuse a file that does not fit; count records that do not fit, if that is allowed."""
        malformed = 0
        for relation in self._relations:
            paths = self._files.of(batch_id, relation.place, relation.source)
            if relation.format in TEXT_FORMATS:
                malformed += self._count_malformed(relation, paths) if paths else 0
                continue
            for path in paths:
                self._columns.check(relation, path)
        return malformed

    def _count_malformed(self, relation: FileInput, paths: Sequence[str]) -> int:
        """Read the files once more, with the columns that the view reads, and count records that do not
        fit."""
        given = relation.options.get(CORRUPT_RECORD.lower())
        kept = [field for field in relation.schema.fields if field.name != given]
        options = {
            key: value
            for key, value in relation.options.items()
            if key not in ("path", CORRUPT_RECORD.lower())
        }
        options |= {MODE: "PERMISSIVE", CORRUPT_RECORD: _MALFORMED}
        schema = StructType([*kept, StructField(_MALFORMED, StringType())])
        frame = self._spark.read.format(relation.format).options(**options).schema(schema)
        rows = frame.load([unquote(path) for path in paths])
        read = [F.col(f"`{field.name}`") for field in kept if field.name.lower() in relation.needed]
        bad = F.count_if(F.col(_MALFORMED).isNotNull())
        # Spark parses only selected columns, and refuses to select the malformed text alone.
        counted = rows.agg(bad.alias("malformed"), F.max(F.xxhash64(*read, F.col(_MALFORMED)))).first()
        assert counted is not None
        return int(counted["malformed"])


def _is_checked(relation: FileInput) -> bool:
    if relation.format in TEXT_FORMATS:
        return relation.options.get(MODE, "").upper() != FAIL_FAST
    return relation.format in SELF_DESCRIBING


def _partition_columns(path: str, root: str | None) -> frozenset[str]:
    """The columns in the names of a file's directories below the root, in lower case; Spark casts their
    values."""
    file, base = (unquote(urlsplit(text or "").path) for text in (path, root))
    below = base.rstrip("/") + "/"
    if root is None or not file.startswith(below):
        return frozenset()
    directories = file.removeprefix(below).split("/")[:-1]
    return frozenset(name.partition("=")[0].lower() for name in directories if "=" in name)


def _footer(file_format: str, path: str) -> str | None:
    """A file's description of its columns as text, to find files with the same one."""
    try:
        files, name = arrow_fs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
        with files.open_input_file(name) as file:
            if file_format == "orc":
                return str(orc.ORCFile(file).schema)
            if file_format == "parquet":
                footer = pq.ParquetFile(file).metadata
                columns = str(footer.schema).partition("\n")[2]
                return columns + str((footer.metadata or {}).get(SPARK_SCHEMA))
    except (OSError, ValueError, pa.ArrowException):
        return None  # Spark may reach it in other ways.
    return None
