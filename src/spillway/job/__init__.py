"""Job files and the settings of `run`, `compute` and `maintain`.

Contract: a key is declared once, as a field of its config; parsing, checks, reference and schema come from
there. A mistake is one line that names the file, the key and what to write. Start with `document` and `keys`.
"""

from spillway.job.compute import SPARK_DEFAULTS, check_sink
from spillway.job.cost_file import cache_directory, read_costs, write_costs
from spillway.job.document import (
    ComputeJob,
    Document,
    Job,
    is_compute_job,
    read_compute_job,
    read_document,
    read_job,
    read_maintain_job,
)
from spillway.job.environment import as_written
from spillway.job.keywords import ComputeSettings, RunSettings, compute_config, run_config
from spillway.job.reference import reference_document, reference_markdown
from spillway.job.run import RunConfig
from spillway.job.schema import job_schema
from spillway.job.source_options import format_options, ignored_options
from spillway.job.sources import SINK_FORMATS, SinkSpec, SourceSpec

__all__ = [
    "SINK_FORMATS",
    "SPARK_DEFAULTS",
    "ComputeJob",
    "ComputeSettings",
    "Document",
    "Job",
    "RunConfig",
    "RunSettings",
    "SinkSpec",
    "SourceSpec",
    "as_written",
    "cache_directory",
    "check_sink",
    "compute_config",
    "format_options",
    "ignored_options",
    "is_compute_job",
    "job_schema",
    "read_compute_job",
    "read_costs",
    "read_document",
    "read_job",
    "read_maintain_job",
    "reference_document",
    "reference_markdown",
    "run_config",
    "write_costs",
]
