"""Plans for readers: as text and as plain values for `--json`. Start with `explanation`, where a plan is
looked up by its kind.
"""

from spillway.plan.explain.explanation import explain, explain_dict

__all__ = ["explain", "explain_dict"]
