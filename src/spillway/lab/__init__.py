"""Experiments: `engines` run a workload, `bench` compares them, `paper` draws the literature's figures again.

No other package imports this one, except `cli`.
"""
