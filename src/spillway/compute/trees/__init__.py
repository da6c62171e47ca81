"""Tree shapes, one algorithm per file; `choose` compares them by the cost model."""
