"""Values that must not be shown: what a job file took from the environment, shown as `${NAME}` instead.

Every error, journal entry and line of output passes through here, so a password reaches none of them, however
deep the library is that quoted it. The registry belongs to the process, like the environment it stands for: a
message may come from any thread. Known limits: a value of fewer than four characters cannot be told from
ordinary text and is not hidden; neither is a part of a value that a library has cut up.
"""

import json
import re
from typing import Any
from urllib.parse import quote, quote_plus

SHORTEST = 4
_ORDINARY = frozenset({"true", "false", "none", "null"})
_SHOWN: dict[str, str] = {}
"""What to write instead of each text that is hidden."""


def hide(variable: str, value: str) -> None:
    """From now on show `${variable}` wherever `value` would be, also where it is quoted or in a URL."""
    if len(value) < SHORTEST or value.lower() in _ORDINARY:
        return
    spellings = (value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value), quote_plus(value, safe="/"))
    _SHOWN.update(dict.fromkeys((*spellings, quote(value, safe="")), f"${{{variable}}}"))


def redacted(text: str) -> str:
    """The text without hidden values."""
    if not any(hidden in text for hidden in _SHOWN):
        return text
    longest_first = sorted(_SHOWN, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), lambda found: _SHOWN[found[0]], text)


def redacted_values(value: Any) -> Any:
    """The same for the texts of a JSON value; its keys stay."""
    if not _SHOWN:
        return value
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, dict):
        return {key: redacted_values(entry) for key, entry in value.items()}
    return [redacted_values(entry) for entry in value] if isinstance(value, list | tuple) else value
