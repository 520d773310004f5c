"""Settings and limits of a server."""

from __future__ import annotations

from dataclasses import dataclass
from ssl import PROTOCOL_TLS_SERVER, SSLContext

from msgspec import Struct, field

from omnigraph.errors import InvalidInput
from omnigraph.graph.modes import Durability

# Limits of callers: time, bytes, connections.


MEBIBYTE = 1024 * 1024
MAX_BODY_BYTES = MEBIBYTE
MAX_LOAD_BYTES = 32 * MEBIBYTE
WRITER_THREADS = 64
"""Changes that may be under way or wait for each other, in one process."""
STREAM_CHUNK_BYTES = 64 * 1024
"""Bytes of lines that are sent at once."""
STREAM_SHARE = 256 * 1024
"""Bytes one streamed answer may hold on its way."""
MAX_STREAMS = 8
"""Exports and baselines under way at once, in one process."""
STREAM_WAIT_SECONDS = 0.25
"""Seconds that one more waits for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What a caller may take.

    `deadline` is until an answer begins; a change under way is finished behind it. `body` is until
    a body has arrived, `send` until a piece of an answer has been taken, `idle` until an open
    connection has sent a request, `shutdown` until what is under way is given up. A connection is
    closed with an answer once it is `age` seconds old, a quarter more or less.
    """

    deadline: float = 300.0
    body: float = 60.0
    send: float = 60.0
    idle: float = 30.0
    shutdown: float = 30.0
    age: float = 300.0
    threads: int = 8
    connections: int = 1_000


class MaintenanceOptions(Struct, kw_only=True, frozen=True):
    """Automatic maintenance of the served graphs, in a process of its own.

    `metrics` is the file in which that process records what it did.
    """

    interval: float = 60.0
    cpu_share: float = 0.25
    metrics: str | None = None


class StudioOptions(Struct, kw_only=True, frozen=True):
    """A local server for one person, who signs in with a one-time token.

    `token` is the bearer token it stands for, and `actor` the actor of both.
    """

    one_time_token: str
    token: str
    actor: str


class ServerSettings(Struct, kw_only=True, frozen=True):
    """What to serve and how; a process that is one of several reads it as JSON.

    `cluster` is the folder or the storage of a cluster, in place of everything that follows it.
    `graphs` are addresses by id; `queries` and `policies` are folders and files by graph id.
    With `agents_only` there are tools for agents and nothing else. `trusted_proxies` are addresses
    and networks whose `X-Forwarded-For` is believed. Without `maintenance` there is none.
    Queries of `slow_query_seconds` and more are logged with their plan. `session_key` signs the
    cookies of browsers; `studio` makes it a local server. `metrics_address` is where metrics are
    served instead of the public address.
    """

    cluster: str | None = None
    graphs: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    server_policy: str | None = None
    external_blobs: list[str] = field(default_factory=list)
    durability: Durability | None = None
    unauthenticated: bool = False
    require_all: bool = False
    agents_only: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    certificate: str | None = None
    key: str | None = None
    trusted_proxies: list[str] = field(default_factory=list)
    query_seconds: float = 60.0
    slow_query_seconds: float | None = None
    query_memory: int = 512 * 1024 * 1024
    query_memory_total: int = 2 * 1024 * 1024 * 1024
    maintenance: MaintenanceOptions | None = None
    metrics_address: str | None = None
    session_key: bytes = b""
    studio: StudioOptions | None = None
    limits: ServerLimits = field(default_factory=ServerLimits)


# ----------------------------------------------------------------------
# Certificates of a server: checked before they are used, and replaced while it serves.


def check_certificate(settings: ServerSettings) -> None:
    """Raise InvalidInput unless the certificate and its key can be used together."""
    if settings.certificate is None and settings.key is None:
        return
    if settings.certificate is None or settings.key is None:
        raise InvalidInput("TLS needs a certificate and its key", code="tls_incomplete")
    try:
        SSLContext(PROTOCOL_TLS_SERVER).load_cert_chain(settings.certificate, settings.key)
    except OSError as error:
        message = f"the certificate and its key cannot be used: {error.strerror or error}"
        raise InvalidInput(message, code="tls_invalid") from error


def replace_certificate(context: SSLContext, settings: ServerSettings) -> None:
    """Present the certificate of the files to connections from now on; it was checked before."""
    assert settings.certificate is not None, "a server with a TLS context has a certificate"
    context.load_cert_chain(settings.certificate, settings.key)
