"""Read tokens, policies, stored queries and certificates again while a server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from ssl import SSLContext

from omnigraph.errors import OmniError
from omnigraph.server.request import AppState
from omnigraph.server.service_loader import rebuild_service
from omnigraph.server.settings import ServerSettings, check_certificate, replace_certificate
from omnigraph.service.cluster.serving import open_store
from omnigraph.service.cluster.store import ClusterStore

_log = logging.getLogger("omnigraph.server")


class Reloader:
    """Replaces what a server read from files: everything, or nothing if any of it is invalid.

    Requests under way finish with what they began with. Reloads run one after the other.
    """

    def __init__(
        self,
        settings: ServerSettings,
        environment: Mapping[str, str],
        front: AppState,
        tls: Callable[[], SSLContext | None],
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._front = front
        self._tls = tls
        self._running = asyncio.Lock()

    async def reload(self) -> bool:
        """Return whether the new files are in use; if not, the log has the reason."""
        async with self._running:
            try:
                await asyncio.to_thread(self._replace)
            except OmniError as error:
                facts = {"code": error.code}
                _log.error("reload refused, nothing changed: %s", error.message, extra=facts)
                return False
            except Exception:  # noqa: BLE001 - the server goes on with what it has
                _log.exception("reload failed, nothing changed")
                return False
        _log.info("reloaded tokens, policies, stored queries and certificates")
        return True

    def _replace(self) -> None:
        service = rebuild_service(self._settings, self._environment, self._front.service)
        check_certificate(self._settings)
        context = self._tls()
        if context is not None:
            replace_certificate(context, self._settings)
        self._front.service = service


# ----------------------------------------------------------------------
# Activate a newly applied revision of a cluster while a server runs.


CLUSTER_POLL_SECONDS = 2.0
"""Seconds between two looks at the ledger, which is one small object."""
CLUSTER_RETRY_SECONDS = 60.0
"""Seconds after which, at most, a revision that was refused is tried again."""


class ClusterWatcher:
    """Reads the revision of the ledger now and then, and reloads when it is another one.

    A revision that cannot be served is reported by the log and by `/readyz`; what was served before
    stays, and the revision is tried again: what stands in its way need not be in the ledger.
    """

    def __init__(
        self, cluster: str | None, front: AppState, reload: Callable[[], Awaitable[bool]]
    ) -> None:
        self._cluster = cluster
        self._front = front
        self._reload = reload
        self._store: ClusterStore | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, if a cluster is served."""
        if self._cluster is not None:
            self._task = asyncio.ensure_future(self._run(self._cluster))

    async def _run(self, cluster: str) -> None:
        wait = CLUSTER_POLL_SECONDS
        while True:
            await asyncio.sleep(wait)
            try:
                applied = await asyncio.to_thread(self._applied, cluster)
            except OmniError as error:
                _log.warning("cannot read the ledger of the cluster: %s", error.message)
                wait = min(2 * wait, CLUSTER_RETRY_SECONDS)
                continue
            refused = await self._activate(applied)
            wait = min(2 * wait, CLUSTER_RETRY_SECONDS) if refused else CLUSTER_POLL_SECONDS

    async def _activate(self, applied: int) -> bool:
        """Serve a revision unless it is served; return whether it was refused."""
        front = self._front
        if applied == front.service.revision:
            front.readiness.revision_refused = None
            return False
        if await self._reload():
            front.readiness.revision_refused = None
            _log.info("serving revision %s of the cluster", front.service.revision)
            return False
        front.readiness.revision_refused = applied
        served = front.service.revision
        _log.error("revision %s cannot be served, %s is still served", applied, served)
        return True

    def _applied(self, cluster: str) -> int:
        if self._store is None:
            self._store = open_store(cluster, None)
        return self._store.read().state.revision
