"""Run `omnigraph` as `python -m omnigraph.cli`."""

from omnigraph.cli.app import main

main()
