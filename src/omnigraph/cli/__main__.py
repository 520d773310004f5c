"""This module lets `python -m omnigraph.cli` be the program `omnigraph`."""

from omnigraph.cli.app import main

main()
