"""Bringing changes of one state into another: classify, combine, and conflicts as data."""
