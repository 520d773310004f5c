"""Queries on Spark: a typed plan becomes data frames over one pinned snapshot.

The plan is the one the local engine executes, and the answer is the same. What Spark cannot do as
the language says is refused before anything is read.
"""
