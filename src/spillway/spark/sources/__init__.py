"""Sources as streaming DataFrames, and the checks that no row of a file is lost or misread.

Contract: a source that cannot work is refused before the first epoch. Start with `streaming`.
"""

from spillway.spark.sources.batch_files import BatchFiles
from spillway.spark.sources.columns import columns_of
from spillway.spark.sources.file_input import FileInput, file_inputs, is_plain, stored_input
from spillway.spark.sources.input_rows import policy_settings
from spillway.spark.sources.log_store import SPARK_DIRECTORY, check_log, log_address, require_log_store
from spillway.spark.sources.native_source import NATIVE_FORMATS
from spillway.spark.sources.source_check import ColumnCheck, FilesOfBatches, SourceCheck
from spillway.spark.sources.streaming import FILE_FORMATS, SourceLike, open_source, source_place
from spillway.spark.sources.text import check_mode, check_options, text_options
from spillway.spark.sources.workload import FORMAT, WorkloadSource

__all__ = [
    "FILE_FORMATS",
    "FORMAT",
    "NATIVE_FORMATS",
    "SPARK_DIRECTORY",
    "BatchFiles",
    "ColumnCheck",
    "FileInput",
    "FilesOfBatches",
    "SourceCheck",
    "SourceLike",
    "WorkloadSource",
    "check_log",
    "check_mode",
    "check_options",
    "columns_of",
    "file_inputs",
    "is_plain",
    "log_address",
    "open_source",
    "policy_settings",
    "require_log_store",
    "source_place",
    "stored_input",
    "text_options",
]
