"""Pipeline files: fields, parser, checks against types and sources, selection, JSON Schema.

Nothing here needs Spark.
"""
