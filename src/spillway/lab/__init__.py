"""Experiments: `engines` run a workload, `bench` compares them, `paper` draws the literature's figures again.

Nothing of the product imports this package.
"""
