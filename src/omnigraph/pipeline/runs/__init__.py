"""Runs of pipelines: records, leases, recovery, the runner, plans and reports."""
