"""How groups take turns in memory under rotation, by the names of job files.

`share`: all processors change places together, each up to a share of its state, one gap after the last turn
of any of them. `group`: each processor by its own clock, one group at a time, one gap after its last group
was activated (Flux, UCB/CSD-2-1205, section 6.1). Here an epoch ends on all processors together, so a turn on
one lets the others wait.
"""

SHARE, GROUP = "share", "group"
TURNS = (SHARE, GROUP)
