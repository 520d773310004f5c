"""Graph algorithms over arrays of edges in one process: a value for every node.

`algorithms` is their registry, which Spark shares. Every run gives the same values: ranks are added
as integers, and ties go to what comes first in the order of type and ID.
"""
