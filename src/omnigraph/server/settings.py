"""This module defines everything a server is told when it starts."""

from __future__ import annotations

from msgspec import Struct, field

from omnigraph.server.limits import Limits


class Settings(Struct, kw_only=True, frozen=True):
    """What to serve and how; a process that is one of several reads it as JSON.

    `cluster` is the folder or the storage of a cluster, in place of everything that follows it.
    `graphs` are addresses by id; `queries` and `policies` are folders and files by graph id.
    With `agents_only` there are tools for agents and nothing else. `turns` is a folder in which
    the processes of a server wait for each other. `trusted_proxies` are addresses and networks
    whose `X-Forwarded-For` is believed.
    """

    cluster: str | None = None
    graphs: dict[str, str] = field(default_factory=dict)
    queries: dict[str, str] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    server_policy: str | None = None
    external_blobs: list[str] = field(default_factory=list)
    unauthenticated: bool = False
    require_all: bool = False
    agents_only: bool = False
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    turns: str | None = None
    certificate: str | None = None
    key: str | None = None
    trusted_proxies: list[str] = field(default_factory=list)
    query_seconds: float = 60.0
    query_memory: int = 512 * 1024 * 1024
    limits: Limits = field(default_factory=Limits)
