"""Query execution over one snapshot."""
