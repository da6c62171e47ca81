"""Stored relations on this machine, for `[compute]`: files, statistics, and the plan without Spark.

Contract: `plan_stored` chooses the plan that `spark.compute` would choose, or says why Spark must be started.
Start with `stored_plan`.
"""

from spillway.catalog.stored.files import relation_files
from spillway.catalog.stored.footers import footer_statistics
from spillway.catalog.stored.resources import TABLE_PAGE_SETTING
from spillway.catalog.stored.statistics_cache import StatisticsCache
from spillway.catalog.stored.stored_plan import plan_stored, timed_report

__all__ = [
    "TABLE_PAGE_SETTING",
    "StatisticsCache",
    "footer_statistics",
    "plan_stored",
    "relation_files",
    "timed_report",
]
