"""Inputs that are files: what is there, which of it the next batch takes, and the record of that.

Contract: a file is in one batch at most, and a batch is on record before its epoch begins. The manifest alone
says which records count. Start with `planner`; `listing` knows Spark's rules, `log` what lasts.
"""

from spillway.manager.files.delta_files import DeltaFiles
from spillway.manager.files.entry import FileBatch, FileEntry
from spillway.manager.files.glob import escaped, is_pattern
from spillway.manager.files.listing import FileListing, has_metadata_log
from spillway.manager.files.log import FileLog, first_logged, has_file_log, remove_file_log
from spillway.manager.files.options import LISTING_OPTIONS, ListingOptions, milliseconds, read_options
from spillway.manager.files.planner import FilePlanner, ListedInput
from spillway.manager.files.tree import ArrowTree, FileTree, LocalTree

__all__ = [
    "LISTING_OPTIONS",
    "ArrowTree",
    "DeltaFiles",
    "FileBatch",
    "FileEntry",
    "FileListing",
    "FileLog",
    "FilePlanner",
    "FileTree",
    "ListedInput",
    "ListingOptions",
    "LocalTree",
    "escaped",
    "first_logged",
    "has_file_log",
    "has_metadata_log",
    "is_pattern",
    "milliseconds",
    "read_options",
    "remove_file_log",
]
