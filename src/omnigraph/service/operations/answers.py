"""Conversions of results of the graph to answers of the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from omnigraph.commit.model import Commit
from omnigraph.merge.model import MergeResult
from omnigraph.service import wire

_AnswerT = TypeVar("_AnswerT")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_answer(members: object, answer: type[_AnswerT]) -> _AnswerT:
    """Return JSON members as a struct of the wire."""
    return msgspec.convert(members, answer)


def commit_output(commit: Commit) -> wire.CommitOutput:
    """Return the wire form of a commit."""
    return to_answer(commit.to_json(), wire.CommitOutput)


def merge_output(result: MergeResult) -> wire.BranchMergeOutput:
    """Return the wire form of a merge, or of its dry run."""
    return to_answer(result.to_json(), wire.BranchMergeOutput)


def epoch_micros(instant: datetime) -> int:
    """Return the microseconds from 1970 to an instant."""
    return (instant - _EPOCH) // timedelta(microseconds=1)
