"""What a processor is told to do in an epoch, and what it reports. Start with `orders`."""

from spillway.state.orders.orders import NO_BOUND, CleanupBatch, Limits, Orders
from spillway.state.orders.report import Files, Report, collected, grown, lineage

__all__ = ["NO_BOUND", "CleanupBatch", "Files", "Limits", "Orders", "Report", "collected", "grown", "lineage"]
