"""A warehouse in Delta: a table of sales and eight tables that describe them. Equal seeds give equal rows."""

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

CATEGORIES = ["bakery", "cheese", "coffee", "fruit", "garden", "tools", "toys", "wine"]
CITIES = {
    "Bergen": "NO",
    "Bologna": "IT",
    "Ghent": "BE",
    "Leeds": "GB",
    "Lyon": "FR",
    "Malmo": "SE",
    "Porto": "PT",
}
SEGMENTS = ["new", "occasional", "regular", "trade"]
PROMOTIONS = {"none": 0, "loyalty": 5, "weekend": 10, "clearance": 30}


def tables(sales: int = 60_000, seed: int = 7) -> dict[str, pa.Table]:
    random = np.random.default_rng(seed)
    brands, products, stores, customers, days = 40, 800, 60, 5_000, 365
    calendar = np.arange("2025-01-01", "2026-01-01", dtype="datetime64[D]")
    promotion = random.choice(len(PROMOTIONS), sales, p=[0.7, 0.15, 0.1, 0.05])
    quantity = 1 + random.poisson(1.2, sales)
    product = (products * random.random(sales) ** 2).astype(int)  # some products sell much better
    price = np.round(2 + random.gamma(2.0, 9.0, products), 2)
    return {
        "sales": pa.table(
            {
                "sale_id": np.arange(sales),
                "day_id": random.integers(0, days, sales),
                "product_id": product,
                "store_id": random.integers(0, stores, sales),
                "customer_id": random.integers(0, customers, sales),
                "promotion_id": promotion,
                "quantity": quantity,
                "amount": np.round(
                    price[product] * quantity * (1 - np.array(list(PROMOTIONS.values()))[promotion] / 100), 2
                ),
            }
        ),
        "days": pa.table(
            {
                "day_id": np.arange(days),
                "day": calendar,
                "quarter": calendar.astype("datetime64[M]").astype(int) % 12 // 3 + 1,
            }
        ),
        "products": pa.table(
            {
                "product_id": np.arange(products),
                "title": [f"product {number:03}" for number in range(products)],
                "brand_id": random.integers(0, brands, products),
                "category_id": random.integers(0, len(CATEGORIES), products),
            }
        ),
        "brands": pa.table(
            {"brand_id": np.arange(brands), "brand": [f"brand {number:02}" for number in range(brands)]}
        ),
        "categories": pa.table({"category_id": np.arange(len(CATEGORIES)), "category": CATEGORIES}),
        "stores": pa.table(
            {
                "store_id": np.arange(stores),
                "store": [f"store {number:02}" for number in range(stores)],
                "city_id": random.integers(0, len(CITIES), stores),
            }
        ),
        "cities": pa.table(
            {"city_id": np.arange(len(CITIES)), "city": list(CITIES), "country": list(CITIES.values())}
        ),
        "customers": pa.table(
            {"customer_id": np.arange(customers), "segment": random.choice(SEGMENTS, customers)}
        ),
        "promotions": pa.table(
            {
                "promotion_id": np.arange(len(PROMOTIONS)),
                "promotion": list(PROMOTIONS),
                "percent": list(PROMOTIONS.values()),
            }
        ),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sales", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    directory = Path(__file__).parent / "data"
    for name, table in tables(arguments.sales, arguments.seed).items():
        write_deltalake(directory / name, table, mode="overwrite")
    print(f"wrote {arguments.sales:,} sales and eight tables around them to data/")
