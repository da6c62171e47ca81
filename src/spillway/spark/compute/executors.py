"""The executor of each way."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from spillway.compute import COLUMNS, SPARK, STATEMENTS, ComputePlan
from spillway.spark.compute.columns import ColumnExecutor
from spillway.spark.compute.executor import PlanExecutor, RunContext
from spillway.spark.compute.own_plan import OwnPlanExecutor
from spillway.spark.compute.statements import StatementExecutor

EXECUTORS: Mapping[str, Callable[[RunContext, ComputePlan], PlanExecutor]] = MappingProxyType(
    {COLUMNS: ColumnExecutor, STATEMENTS: StatementExecutor, SPARK: OwnPlanExecutor}
)
