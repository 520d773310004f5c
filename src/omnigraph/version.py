"""Versions of the package and of the storage format it writes."""

__version__ = "0.2.0"

INTERNAL_SCHEMA_VERSION = 2
"""The `omnigraph:internal_schema_version` stamp that this release writes."""

READABLE_SCHEMA_VERSIONS = (1, 2)
"""The stamps that it reads; the first commit on a branch upgrades the manifest of the branch."""
