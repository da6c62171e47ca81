"""Plans become operators that workers run, once the types of their columns are known.

Contract: only the driver binds; workers get operators and never load this package. Start with `tree`.
"""

from spillway.state.binding.tree import bind_tree, symbol_name

__all__ = ["bind_tree", "symbol_name"]
