"""How long does each carrier take? DuckDB reads the Delta table that the job has written."""

from pathlib import Path

import duckdb
from deltalake import DeltaTable

SQL = """
SELECT carrier, count(*) AS parcels, sum(amount) AS value, round(avg(shipped - paid), 2) AS days_after_payment
FROM deliveries
GROUP BY carrier
ORDER BY days_after_payment DESC
"""

deliveries = DeltaTable(Path(__file__).parent / "out").to_pyarrow_dataset()
print(duckdb.sql(SQL))
