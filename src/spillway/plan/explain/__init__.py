"""Plans for readers: as text and as plain values for `--json`. Start with `report`."""

from spillway.plan.explain.join import explain, explain_dict

__all__ = ["explain", "explain_dict"]
