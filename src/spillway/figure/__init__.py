"""The spill experiments of the seeds, rerun and drawn in the axes of their figures.

Pure: parameters of each experiment, what its runs came to, and the drawing. The runs themselves are made by
`spillway.spark.figure_run`, on the real engine.
"""
