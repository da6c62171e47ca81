"""Bytes that last: files on local and shared file systems and object stores, with checksums and versions.

Contract: a file is complete under its name, or not there; `create_exclusive` has one winner. Start with
`storage`.
"""

from spillway.state.storage.checksum import SummedFile, crc32
from spillway.state.storage.document import encode_document, read_document
from spillway.state.storage.new_directories import NewDirectories
from spillway.state.storage.storage import TEMPORARY_PREFIX, Storage, mapped_file

__all__ = [
    "TEMPORARY_PREFIX",
    "NewDirectories",
    "Storage",
    "SummedFile",
    "crc32",
    "encode_document",
    "mapped_file",
    "read_document",
]
