"""Spark sessions: Java, start and stop, progress, tasks on executors, error messages.

Not named `session`: that is a function of `omnigraph.pipeline`.
"""
