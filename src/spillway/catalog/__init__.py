"""Plans of jobs without Spark: columns of sources, from given schemas, Parquet footers and Delta logs.

Contract: what is found is what Spark would find; where only Spark can tell, `NeedsSparkError` says why. Start
with `streams`; `stored` is the same for jobs with `[compute]`.
"""

from spillway.catalog.delta import DeltaFeatureError, delta_columns, delta_files, open_delta
from spillway.catalog.job_plan import plan_streams
from spillway.catalog.parquet_footer import parquet_columns
from spillway.catalog.place import check_path, check_settings, local_path
from spillway.catalog.source_files import SourceFiles, list_files
from spillway.catalog.stream_plan import plan_stream_view
from spillway.catalog.streams import known_columns, schema_refusal, stream_columns, wrong_type

__all__ = [
    "DeltaFeatureError",
    "SourceFiles",
    "check_path",
    "check_settings",
    "delta_columns",
    "delta_files",
    "known_columns",
    "list_files",
    "local_path",
    "open_delta",
    "parquet_columns",
    "plan_stream_view",
    "plan_streams",
    "schema_refusal",
    "stream_columns",
    "wrong_type",
]
