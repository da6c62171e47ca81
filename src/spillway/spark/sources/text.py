"""Options of text sources that never lose a record, read null or swap columns silently. Spark's own defaults
read a cell that does not parse as null, ignore missing and extra cells, and take the columns of a CSV file by
position, whatever its header says.
"""

import logging
from collections.abc import Mapping

from spillway.errors import SourceError
from spillway.job import ignored_options

_LOG = logging.getLogger(__name__)

TEXT_FORMATS = ("csv", "json", "xml")
MODE, FAIL_FAST = "mode", "FAILFAST"
MODES = (FAIL_FAST, "PERMISSIVE", "DROPMALFORMED")
"""Spark's words: refuse a record that does not fit, take what does not parse for null, or drop the record."""


def check_options(source_format: str, options: Mapping[str, str], where: str) -> None:
    """Refuse options that look misspelt; warn of others that Spark ignores."""
    for name in ignored_options(source_format, options, where):
        _LOG.warning("%s options: %s has no option %s, so Spark ignores it", where, source_format, name)


def text_options(source_format: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options with safer defaults: a record that does not fit is refused, and so is such a header."""
    if source_format.lower() not in TEXT_FORMATS:
        return dict(options)
    given = {key.lower(): value for key, value in options.items()}
    defaults = {MODE: FAIL_FAST}
    if source_format.lower() == "csv":
        defaults["columnPruning"] = "false"
        if given.get("header", "false").lower() == "true":
            defaults["enforceSchema"] = "false"
    return {key: value for key, value in defaults.items() if key.lower() not in given} | dict(options)


def check_mode(source_format: str, options: Mapping[str, str], where: str) -> None:
    """Require a text source to say what happens to records that do not fit."""
    if source_format.lower() in TEXT_FORMATS:
        mode = {key.lower(): value for key, value in options.items()}.get(MODE, "")
        if mode.upper() not in MODES:
            raise SourceError(
                f"{where} reads {source_format} with mode {mode!r}: say what happens to records that do not "
                f"fit the schema, by the option mode = one of {', '.join(MODES)}"
            )
