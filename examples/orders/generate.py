"""Two weeks of a web shop: orders as CSV, payments as Parquet, shipments as JSON, one file a day.

Most orders are paid within two days and shipped some days later, so the join has to remember them. A few are
never paid, some are paid in two parts, some are shipped in two parcels. Equal seeds give equal files.
"""

import argparse
import os
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

NAMES = np.array(["ada", "bram", "chloe", "dario", "elif", "femi", "greta", "hana", "ivo", "jun", "kai"])
COUNTRIES = np.array(["DE", "FR", "GB", "NL", "PL", "US"])
METHODS = np.array(["card", "invoice", "wallet"])
CARRIERS = np.array(["Blue Van", "North Parcel", "Quayside"])
DAYS_TO_SHIP = np.array([2.0, 3.0, 4.5])  # the mean of each carrier
STREAMS = {
    "orders": (
        "csv",
        "customer || '.' || number || '@example.org' AS customer, country, "
        "(cents * 0.01)::DECIMAL(10, 2) AS amount",
    ),
    "payments": ("parquet", "method, 'pay-' || hash(order_id, row) AS reference"),
    "shipments": ("json", "carrier, 'SP' || hash(row, order_id) || 'NL' AS tracking"),
}
"""The format of each stream, and its columns besides the order and the day."""
FIRST_DAY = "2026-03-01"


def write(directory: Path, orders: int = 80_000, days: int = 14, seed: int = 7) -> None:
    """Write the three streams to directory/orders, /payments and /shipments."""
    random = np.random.default_rng(seed)
    order_id = np.arange(1, orders + 1)
    ordered = np.sort(random.integers(0, days, orders))
    is_paid = random.random(orders) < 0.95
    is_shipped = is_paid & (random.random(orders) < 0.9)
    payments = np.repeat(np.flatnonzero(is_paid), 1 + (random.random(is_paid.sum()) < 0.08))
    parcels = np.repeat(np.flatnonzero(is_shipped), 1 + (random.random(is_shipped.sum()) < 0.12))
    carrier = random.integers(0, len(CARRIERS), len(parcels))
    tables = {
        "orders": {
            "order_id": order_id,
            "day": ordered,
            "customer": random.choice(NAMES, orders),
            "number": random.integers(100, 1_000, orders),
            "country": random.choice(COUNTRIES, orders),
            "cents": 500 + random.gamma(2.0, 2_500.0, orders).astype(int),
        },
        "payments": {
            "order_id": order_id[payments],
            "day": ordered[payments] + random.geometric(0.6, len(payments)) - 1,
            "row": np.arange(len(payments)),
            "method": random.choice(METHODS, len(payments)),
        },
        "shipments": {
            "order_id": order_id[parcels],
            "day": ordered[parcels] + 1 + random.poisson(DAYS_TO_SHIP[carrier]),
            "row": np.arange(len(parcels)),
            "carrier": CARRIERS[carrier],
        },
    }
    with duckdb.connect() as database:
        for name, columns in tables.items():
            database.register("stream", pa.table(columns))
            (directory / name).mkdir(parents=True, exist_ok=True)
            for day in range(days):
                _write_day(database, directory / name, name, day, last=day == days - 1)


def _write_day(database: duckdb.DuckDBPyConnection, directory: Path, name: str, day: int, last: bool) -> None:
    """One file; that of the last day has all later rows, too."""
    file_format, columns = STREAMS[name]
    file = directory / f"day-{day + 1:02}.{file_format}"
    rows = f"SELECT order_id, {columns}, DATE '{FIRST_DAY}' + day::INT AS day FROM stream"
    which = "day >= $day" if last else "day = $day"
    database.execute(f"COPY ({rows} WHERE {which} ORDER BY ALL) TO '{file}'", {"day": day})
    os.utime(file, (1_780_000_000 + day,) * 2)  # Spark reads files in the order of their age


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", type=int, default=80_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    write(Path(__file__).parent / "data", orders=arguments.orders, seed=arguments.seed)
    print(f"wrote {arguments.orders:,} orders, their payments and shipments to data/")
