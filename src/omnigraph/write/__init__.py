"""Writes: what people want changed becomes a change set, is validated, staged and published.

Every surface (mutation, graph batch, tables, later merge and pipeline) ends in a `ChangeSet`. One
validator looks at it, one function stages it, and it leaves by the one door of `commit`.
"""

from omnigraph.write.violations import KeyConflict, ValidationFailed, Violation

__all__ = ["KeyConflict", "ValidationFailed", "Violation"]
