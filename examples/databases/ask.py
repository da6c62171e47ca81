"""What sells best in which region? The view is the table `result` of a DuckDB file."""

from pathlib import Path

import duckdb

with duckdb.connect(Path(__file__).parent / "view.duckdb", read_only=True) as view:
    print(
        view.sql(
            "SELECT region, category, orders, pieces, round(cents / 100, 2) AS revenue "
            "FROM result ORDER BY revenue DESC LIMIT 5"
        )
    )
