"""The penalty by its published formula (SIGMOD 2006, 3.2.3): results per byte, with all bytes kept above.

For comparison. Where low groups have many rows kept above them it spills little else: then few spills are
needed, and few results come. `global-output-penalty` counts a fifth of those bytes.
"""

from random import Random

from spillway.policy.spill.global_output_penalty import penalised
from spillway.policy.spill.snapshot import SpillSnapshot, take_until


def global_output_penalty_paper(snapshot: SpillSnapshot, _random: Random) -> tuple[int, ...]:
    return take_until(penalised(snapshot, 1.0), snapshot)
