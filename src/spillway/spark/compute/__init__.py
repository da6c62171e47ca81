"""Computes views over stored relations on Spark: opening them, statistics, segments as jobs, the result."""
