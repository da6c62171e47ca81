"""The text of a view as names: parsing, scopes, resolved columns, predicates, and refusals with a remedy.

Contract: what leaves here is valid Spark SQL or a `ViewError` that quotes the user's text. Start with
`parse`, then `scope` and `predicates`.
"""

from spillway.plan.sql.over_clause import Over, read_over
from spillway.plan.sql.parse import flat_select, parse_expression, parse_query, parse_view, too_deep
from spillway.plan.sql.predicates import (
    Equality,
    KeyTerm,
    Predicates,
    conjunction,
    conjuncts,
    read_predicates,
    sort_conjuncts,
)
from spillway.plan.sql.refusals import (
    refuse_other_statement,
    refuse_parts,
    refuse_select,
    refuse_table,
    set_operation,
    unsupported,
)
from spillway.plan.sql.render import display, label, quote, source_sql, window_text
from spillway.plan.sql.resolution import dependencies, refuse_shadowing, resolve, without_parentheses
from spillway.plan.sql.scope import (
    Input,
    Scope,
    open_scope,
    read_scope,
    read_source,
    suggestion,
    too_few_inputs,
)
from spillway.plan.sql.select_list import SelectItem, distinct_names, read_items, read_select_list
from spillway.plan.sql.window_clause import range_of

__all__ = [
    "Equality",
    "Input",
    "KeyTerm",
    "Over",
    "Predicates",
    "Scope",
    "SelectItem",
    "conjunction",
    "conjuncts",
    "dependencies",
    "display",
    "distinct_names",
    "flat_select",
    "label",
    "open_scope",
    "parse_expression",
    "parse_query",
    "parse_view",
    "quote",
    "range_of",
    "read_items",
    "read_over",
    "read_predicates",
    "read_scope",
    "read_select_list",
    "read_source",
    "refuse_other_statement",
    "refuse_parts",
    "refuse_select",
    "refuse_shadowing",
    "refuse_table",
    "resolve",
    "set_operation",
    "sort_conjuncts",
    "source_sql",
    "suggestion",
    "too_deep",
    "too_few_inputs",
    "unsupported",
    "window_text",
    "without_parentheses",
]
