"""The command-line interface: parse arguments, call the API, print the result.

Every command prints text for people on a terminal, plain text in a pipe and JSON with `--json`.
Exit codes: 0 success, 1 failure, 2 invalid usage.
"""
