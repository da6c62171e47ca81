"""Sizes as job files write them: a number of bytes, or a text such as 64MB."""

import re

from spillway.errors import JobError

MINIMUM_BYTES = 4 << 20
"""The least memory of a processor: below it, fixed costs (pages of partly used images, one Arrow batch) are
larger than the state."""
_UNITS = {"": 1, "B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}


def parse_bytes(text: str | int, where: str) -> int:
    """A size such as 64MB, 1.5GB or a plain number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B?)\s*", str(text).upper())
    if match is None:
        raise JobError(f'{where} = "{text}": not a size; write it like "64MB" or "2GB"')
    number, unit = match.groups()
    size = int(float(number) * _UNITS[unit if unit in _UNITS else unit + "B"])
    if size < 1:
        raise JobError(f'{where} = "{text}": must be positive')
    return size
