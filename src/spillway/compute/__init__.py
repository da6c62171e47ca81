"""Computing a view over stored relations: join graph, cardinalities, cost model, trees, allocation. All pure.

After part I of the dissertation of 2005 (chapters 2 and 3). `spillway.spark.compute` runs what is chosen.
"""
