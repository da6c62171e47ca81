"""Spillway on Spark: `jvm` starts Spark, `sources` and `sinks` are the ends of a query, `worker` runs in
Python workers, `stream` is an epoch, `compute` and `maintain` are the other two commands, `session` is the
public API.

Contract: with `lab`, the only package that imports pyspark. Start with `stream.query`.
"""
