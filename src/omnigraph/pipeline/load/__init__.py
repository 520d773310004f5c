"""Distributed loads: stage, exchange keys, check, reject, embed, rebase, publish."""
