"""Maintenance on executors: optimize and verify."""
