"""Leave behind what a process leaves that dies in the middle of a long operation."""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

import omnigraph.graph as og
from omnigraph.commit.intent_log import IntentLog, OperationIntent
from omnigraph.commit.staged_commit import StagedCommit, new_commit_id
from tests.support.graphs import Change, prepare


def leave_in_flight(graph: og.Graph, *changes: Change, complete: bool) -> OperationIntent:
    """Stage changes on main under an intent, and go no further."""
    intents = IntentLog(graph._manifest.objects)
    empty = StagedCommit(id=new_commit_id(), operation="load")
    intent = intents.begin("main", None, empty)
    staged = prepare(graph, *changes, commit_id=empty.id).staged
    return intents.update(intent, staged, complete=complete)


def age(graph: og.Graph, intent: OperationIntent, by: timedelta) -> None:
    """Make an intent look as if its last heartbeat was some time ago."""
    moment = time.time() - by.total_seconds()
    os.utime(Path(graph.uri, intent.path), (moment, moment))
