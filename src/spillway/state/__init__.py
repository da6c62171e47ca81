"""The state of operators, and one epoch's work on it: from storage at the bottom to the graph of operators.

`storage` holds bytes, `rows` sorted rows at rest, `memory` their images, `log` what is committed, `orders`
what a processor is told and reports. `step` has the parts of an epoch's work that operators share; `join`
and `frame` are the operators, `graph` connects them, and `binding` makes them from plans.

Contract: a task creates files under names of its attempt and changes nothing that exists. Start with
`graph.graph`, then `join.step`.
"""
