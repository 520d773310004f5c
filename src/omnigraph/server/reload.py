"""Read tokens, policies, stored queries and certificates again while a server runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from ssl import SSLContext

from omnigraph.errors import OmniError
from omnigraph.server.asked import Front
from omnigraph.server.boot import remake_service
from omnigraph.server.settings import Settings
from omnigraph.server.tls import check_certificate, replace_certificate

_log = logging.getLogger("omnigraph.server")


class Reloader:
    """Replaces what a server read from files: everything, or nothing if any of it is invalid.

    Requests under way finish with what they began with. Reloads run one after the other.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        front: Front,
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
        service = remake_service(self._settings, self._environment, self._front.service)
        check_certificate(self._settings)
        context = self._tls()
        if context is not None:
            replace_certificate(context, self._settings)
        self._front.service = service
