"""A day in the shop: new and cancelled orders, customers who move, prices that change.

    python change.py DAY

The number of the day is the seed, so that equal days change equal rows.
"""

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
from generate import REGIONS


def change(directory: Path, day: int) -> None:
    random = np.random.default_rng(1_000 + day)
    with closing(sqlite3.connect(directory / "shop.sqlite")) as shop, shop:
        lines = random.integers((0, 0, 1), (2_000, 300, 5), (200, 3)).tolist()
        shop.executemany("INSERT INTO orders (customer, product, quantity) VALUES (?, ?, ?)", lines)
        cancelled = [(number,) for number in random.integers(1, 20_000, 30).tolist()]
        shop.executemany("DELETE FROM orders WHERE id = ?", cancelled)
        moved = zip(random.choice(REGIONS, 10).tolist(), random.integers(0, 2_000, 10).tolist(), strict=True)
        shop.executemany("UPDATE customers SET region = ? WHERE id = ?", moved)
    with duckdb.connect(directory / "products.duckdb") as products:
        products.execute("UPDATE products SET price_cents = price_cents * 9 // 10 WHERE id % 50 = ?", [day])


if __name__ == "__main__":
    change(Path(__file__).parent / "data", int(sys.argv[1]))
    print(f"day {sys.argv[1]}: 200 new orders, up to 30 cancelled, 10 customers moved, 6 prices cut")
