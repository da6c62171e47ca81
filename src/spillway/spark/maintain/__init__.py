"""Maintenance with Spark: tables that answer by Spark jobs, and the algebra of large deltas."""
