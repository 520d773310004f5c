"""Runs a real S3-compatible server (moto) beside the tests, in a process of its own.

The server reads its standard input and ends when that closes, so it never outlives the tests:
not after a failure, not after Ctrl-C, not when the tests themselves are killed.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

BUCKET = "graphs"
_PROGRAM = Path(__file__).with_name("moto_server.py")


@dataclass(frozen=True, slots=True)
class Server:
    """A running server with the bucket `BUCKET`, and those that `fresh` names."""

    endpoint: str
    pid: int
    _numbers: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def options(self) -> dict[str, str]:
        """The storage options that reach this server."""
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The environment that reaches this server without any option."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
        }

    @property
    def lance_options(self) -> dict[str, str]:
        """The options for bare Lance and obstore, which infer nothing from the endpoint."""
        return {**self.options, "allow_http": "true", "aws_virtual_hosted_style_request": "false"}

    def fresh(self) -> str:
        """Return an address in an empty bucket; moto lists a bucket by reading all its keys."""
        return f"s3://{BUCKET}-{next(self._numbers)}/graph"

    def fresh_folder(self) -> str:
        """Return a folder of the shared bucket that nothing was ever stored in."""
        return str(next(self._numbers))


@contextmanager
def s3_server(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run a server with an empty bucket for as long as the block lasts."""
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM), BUCKET],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(environment or {})},
        start_new_session=True,  # Ctrl-C is for the tests; the server ends with its input
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port.isdigit(), "the S3 server did not start"
        yield Server(f"http://127.0.0.1:{port}", process.pid)
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
