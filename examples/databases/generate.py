"""A shop in two databases: customers and orders in SQLite, products in DuckDB. The seed fixes all rows."""

import argparse
import sqlite3
from pathlib import Path

import duckdb
import numpy as np

REGIONS = ["east", "north", "south", "west"]
CATEGORIES = ["bikes", "helmets", "lights", "locks", "tyres"]


def create(directory: Path, orders: int = 20_000, seed: int = 7) -> None:
    """Create directory/shop.sqlite and directory/products.duckdb."""
    random = np.random.default_rng(seed)
    customers, products = 2_000, 300
    directory.mkdir(exist_ok=True)
    shop = sqlite3.connect(directory / "shop.sqlite")
    with shop:
        shop.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, region TEXT)")
        shop.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, product INTEGER, "
            "quantity INTEGER)"
        )
        regions = random.choice(REGIONS, customers)
        shop.executemany(
            "INSERT INTO customers VALUES (?, ?, ?)",
            ((number, f"customer {number}", str(region)) for number, region in enumerate(regions)),
        )
        lines = zip(
            random.integers(0, customers, orders).tolist(),
            random.integers(0, products, orders).tolist(),
            (1 + random.poisson(0.7, orders)).tolist(),
            strict=True,
        )
        shop.executemany("INSERT INTO orders (customer, product, quantity) VALUES (?, ?, ?)", lines)
        shop.execute("CREATE INDEX orders_by_customer ON orders (customer)")
        shop.execute("CREATE INDEX orders_by_product ON orders (product)")
    shop.close()
    with duckdb.connect(directory / "products.duckdb") as database:
        database.execute(
            "CREATE TABLE products (id BIGINT, title VARCHAR, category VARCHAR, price_cents BIGINT)"
        )
        categories = random.choice(CATEGORIES, products)
        prices = random.integers(500, 90_000, products).tolist()
        database.executemany(
            "INSERT INTO products VALUES (?, ?, ?, ?)",
            [
                (number, f"{category} {number}", str(category), prices[number])
                for number, category in enumerate(categories)
            ],
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    create(Path(__file__).parent / "data", arguments.orders, arguments.seed)
    print(f"created data/shop.sqlite with {arguments.orders:,} orders, and data/products.duckdb")
