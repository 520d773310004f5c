"""A process of two writers that change one branch by the public API and log what became of it."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import omnigraph.graph as og
from omnigraph.errors import Contention, ExpectedVersionMismatch, OmniError
from omnigraph.write.violations import ValidationFailed
from tests.support.children import Place
from tests.support.clock import shift_clock
from tests.support.graphs import clean_at_once

SCHEMA = """
node Part { slug: String @key
  version: I64? }
node Label { slug: String @key
  code: I64? @unique }
edge Labelled: Part -> Label @card(0..1)
"""
SHARED = 24
"""Number of parts that all writers change."""
CODES = 40
"""Number of values of a unique property; most attempts to use one are refused."""
THREADS = 2
REFUSALS = (ExpectedVersionMismatch, ValidationFailed, Contention)

Log = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Assignment:
    """Where, how long and by which clock a process writes, and where it logs."""

    place: Place
    log: str
    number: int
    seconds: float
    seed: int
    skew: timedelta


def work(assignment: Assignment) -> int:
    """Write until the time is over; return the number of attempts."""
    shift_clock(assignment.skew)
    graph = assignment.place.open()
    lock, end = threading.Lock(), time.monotonic() + assignment.seconds
    counts = [0] * THREADS
    failures: list[BaseException] = []
    with open(assignment.log, "w") as file:

        def log(entry: dict[str, Any]) -> None:
            with lock:
                file.write(json.dumps(entry) + "\n")

        def write(thread: int) -> None:
            chance = random.Random(assignment.seed * THREADS + thread)
            try:
                while time.monotonic() < end:
                    name = f"{assignment.number}-{thread}-{counts[thread]}"
                    _attempt(graph, chance, name, log)
                    counts[thread] += 1
            except BaseException as error:  # noqa: BLE001 - raised below
                failures.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        while assignment.number == 0 and time.monotonic() < end:
            time.sleep(min(1.0, assignment.seconds / 8))
            with suppress(Contention, ExpectedVersionMismatch):
                graph.optimize()
            clean_at_once(graph, keep=50)
        for thread in threads:
            thread.join()
    for failure in failures:
        raise failure
    return sum(counts)


def _attempt(graph: og.Graph, chance: random.Random, name: str, log: Log) -> None:
    slug, version = f"shared-{chance.randrange(SHARED)}", chance.randrange(1 << 40)
    kind = chance.choice(["add", "add", "put", "put", "set", "delete", "code", "label", "relabel"])
    change = {"kind": kind, "slug": slug, "version": version, "name": name}
    try:
        commit = _perform(graph, change)
    except REFUSALS as error:
        log({**change, "refused": error.code})
    except OmniError as error:
        raise AssertionError(f"{error.code}: {error.message}") from error
    else:
        log({**change, "commit": commit.id if commit is not None else None})


def _perform(graph: og.Graph, change: dict[str, Any]) -> Any:
    name, slug, version = change["name"], change["slug"], change["version"]
    match change["kind"]:
        case "add":
            text = """query add($slug: String, $version: I64) {
              insert Part { slug: $slug, version: $version }
              insert Label { slug: $slug }
              insert Labelled { from: $slug, to: $slug }
            }"""
            return graph.mutate(text, {"slug": name, "version": version}).commit
        case "put":
            return graph.load({"Part": [{"slug": slug, "version": version}]}).commit
        case "set":
            text = """query set($slug: String, $version: I64) {
              update Part set { version: $version } where slug = $slug
            }"""
            return graph.mutate(text, {"slug": slug, "version": version}).commit
        case "delete":
            text = "query remove($slug: String) { delete Part where slug = $slug }"
            return graph.mutate(text, {"slug": slug}).commit
        case "label":
            return graph.load({"Label": [{"slug": slug}]}, partial=True).commit
        case "relabel":
            return graph.load({"Labelled": [{"from": slug, "to": slug}]}, mode="overwrite").commit
        case _:
            rows = [{"slug": name, "code": version % CODES}]
            return graph.load({"Label": rows}, mode="append").commit


def replay(model: dict[str, dict[str, Any]], change: dict[str, Any]) -> None:
    """Apply a change to a model."""
    name, slug, version = change["name"], change["slug"], change["version"]
    match change["kind"]:
        case "add":
            model["Part"][name] = version
            model["Label"][name] = None
            model["Labelled"][name] = name
        case "put":
            model["Part"][slug] = version
        case "set":
            assert slug in model["Part"], "an update that found nothing is not a commit"
            model["Part"][slug] = version
        case "delete":
            del model["Part"][slug]
            model["Labelled"].pop(slug, None)
        case "label":
            model["Label"].setdefault(slug, None)
        case "relabel":
            assert slug in model["Part"], "an edge without its source"
            assert slug in model["Label"], "an edge without its destination"
            model["Labelled"] = {slug: slug}
        case _:
            code = version % CODES
            assert code not in model["Label"].values(), "a unique value exists twice"
            model["Label"][name] = code
