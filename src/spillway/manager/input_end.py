"""Whether the input of a query was read to its end: noted in the checkpoint when a run has done so.

    input_end.json       the last Spark batch of the input

The note is valid while that batch is the last of the manifest. Input that came since is unknown.
"""

from dataclasses import dataclass

from spillway.state.storage import Storage, encode_document, read_document

NAME = "input_end.json"


@dataclass(frozen=True, slots=True)
class InputEnd:
    """The note in one checkpoint."""

    storage: Storage

    def note(self, batch_id: int) -> None:
        """Say that this batch was the last, and its epoch is committed."""
        self.storage.write(NAME, encode_document({"batch_id": batch_id}))

    def is_reached(self, batch_id: int) -> bool:
        """Whether a run has found nothing after this batch."""
        return self.storage.exists(NAME) and read_document(self.storage, NAME)["batch_id"] == batch_id
