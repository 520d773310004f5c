"""Sources of pipelines: readers, splits, and the mapping of their rows to types."""
