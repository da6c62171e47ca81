"""Why a file could not be read or written, in one line."""

import errno
import os

import pytest

from spillway.errors import disk_reason, file_reason


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO])
def test_trouble_with_a_disk_has_a_remedy(number: int) -> None:
    words = os.strerror(number)
    told = file_reason(OSError(number, "Error writing bytes to file. Detail: [errno 28] ..."))
    assert told.startswith(f"{words}; ")
    assert told == disk_reason(f"Kernel error: {words} (os error {number})")


def test_other_trouble_is_told_as_it_is() -> None:
    assert (
        file_reason(OSError(errno.ENOTDIR, "no", "x"), "give a directory")
        == "Not a directory; give a directory"
    )
    assert file_reason(ValueError("two\n  lines")) == "two lines"
    assert disk_reason("nothing of the kind") is None
