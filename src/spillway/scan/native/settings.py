"""Settings of Spark that decide what it reads; with any other value, Spark itself must read the files.

These are Spark's defaults. A setting that is not listed changes how Spark reads, not what.
"""

from collections.abc import Mapping
from types import MappingProxyType

SPARK_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.caseSensitive": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.binaryAsString": "false",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.fieldId.read.enabled": "false",
        "spark.sql.parquet.int96AsTimestamp": "true",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96TimestampConversion": "false",
        "spark.sql.parquet.mergeSchema": "false",
    }
)
