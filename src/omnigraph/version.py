"""Versions of the package and of the storage format it writes."""

__version__ = "0.1.0"

INTERNAL_SCHEMA_VERSION = 1
"""The `omnigraph:internal_schema_version` stamp that this release reads and writes."""
