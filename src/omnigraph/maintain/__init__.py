"""Upkeep: verify what storage holds, and clean up what no retained snapshot needs.

Everything here may be interrupted and repeated. Nothing here changes an answer.
"""
