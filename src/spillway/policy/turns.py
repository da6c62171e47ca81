"""How groups take turns in memory under rotation, by the names of job files.

`share`: all processors change places together, each up to a share of its state, one gap after the last turn
of any of them. `group`: each processor by its own clock, one group at a time, one gap after its last group
was activated (Flux, UCB/CSD-2-1205, section 6.1).

`share` is the default: an epoch ends on all processors together, so a turn on one lets the others wait. In a
windowed join of 180,000 rows on two processors of 4 MB each it took 86 and 90 epochs without input and
read 545 and 526 MB of state back; `group` took 122 and 123 epochs and read 604 and 612 MB, with as much
input waiting.
"""

SHARE, GROUP = "share", "group"
TURNS = (SHARE, GROUP)
