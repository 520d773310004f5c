"""What the declarations of operations share: the path of a graph, and sets of statuses."""

GRAPH_PATH = "/graphs/{graph_id}"
JSON_ERRORS = (400, 404, 408, 413, 415, 422)
"""Statuses of operations with a JSON body."""
WRITE_ERRORS = (*JSON_ERRORS, 409, 424, 429, 503)
"""Statuses of operations that change a graph."""
