"""The demo's input: stock prices, volumes and analysts' reviews over trading days from 9 to 16 o'clock.

The motivating case of the dissertation: three sources are joined by symbol and trading minute while the
market is open, so that an analyst can act on the result. Symbols are invented. Row i of a stream is a pure
function of (seed, stream, i, rows). Rows arrive nearly in time order; volumes lag by up to five minutes and
reviews by up to an hour, so the join must keep state. Some symbols are much busier than others. Known limit:
prices are smooth curves with noise, not a market model.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spillway.workload.files import write_stream
from spillway.workload.permutation import Words, combine, stream_key, unit

STOCK_STREAMS = ("prices", "volumes", "reviews")
STOCK_SCHEMAS_SQL = {
    "prices": "symbol string, trading_minute int, venue string, price double",
    "volumes": "symbol string, trading_minute int, shares bigint, trades int",
    "reviews": "symbol string, trading_minute int, review_id bigint, analyst string, rating int, "
    "target double",
}
STOCK_VIEW_SQL = """\
SELECT p.symbol, p.trading_minute, p.venue, p.price, v.shares, p.price * v.shares AS turnover,
       r.review_id, r.analyst, r.rating, r.target
FROM prices AS p
JOIN volumes AS v ON p.symbol = v.symbol AND p.trading_minute = v.trading_minute
JOIN reviews AS r ON p.symbol = r.symbol AND p.trading_minute = r.trading_minute
WHERE r.rating >= 4 AND v.shares >= 1000
"""
# For DuckDB, over a table or view `results` with the rows of the view above.
STOCK_QUERY_SQL = """\
SELECT symbol,
       count(DISTINCT review_id) AS good_reviews,
       count(DISTINCT analyst) AS analysts,
       round(sum(turnover) / sum(shares), 2) AS average_price,
       round(avg(target), 2) AS average_target,
       round(100 * (avg(target) / (sum(turnover) / sum(shares)) - 1), 1) AS upside_percent
FROM results
GROUP BY symbol
HAVING count(DISTINCT review_id) >= 25
ORDER BY upside_percent DESC, symbol
LIMIT 5
"""

_SYMBOLS = 400
_SESSION_MINUTES = 7 * 60
_REVIEW_LAG_MINUTES = 60
_VOLUME_LAG_MINUTES = 5
_ROWS_PER_KEY = 1.2  # of each stream: symbols times minutes grow with the rows
_VENUES = ("NORTH", "HARBOR", "UNION", "DARK")
_HOUSES = ("Alder & Co", "Brookline", "Castellan", "Dunmore", "Eastgate", "Fennimore", "Glasswright", "Hale")
_TAGS = {name: np.array([tag], dtype=np.uint64) for tag, name in enumerate(
    ("symbol", "lag", "detail", "level", "phase", "noise", "rating", "target", "merit"))}  # fmt: skip


def write_stock_streams(directory: Path, *, rows: int, files: int, seed: int = 0) -> None:
    """Write `rows` rows of each stream to directory/prices, /volumes and /reviews, in `files` files."""
    for stream in STOCK_STREAMS:
        write_stream(
            directory / stream,
            partial(stock_rows, stream, rows=rows, seed=seed),
            rows=rows,
            files=files,
        )


def stock_rows(stream: str, lo: int, hi: int, *, rows: int, seed: int = 0) -> pa.RecordBatch:
    """Rows [lo, hi) of one stream that is `rows` rows long."""
    market, key = stream_key(seed, "market"), stream_key(seed, stream)
    index = np.arange(lo, hi, dtype=np.uint64)
    symbol = _symbols(combine(key, _TAGS["symbol"], index))
    minutes = max(_SESSION_MINUTES, round(rows / (_SYMBOLS * _ROWS_PER_KEY)))
    arrival = (index * np.uint64(minutes) // np.uint64(max(rows, 1))).astype(np.int64)
    lag = {"prices": 0, "volumes": _VOLUME_LAG_MINUTES, "reviews": _REVIEW_LAG_MINUTES}[stream]
    late = (unit(combine(key, _TAGS["lag"], index)) ** 2 * (lag + 1)).astype(np.int64)
    minute = np.maximum(arrival - late, 0)
    columns: dict[str, pa.Array] = {
        "symbol": tickers().take(pa.array(symbol)),
        "trading_minute": pa.array(minute.astype(np.int32)),
    }
    detail = combine(key, _TAGS["detail"], index)
    noise = unit(combine(key, _TAGS["noise"], index))
    if stream == "prices":
        quoted = _fair_price(market, symbol, minute) * (1 + 0.002 * (noise - 0.5))
        columns["venue"] = pa.array(_VENUES).take(
            pa.array((detail % np.uint64(len(_VENUES))).astype(np.int64))
        )
        columns["price"] = pa.array(np.round(quoted, 2))
    elif stream == "volumes":
        shares = 100 * np.ceil(np.exp(1.0 + 3.5 * noise))
        columns["shares"] = pa.array(shares.astype(np.int64))
        columns["trades"] = pa.array(np.ceil(shares / (50 + 350 * unit(detail))).astype(np.int32))
    else:
        merit = unit(combine(market, _TAGS["merit"], symbol.astype(np.uint64)))
        opinion = np.clip(0.6 * noise + 0.4 * merit, 0, 0.9999)
        rating = 1 + (opinion * 5).astype(np.int32)
        spread = unit(combine(key, _TAGS["target"], index)) - 0.5
        target = _fair_price(market, symbol, minute) * (
            1 + 0.08 * (rating - 3) + 0.15 * (merit - 0.5) + 0.1 * spread
        )
        columns["review_id"] = pa.array(index.astype(np.int64))
        columns["analyst"] = pa.array(_HOUSES).take(
            pa.array((detail % np.uint64(len(_HOUSES))).astype(np.int64))
        )
        columns["rating"] = pa.array(rating)
        columns["target"] = pa.array(np.round(target, 2))
    return pa.RecordBatch.from_pydict(columns)


def tickers() -> pa.Array:
    """The invented symbols: three or four letters that can be said aloud."""
    consonants, vowels = "BDFGKLMNPRSTVZ", "AEIOU"
    names = [a + v + b for a in consonants for v in vowels for b in consonants]
    chosen = names[:: len(names) // _SYMBOLS][:_SYMBOLS]
    return pa.array([name + ("X" if number % 3 == 0 else "") for number, name in enumerate(chosen)])


def _symbols(hashed: Words) -> NDArray[np.int64]:
    """Symbols by a power law: the busiest tenth gets about a sixth of the rows."""
    return (unit(hashed) ** 1.3 * _SYMBOLS).astype(np.int64)


def _fair_price(market: Words, symbol: NDArray[np.int64], minute: NDArray[np.int64]) -> NDArray[np.float64]:
    """Where a symbol trades at a minute: a level of its own, a daily wave and a faster one."""
    code = symbol.astype(np.uint64)
    level = 8 * np.exp(3.6 * unit(combine(market, _TAGS["level"], code)))
    phase = 2 * np.pi * unit(combine(market, _TAGS["phase"], code))
    day = minute / _SESSION_MINUTES
    wave = 0.02 * np.sin(2 * np.pi * day + phase) + 0.006 * np.sin(2 * np.pi * 9 * day + 3 * phase)
    return np.asarray(level * (1 + wave), dtype=np.float64)
