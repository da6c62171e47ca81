"""Patterns in paths as Hadoop reads them, as regular expressions over one name.

`*`, `?`, `[abc]`, `[^a-c]`, `{ab,c*}` and `\\` as escape. Hidden names match, too: whoever lists decides.
Known limit: alternatives that contain a slash, `{a/b,c}`, are refused; Spark's own listing reads them.
"""

import re

GLOB = frozenset("{}[]*?\\")
"""Characters that make a path a pattern."""


class PatternError(ValueError):
    """The pattern cannot be read here."""


def is_pattern(path: str) -> bool:
    return bool(set(path) & GLOB)


def escaped(path: str) -> str:
    """The pattern that stands for this path alone."""
    return "".join(f"\\{character}" if character in GLOB else character for character in path)


def segments(path: str) -> list[str]:
    """The names of a path between its slashes."""
    depth = 0
    for character in path:
        depth += (character == "{") - (character == "}")
        if character == "/" and depth > 0:
            raise PatternError("alternatives contain a slash")
    return [part for part in path.split("/") if part]


def compiled(pattern: str) -> re.Pattern[str]:
    """The names that a pattern stands for; use `fullmatch`."""
    try:
        return re.compile(_translated(pattern), re.DOTALL)
    except re.error as error:
        raise PatternError(str(error)) from None


def _translated(pattern: str) -> str:
    made, place, depth, in_set = [], 0, 0, False
    while place < len(pattern):
        character = pattern[place]
        place += 1
        if character == "\\":
            if place == len(pattern):
                raise PatternError("it ends with a backslash")
            made.append(re.escape(pattern[place]))
            place += 1
        elif in_set:
            in_set = character != "]"
            made.append(character if character in "]-" else re.escape(character))
        elif character == "[":
            in_set = True
            negated = pattern[place : place + 1] in ("^", "!")
            place += negated
            made.append("[^" if negated else "[")
        elif character == "{":
            depth += 1
            made.append("(?:")
        elif character == "}" and depth:
            depth -= 1
            made.append(")")
        elif character == "," and depth:
            made.append("|")
        else:
            made.append({"*": "[^/]*", "?": "[^/]"}.get(character) or re.escape(character))
    if depth or in_set:
        raise PatternError("a bracket is not closed")
    return "".join(made)
