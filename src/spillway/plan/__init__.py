"""From a view to a plan: names, predicates, the shared key, and what is left to evaluate after the join."""
