"""Builders and helpers shared by the suites; import them as ``tests.support.<module>``."""
