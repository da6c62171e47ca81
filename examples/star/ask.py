"""What sells where? DuckDB reads the Delta table that the job has written."""

from pathlib import Path

import duckdb
from deltalake import DeltaTable

SQL = """
SELECT country, category, sum(quantity) AS pieces, round(sum(amount), 2) AS revenue
FROM sold
GROUP BY country, category
ORDER BY revenue DESC
LIMIT 5
"""

sold = DeltaTable(Path(__file__).parent / "out").to_pyarrow_dataset()
print(duckdb.sql(SQL))
