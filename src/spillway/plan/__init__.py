"""From the text of a view to a plan. `sql` reads names and predicates, `expression` has types and evaluation,
`operators` are plans as values, `rules` choose them, and `explain` shows them.

Contract: pure. A plan is a value; nothing here reads rows or knows Spark. Start with `rules.planner`.
"""
