"""Spillway on Spark: sessions, sources, epochs, sinks. The only package that imports pyspark."""
