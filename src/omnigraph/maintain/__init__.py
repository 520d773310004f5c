"""Maintenance: optimize, verify, cleanup, repair, export and archives.

Every operation may be interrupted and repeated, and none changes query results.
"""
