"""The command line: read arguments, call a room below, render the answer.

Every command is pleasant on a terminal, plain in a pipe and exact with `--json`. Exit codes: 0 ok,
1 any failure, 2 wrong usage. Nothing here decides anything.
"""
