"""What changed between two states of a graph: differences, the change feed, baselines."""
