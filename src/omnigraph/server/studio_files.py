"""The files of Studio: its page, the page of the API, and their scripts and styles."""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
import secrets
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from omnigraph.server.middleware import record_route

BUILT = Path(__file__).with_name("studio")
"""Where `make ui` puts what it builds."""
PREFIX = "/studio"
_PAGES = {"/": "index.html", "/docs": "docs.html"}
_NONCE = "__CSP_NONCE__"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'nonce-{nonce}'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_IMMUTABLE = "public, max-age=31536000, immutable"
_COMPRESSED = (".js", ".css", ".svg", ".json", ".html", ".map", ".txt", ".wasm")
_NOT_BUILT = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>OmniGraph</title>
<style nonce="__CSP_NONCE__">
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 15vh auto; max-width: 38em; padding: 0 1em }
</style></head>
<body>
<h1>Studio is not built</h1>
<p>This is an installation from a source tree.
Run <code>make ui</code> there and start the server again.</p>
<p>The API works without Studio; <a href="/openapi.json">/openapi.json</a> describes it.</p>
</body>
</html>
"""


class StudioFiles:
    """The built files of a folder, listed once: no path of a request is looked up on disk."""

    def __init__(self, folder: Path = BUILT) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        self._bodies: dict[str, tuple[bytes, bytes | None]] = {}

    @property
    def routes(self) -> list[Route]:
        """The routes of the pages and of the other files."""
        return [
            *(Route(path, self._page) for path in _PAGES),
            Route(PREFIX, self._home),
            Route(f"{PREFIX}/{{name:path}}", self._file),
        ]

    async def _page(self, request: Request) -> Response:
        path = request.url.path
        record_route(request, path)
        text = _NOT_BUILT
        if _PAGES[path] in self._files:
            text = (await self._read(_PAGES[path]))[0].decode()
        nonce = secrets.token_urlsafe(16)
        body = text.replace(_NONCE, nonce).encode()
        return Response(body, media_type="text/html", headers=_page_headers(nonce))

    async def _home(self, request: Request) -> Response:
        record_route(request, PREFIX)
        return RedirectResponse("/", headers=_page_headers(""))

    async def _file(self, request: Request) -> Response:
        record_route(request, f"{PREFIX}/{{name}}")
        name = request.path_params["name"]
        if not name:
            return await self._home(request)
        if name not in self._files or name in _PAGES.values():
            return Response(status_code=404)
        plain, compressed = await self._read(name)
        cache = _IMMUTABLE if name.startswith("assets/") else "no-cache"
        headers = {**_page_headers(""), "Cache-Control": cache, "Vary": "Accept-Encoding"}
        body = plain
        if compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            body, headers["Content-Encoding"] = compressed, "gzip"
        media = mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(body, media_type=media, headers=headers)

    async def _read(self, name: str) -> tuple[bytes, bytes | None]:
        if name not in self._bodies:
            self._bodies[name] = await asyncio.to_thread(_load, self._files[name])
        return self._bodies[name]


def _load(path: Path) -> tuple[bytes, bytes | None]:
    body = path.read_bytes()
    return body, gzip.compress(body, 9) if path.suffix in _COMPRESSED else None


def _page_headers(nonce: str) -> dict[str, str]:
    policy = _POLICY.format(nonce=nonce) if nonce else _POLICY.replace(" 'nonce-{nonce}'", "")
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cache-Control": "no-cache",
    }
