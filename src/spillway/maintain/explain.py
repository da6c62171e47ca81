"""A maintenance plan for people and for programs: its queries as text, its estimates, what was compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spillway.maintain.choice import Candidate, candidates
from spillway.maintain.definition import ViewDefinition
from spillway.maintain.plan import RECOMPUTE, MaintenancePlan, MaintenanceQuery, Part
from spillway.maintain.query_cost import QueryCost
from spillway.maintain.settings import AUTO, TableLocation
from spillway.maintain.strategies import plan_round


def explain_dict(
    definition: ViewDefinition,
    locations: Sequence[TableLocation],
    sizes: Sequence[int],
    strategy: str | None,
    model: QueryCost | None,
) -> dict[str, Any]:
    """The plan for deltas of these sizes; `strategy` None: the cheapest by `model`.

    Without a model, costs are not known yet: only a strategy by name has a plan then.
    """
    compared: list[Candidate] = candidates(model, definition.graph, sizes) if model is not None else []
    plan = compared[0].plan if strategy is None and compared else None
    if strategy not in (None, RECOMPUTE):
        plan = plan_round(strategy or "", definition.graph, sizes)
    estimate = model.estimate(plan, sizes) if model is not None and plan is not None else None
    queries = []
    for number, query in enumerate(plan.queries if plan is not None else ()):
        entry: dict[str, Any] = {
            "text": query_text(definition, locations, query),
            "parts": _parts(plan, query),
        }
        if estimate is not None:
            expected = estimate.queries[number]
            entry |= {
                "rows_sent": round(expected.rows_sent, 1),
                "rows_received": round(expected.rows_received, 1),
            }
            entry["seconds"] = round(expected.seconds, 5)
        queries.append(entry)
    return {
        "view": definition.text,
        "strategy": AUTO if strategy is None and model is None else plan.strategy if plan else RECOMPUTE,
        "loaded": model is not None,
        "update_rows": list(sizes),
        "queries": queries,
        "estimated_seconds": None if estimate is None else round(estimate.seconds, 5),
        "compared": {candidate.strategy: round(candidate.seconds, 5) for candidate in compared},
    }


def explain_text(document: dict[str, Any]) -> str:
    """The same, as lines."""
    lines = [f"view      {document['view']}", f"strategy  {document['strategy']}"]
    if not document["loaded"]:
        lines.append("estimate  none: costs are measured when the first run loads the view")
    if document["estimated_seconds"] is not None:
        lines.append(f"estimate  {document['estimated_seconds']} s")
    lines += [f"compared  {name}: {seconds} s" for name, seconds in document["compared"].items()]
    for number, query in enumerate(document["queries"], start=1):
        lines.append(f"query {number:<3} {query['text']}")
        lines.append(f"          for {', '.join(query['parts'])}")
        if "seconds" in query:
            sizes = f"{query['rows_sent']} rows out, {query['rows_received']} rows in"
            lines.append(f"          {sizes}, {query['seconds']} s")
    return "\n".join(lines)


def query_text(
    definition: ViewDefinition, locations: Sequence[TableLocation], query: MaintenanceQuery
) -> str:
    """A maintenance query as SQL; `delta` are the keys that travel."""
    view_input, location = definition.inputs[query.input], locations[query.input]
    columns = ", ".join(f"{view_input.alias}.{column.name}" for column in view_input.columns)
    texts = []
    for edges in dict.fromkeys(part.edges for part in query.parts):
        own = [name for number in edges for name in definition.graph.edges[number].columns(query.input)]
        on = " AND ".join(f"{view_input.alias}.{name} = delta.{name}" for name in dict.fromkeys(own))
        join = f" JOIN delta ON {on}" if on else " (all rows)"
        texts.append(f"SELECT {columns} FROM {location.table} {view_input.alias}{join}")
    return f"{location.server}: " + " UNION ALL ".join(texts)


def _parts(plan: MaintenancePlan | None, query: MaintenanceQuery) -> list[str]:
    assert plan is not None

    def described(part: Part) -> str:
        names = [plan.graph.names[node] for node in plan.covers[part.read]]
        return f"{'*'.join(names)} with {'the state before' if part.before else 'the state after'}"

    return [described(part) for part in query.parts]
