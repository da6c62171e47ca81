"""Search for cheap maintenance plans: orders of the steps of batching, paths of grouping (11.3.2)."""
