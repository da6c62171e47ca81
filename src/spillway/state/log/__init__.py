"""What is committed: the manifest, epoch by epoch, and the state of groups in it.

Contract: an epoch counts if and only if its record exists; records are created exclusively, checked, and
never changed. Start with `manifest`; `record` is one epoch.
"""

from spillway.state.log.group_state import GroupState
from spillway.state.log.manifest import Manifest
from spillway.state.log.manifest_log import ManifestLog
from spillway.state.log.record import Counters, EpochRecord, OwedEpoch

__all__ = ["Counters", "EpochRecord", "GroupState", "Manifest", "ManifestLog", "OwedEpoch"]
