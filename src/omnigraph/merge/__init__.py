"""Three-way merge: find the base, compare, combine, and report conflicts as data."""
