"""Proposals: requests to merge a branch, with comments, reviews and checks.

What happens to a proposal is a list of events (`commit/proposal_log.py`); `model` folds them to
what people see. `requirements` decides whether a proposal satisfies the protection of its target,
`merging` merges it: the merge commit names the proposal, and publishing it is what merges it.
"""
