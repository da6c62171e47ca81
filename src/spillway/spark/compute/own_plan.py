"""Runs Spark's own plan of a view: the joins as they were written, optimised and run by Spark as it likes.

It runs in a session of its own with the settings of the session that was given, so adaptive execution,
broadcast thresholds and the cost-based optimizer are as the user has set them.
"""

from spillway.compute import ComputePlan
from spillway.spark.compute.executor import RunContext, SegmentOutcome, Write
from spillway.spark.compute.segment_sql import own_sql
from spillway.spark.compute.source_tables import SourceTables
from spillway.spark.compute.tagged_jobs import TaggedJobs


class OwnPlanExecutor:
    def __init__(self, context: RunContext, plan: ComputePlan) -> None:
        self._context, self._plan = context, plan
        self._jobs = TaggedJobs(context.spark.sparkContext)
        self._tables = SourceTables(context.spark, context.sources, self._jobs.tag)

    def prepare(self) -> None:
        self._tables.create()

    def run(self, write: Write) -> None:
        try:
            self.prepare()
            with self._jobs.watched(), self._jobs.tagged():
                self._jobs.check()
                write(self._context.spark.newSession().sql(own_sql(self._plan.view, self._tables.name)))
        finally:
            self._tables.drop()

    def outcomes(self) -> list[SegmentOutcome]:
        return []

    def cancel(self) -> None:
        self._jobs.cancel()
