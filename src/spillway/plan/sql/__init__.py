"""The text of a view as names: parsing, scopes, resolved columns, predicates, and refusals with a remedy.

Contract: what leaves here is valid Spark SQL or a `ViewError` that quotes the user's text. Start with
`parse`, then `scope` and `predicates`.
"""

from spillway.plan.sql.over_clause import Over, read_over
from spillway.plan.sql.parse import parse_expression, parse_view
from spillway.plan.sql.predicates import Equality, KeyTerm, Predicates, conjunction, read_predicates
from spillway.plan.sql.refusals import unsupported
from spillway.plan.sql.render import display, label, quote, source_sql, window_text
from spillway.plan.sql.resolution import dependencies, resolve, without_parentheses
from spillway.plan.sql.scope import Input, Scope, read_scope, suggestion

__all__ = [
    "Equality",
    "Input",
    "KeyTerm",
    "Over",
    "Predicates",
    "Scope",
    "conjunction",
    "dependencies",
    "display",
    "label",
    "parse_expression",
    "parse_view",
    "quote",
    "read_over",
    "read_predicates",
    "read_scope",
    "resolve",
    "source_sql",
    "suggestion",
    "unsupported",
    "window_text",
    "without_parentheses",
]
