"""Inputs of a load: lines of JSON, and tables of one type each.

Every input is streamed: it is read once, a bounded piece at a time, and passed to the row builder.
Nothing here raises for bad data: errors go to the row builder with their location.
"""
