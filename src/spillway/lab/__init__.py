"""Experiments: `engines` run a workload, `bench` compares them, `paper` draws the literature's figures again.

Contract: no other package imports this one, except `cli`. Start with `bench/registry` or `paper/registry`.
"""
