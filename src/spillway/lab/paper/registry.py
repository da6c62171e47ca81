"""The figures of the literature that can be drawn again: the section of each, and its result.

All are of Liu's dissertation (2005); those of chapters 6 and 7 are also in the report of 2005 and in SIGMOD
2006. `expected` is what the source reports, to compare a run with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DISSERTATION = "Liu, dissertation, 2005"


@dataclass(frozen=True, slots=True)
class PaperFigure:
    name: str
    section: str
    shows: str
    expected: str
    seed: str = DISSERTATION


_ALL = (
    PaperFigure(
        "3.7", "3.4.2", "data servers under a right-deep tree", "more servers make little difference"
    ),
    PaperFigure(
        "3.8", "3.4.2", "20 queries of 8 relations", "segmented bushy is nearly always faster than right-deep"
    ),
    PaperFigure("3.9", "3.4.2", "8, 12 and 16 relations", "segmented bushy takes about half the time"),
    PaperFigure(
        "3.11", "3.4.2", "relations of the last probing segment, of 16", "longer is slower, from 1 on"
    ),
    PaperFigure("3.12", "3.4.2", "relations per group, of 16", "time grows with groups of 3 to 6 relations"),
    PaperFigure(
        "3.13",
        "3.4.2",
        "32 relations, too little memory",
        "segmented bushy beats segmented right-deep in all of 10",
    ),
    PaperFigure("5.9", "5.2.4", "1 to 5 processors, all in memory", "the same throughput"),
    PaperFigure(
        "5.10",
        "5.2.4",
        "1 to 5 processors, 200 MB each",
        "1 stops after 25 minutes, 2 after 30; 4 and 5 are equal",
    ),
    PaperFigure("6.3", "6.1.4", "share of state per spill", "the more, the fewer run-time results"),
    PaperFigure("6.4", "6.1.4", "memory under those shares", "bounded; larger spills are fewer"),
    PaperFigure(
        "6.5",
        "6.1.4",
        "least against most productive, rates 4, 2, 1",
        "least productive gives far more; its clean-up 194,308 results in 27 s, else 992,893 in 359 s",
    ),
    PaperFigure("6.6", "6.1.4", "least against most productive, equal rates", "slightly more results"),
    PaperFigure("6.12", "6.2.2", "relocation threshold 50 to 90 %", "throughput hardly changes"),
    PaperFigure(
        "6.13",
        "6.2.2",
        "span between relocations",
        "throughput hardly changes; 31, 27, 24 moves at 15, 30, 45 s",
    ),
    PaperFigure("6.14", "6.2.2", "memory of two processors in turn", "relocation keeps them level"),
    PaperFigure(
        "6.15",
        "6.2.2",
        "60, 20, 20 % of the partitions",
        "without relocation throughput falls after 40 minutes",
    ),
    PaperFigure("6.18", "6.3.2", "lazy-disk against no relocation", "lazy-disk gives more"),
    PaperFigure("6.19", "6.3.2", "active-disk against lazy-disk", "active-disk gives more"),
    PaperFigure(
        "6.20", "6.3.2", "active-disk, tuple ranges 15,000 and 45,000", "a much larger gain than in 6.19"
    ),
    PaperFigure(
        "7.13", "7.3", "strategies, join rates 3-1-1", "penalty > global > local and bottom-up, by much"
    ),
    PaperFigure("7.14", "7.3", "memory: global against penalty", "13 spills against 10"),
    PaperFigure(
        "7.15", "7.3", "memory: penalty against bottom-up", "bottom-up spills 7 times, and gives less"
    ),
    PaperFigure("7.16", "7.3", "strategies, join rates 1-3-3", "as 7.13; bottom-up is ahead of local"),
    PaperFigure("7.17", "7.3", "strategies, join rates 3-2-3", "as 7.13; local is ahead of bottom-up"),
    PaperFigure(
        "10.8",
        "10.5.2",
        "10 to 100 updates of one source",
        "batches grow slowly; with a temporary table slowest",
    ),
    PaperFigure("10.9", "10.5.2", "sequential over batch time", "the composite query gains little above 50"),
    PaperFigure("10.10", "10.5.2", "500 to 3,000 updates of one source", "the composite query grows steeply"),
    PaperFigure(
        "10.11",
        "10.5.3",
        "100 to 1,000 updates of six sources",
        "conditional < adjacent < batch, almost 4 times",
    ),
    PaperFigure("10.12", "10.5.3", "many updates of six sources", "conditional stays ahead of batch"),
    PaperFigure("10.13", "10.5.3", "join ratio 0.5 to 3", "both grow, and come closer"),
    PaperFigure(
        "10.14", "10.5.3", "1,000 updates over 1 to 6 sources", "the more sources, the larger the gain"
    ),
    PaperFigure("10.15", "10.5.3", "network delay", "conditional is ahead below 100 ms per 64 bytes"),
    PaperFigure("11.7", "11.4.1", "best and worst plans of three views", "more edges, a larger gap"),
    PaperFigure("11.8", "11.4.2", "a cost function", "the fit follows 2, 4 and 6 attributes"),
    PaperFigure(
        "11.9", "11.4.2", "estimates of batching plans", "about 80 % of the measured cost, same trend"
    ),
    PaperFigure("11.10", "11.4.2", "estimates of four grouping plans", "below the measured cost, same trend"),
    PaperFigure(
        "11.11", "11.4.2", "batching against grouping plans", "two batch plans beat the best grouping"
    ),
    PaperFigure("11.12", "11.4.2", "batch plans on a slow network", "differences of more than 300 %"),
    PaperFigure(
        "11.14", "11.4.3", "1,000 to 10,000 updates, cyclic view", "grouping is almost 3 times better"
    ),
    PaperFigure(
        "table-11.3",
        "11.4.4",
        "plans kept by the search",
        "51 ms and 357 s for 1 plan kept, 271 ms and 294 s for 20",
    ),
)
FIGURES: Mapping[str, PaperFigure] = MappingProxyType({figure.name: figure for figure in _ALL})
