"""Engines under live input: files arrive on a schedule while a query runs, and results are timed.

Contract: a file appears atomically, and when it did is recorded; a result is visible when a reader of the
sink may count on it. Every engine gets the same files at the same moments of its run. Start with `schedule`,
then `live_run`.
"""

from spillway.lab.engines.live.live_run import ARRIVALS_NAME, FEEDER, VISIBLE_NAME, LiveJob
from spillway.lab.engines.live.schedule import Schedule
from spillway.lab.engines.live.waiting_files import expected_sum, write_waiting

__all__ = ["ARRIVALS_NAME", "FEEDER", "VISIBLE_NAME", "LiveJob", "Schedule", "expected_sum", "write_waiting"]
