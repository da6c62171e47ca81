"""From a checkpoint directory to its page; a directory that is not a checkpoint is refused first."""

from pathlib import Path
from typing import Any

from spillway.errors import CheckpointError, file_reason
from spillway.manager import IDENTITY
from spillway.manager.journal import FILE_NAME, EpochEntry, read_journal
from spillway.report.page import page
from spillway.report.series import running_time
from spillway.report.totals import totals
from spillway.state.storage import Storage, read_document


def write_report(checkpoint: str, out: Path) -> dict[str, Any]:
    """Write the page to `out`; returns the totals."""
    view, epochs = _read(checkpoint)
    time = running_time(epochs)
    sums = totals(epochs, time)
    text = page(view, epochs, time, sums)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CheckpointError(
            f"report {out} cannot be written: {file_reason(error, 'give another path with --out')}"
        ) from None
    return {"report": str(out), "report_bytes": len(text.encode()), **sums.to_json()}


def _read(checkpoint: str) -> tuple[str, tuple[EpochEntry, ...]]:
    storage = Storage(checkpoint)
    local = storage.local_path(FILE_NAME)
    if local is None:
        raise CheckpointError(
            f"checkpoint {checkpoint} is not on this machine, and only local ones have a journal; copy "
            "it here, or run the command where it is"
        )
    if not Path(storage.root).is_dir():
        raise CheckpointError(f"checkpoint {checkpoint} is not a directory; give the checkpoint of a [run]")
    if not storage.exists(IDENTITY):
        raise CheckpointError(
            f"{checkpoint} is not a checkpoint: it has no {IDENTITY}; give the directory that [run] "
            "checkpoint names"
        )
    view = str(read_document(storage, IDENTITY)["view"])
    if not Path(local).exists():
        raise CheckpointError(f"checkpoint {checkpoint} has no journal ({FILE_NAME}); run its job first")
    epochs = tuple(read_journal(Path(local)))
    if not epochs:
        raise CheckpointError(f"the journal of checkpoint {checkpoint} is empty: no epoch has completed")
    return view, epochs
