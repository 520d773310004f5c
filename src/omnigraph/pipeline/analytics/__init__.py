"""Algorithms over a whole graph, as data frames: what a node is among all the others.

Each algorithm takes a `Network` and gives a value for each node. It is the same value in every run:
numbers are added as integers, and ties go to what comes first in the order of texts.
"""
