"""Where `spillway calibrate` keeps the unit costs of this machine: one JSON file in the user's cache."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from spillway.errors import JobError

if TYPE_CHECKING:
    from spillway.compute import UnitCosts

FILE_NAME = "unit_costs.json"


def cache_directory() -> Path:
    """The cache directory: everything in it can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")) / "spillway"


def read_costs(path: Path | None = None) -> "UnitCosts":
    """The stored costs, or the defaults if `calibrate` has not run."""
    from spillway.compute import UnitCosts

    file = path or cache_directory() / FILE_NAME
    try:
        return UnitCosts.from_json(json.loads(file.read_text(encoding="utf-8")), str(file))
    except FileNotFoundError:
        return UnitCosts()
    except (OSError, ValueError) as error:
        raise JobError(f"unit costs {file} cannot be read: {error}; run spillway calibrate") from None


def write_costs(costs: "UnitCosts", path: Path | None = None) -> Path:
    file = path or cache_directory() / FILE_NAME
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_name(f".{file.name}.{os.getpid()}")
        unfinished.write_text(json.dumps(costs.to_json(), indent=1) + "\n", encoding="utf-8")
        unfinished.replace(file)
    except OSError as error:
        raise JobError(f"unit costs {file} cannot be written: {error.strerror}") from None
    return file
