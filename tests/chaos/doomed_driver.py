"""`spillway run` that kills its own process group at a named place of one epoch's commit: see `doom`.

With MOVES in the environment some groups are told to move whenever no others are on the move. The place
`nowhere` lets the driver live.

Usage: doomed_driver.py PLACE EPOCH JOB.toml --json
"""

import os
import sys

from doom import arm, force_moves

from spillway.cli.app import main

if __name__ == "__main__":
    _, where, when, *rest = sys.argv
    arm(where, when)
    if os.environ.get("MOVES"):
        force_moves()
    sys.argv = ["spillway", "run", *rest]
    main()
