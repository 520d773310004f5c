"""The object store below Lance: create-if-absent, listings and ages, on disk and in a bucket."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import LocalStore, S3Store

from tests.support.s3 import BUCKET, s3_server

ROUNDS = 20


def open_store(place):
    kind, where, options = place
    if kind == "local":
        return LocalStore(prefix=where, mkdir=True, automatic_cleanup=True)
    config = {name: value for name, value in options.items() if name != "allow_http"}
    return S3Store(BUCKET, prefix=where, config=config, client_options={"allow_http": True})


@pytest.fixture(params=["local", "s3"])
def place(request, tmp_path):
    if request.param == "local":
        return "local", str(tmp_path), {}
    server = request.getfixturevalue("s3")
    return "s3", server.fresh_folder(), server.lance_options


@pytest.fixture
def store(place):
    return open_store(place)


def listed(store, prefix=None):
    return {found["path"]: found for page in obstore.list(store, prefix) for found in page}


# storage/object_store.py put_if_absent and probe.
def test_second_creation_of_an_object_is_refused_and_changes_nothing(store):
    obstore.put(store, "a/one", b"first", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "a/one", b"second", mode="create")
    assert bytes(obstore.get(store, "a/one").bytes()) == b"first"


def race(racer, place, rounds):
    store, won = open_store(place), []
    for number in range(rounds):
        racer.together()
        try:
            obstore.put(store, f"race/{number}", str(racer.number).encode(), mode="create")
            won.append(True)
        except AlreadyExistsError:
            won.append(False)
    return won


def test_of_four_racing_creators_of_an_object_exactly_one_wins(place, store, racers):
    won = racers.run(race, place, ROUNDS)
    for number, outcomes in enumerate(zip(*won, strict=True)):
        assert outcomes.count(True) == 1
        content = bytes(obstore.get(store, f"race/{number}").bytes())
        assert content == str(outcomes.index(True)).encode()


# storage/object_store.py put: intents are rewritten in place.
def test_plain_put_replaces_an_object(store):
    obstore.put(store, "a", b"old")
    obstore.put(store, "a", b"new")
    assert bytes(obstore.get(store, "a").bytes()) == b"new"


# storage/object_store.py part: workers read buckets out of the files of others.
def test_part_of_an_object_is_a_buffer_of_its_bytes(store):
    obstore.put(store, "a", b"0123456789")
    assert memoryview(obstore.get_range(store, "a", start=3, end=6)) == b"345"


# storage/object_store.py get and delete: what is gone is fine.
def test_object_that_is_not_there_is_file_not_found(store):
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "none")


def test_deletion_of_what_is_not_there_is_file_not_found_on_disk_and_fine_in_a_bucket(place, store):
    if place[0] == "local":
        with pytest.raises(FileNotFoundError):
            obstore.delete(store, "none")
    else:
        obstore.delete(store, "none")


# maintain/cleanup.py: what to sweep is decided by paths and ages of a listing.
def test_listing_returns_paths_below_the_root_sizes_and_ages(store):
    before = datetime.now(UTC) - timedelta(seconds=2)
    for path in ("a/one", "a/deep/two", "ab/three"):
        obstore.put(store, path, path.encode())
    found = listed(store, "a")
    assert {path: info["size"] for path, info in found.items()} == {"a/one": 5, "a/deep/two": 10}
    for info in found.values():
        assert before <= info["last_modified"] <= datetime.now(UTC) + timedelta(seconds=2)


# maintain/verify.py: datasets are found as folders.
def test_listing_with_delimiter_returns_folders(store):
    for path in ("nodes/a/data/1", "nodes/b/data/1", "nodes/file"):
        obstore.put(store, path, b"")
    found = obstore.list_with_delimiter(store, "nodes")["common_prefixes"]
    assert sorted(path.rstrip("/") for path in found) == ["nodes/a", "nodes/b"]


# maintain/cleanup.py lists datasets of more files than a page of a listing holds.
def test_listing_of_several_pages_is_complete():
    with s3_server({"MOTO_S3_DEFAULT_MAX_KEYS": "10"}) as server:
        store = open_store(("s3", "many", server.lance_options))
        names = {f"a/{number:02}" for number in range(35)} | {f"b{n}/x" for n in range(15)}
        for name in names:
            obstore.put(store, name, b"")
        assert set(listed(store)) == names
        assert len(obstore.list_with_delimiter(store)["common_prefixes"]) == 16


# storage/object_store.py: listings of nothing are empty, also where no folder is.
def test_listing_of_nothing_is_empty(store):
    assert listed(store, "none") == {}
    assert obstore.list_with_delimiter(store, "none")["common_prefixes"] == []


# storage/object_store.py reach: a bucket that is not there differs from an empty one.
def test_listing_of_a_missing_bucket_fails(s3):
    config = {name: value for name, value in s3.lance_options.items() if name != "allow_http"}
    store = S3Store("no-such-bucket", config=config, client_options={"allow_http": True})
    with pytest.raises(GenericError, match="NoSuchBucket"):
        listed(store)


# storage/object_store.py reach: why storage is asked before Lance is. Lance tries a listing six
# times
# over, each with retries of its own, so without limits a silent endpoint is given up after minutes.
def test_lance_gives_up_a_silent_endpoint_after_six_timeouts(s3):
    with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        limits = {"read_timeout": "200ms", "client_max_retries": "0", "client_retry_timeout": "1"}
        start = time.monotonic()
        with pytest.raises(ValueError, match="error sending request"):
            lance.dataset(
                "s3://graphs/none",
                storage_options={**s3.lance_options, "aws_endpoint": endpoint, **limits},
            )
        assert 6 * 0.2 < time.monotonic() - start < 60


# tests/support/s3.py: no server outlives its tests, not even when they are killed.
def test_server_of_the_tests_ends_with_the_process_that_started_it():
    code = """
from tests.support.s3 import s3_server
with s3_server() as server:
    print(server.pid, flush=True)
    input()
"""
    tests = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with tests:
        server = int(tests.stdout.readline())
        os.kill(server, 0)
        tests.kill()
        tests.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{server}/cmdline").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


# tests/support/s3.py: the stand-in must refuse what S3 refuses, or no race on it proves anything.
def test_server_of_the_tests_enforces_create_if_absent(s3):
    headers = {
        "If-None-Match": "*",
        "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request",
    }

    def put(content):
        url = f"{s3.endpoint}/{BUCKET}/conditional"
        request = urllib.request.Request(url, content, headers, method="PUT")
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status

    assert put(b"first") == 200
    with pytest.raises(urllib.error.HTTPError) as caught:
        put(b"second")
    with caught.value as refusal:
        assert refusal.code == 412
