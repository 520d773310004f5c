"""Writes: mutations and loads become a change set, which is validated, staged and published.

Every kind of write (mutation, graph batch, tables, merge) ends in a `ChangeSet`. One validator
checks it, one function stages it, and `commit` publishes it.
"""

from omnigraph.write.violations import KeyConflict, ValidationFailed, Violation

__all__ = ["KeyConflict", "ValidationFailed", "Violation"]
