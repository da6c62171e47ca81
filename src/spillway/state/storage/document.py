"""Small JSON files of a checkpoint, each with a format version and a checksum.

The first line is a header with the version and the CRC-32 of the second, which is the body. A file that was
cut short or altered is refused by name; nothing is ever guessed from half a file.
"""

import json
from typing import Any

from spillway.errors import RESTORE, CheckpointError, StateError
from spillway.model import compact
from spillway.state.storage.checksum import crc32
from spillway.state.storage.storage import Storage

FORMAT_VERSION = 6


def encode_document(body: dict[str, Any]) -> bytes:
    text = compact(body).encode()
    header = json.dumps({"spillway": FORMAT_VERSION, "crc32": f"{crc32(text):08x}"}).encode()
    return header + b"\n" + text


def read_document(storage: Storage, name: str) -> dict[str, Any]:
    where = storage.uri(name)
    header, _, text = storage.read(name).to_pybytes().partition(b"\n")
    try:
        fields = json.loads(header)
        version, checksum = fields["spillway"], fields["crc32"]
    except (ValueError, KeyError, TypeError):
        raise StateError(f"{where} is corrupted: no header; {RESTORE}") from None
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{where} has format version {version}, this Spillway reads {FORMAT_VERSION}; "
            "use the version that wrote it, or start with a new checkpoint directory"
        )
    if checksum != f"{crc32(text):08x}":
        raise StateError(f"{where} is corrupted: checksum {crc32(text):08x}, expected {checksum}; {RESTORE}")
    body: dict[str, Any] = json.loads(text)
    return body
