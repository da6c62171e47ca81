"""Job files and the settings of `run`, `compute` and `maintain`.

Contract: a mistake is one line that names the file, the key and what to write. Start with `job`.
"""

from spillway.compute import ComputeConfig
from spillway.job.compute import (
    SPARK_DEFAULTS,
    ComputeJob,
    check_sink,
    is_compute_job,
    read_compute_job,
)
from spillway.job.cost_file import cache_directory, read_costs, write_costs
from spillway.job.job import Job, read_job
from spillway.job.maintain import read_maintain_job
from spillway.job.run import RunConfig
from spillway.job.source_options import ignored_options
from spillway.job.sources import SinkSpec, SourceSpec
from spillway.job.table import require_known

__all__ = [
    "SPARK_DEFAULTS",
    "ComputeConfig",
    "ComputeJob",
    "Job",
    "RunConfig",
    "SinkSpec",
    "SourceSpec",
    "cache_directory",
    "check_sink",
    "ignored_options",
    "is_compute_job",
    "read_compute_job",
    "read_costs",
    "read_job",
    "read_maintain_job",
    "require_known",
    "write_costs",
]
