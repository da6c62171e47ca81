"""Keeps more in a memory tier than fits: `full_memory.py DIRECTORY`, where a small tmpfs is mounted."""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

from spillway.errors import StateError
from spillway.state.memory.tier import MemoryTier
from spillway.state.rows.run import Position, Run
from spillway.state.rows.sorted_rows import sort_rows

ROWS = 1 << 18
tier = MemoryTier(f"{sys.argv[1]}/tier", groups=1)
rows = sort_rows(np.arange(ROWS), pa.record_batch({"v": np.arange(ROWS)}))
try:
    tier.store(Run("runs/one.run", 0, Position(0), 0, ROWS, 1, 1, 1), rows, 1)
except StateError as error:
    print(error)
print(sorted(path.name for path in Path(tier.directory).iterdir()))
