"""Certificates of a server: checked before they are used, and replaced while it serves."""

from __future__ import annotations

from ssl import PROTOCOL_TLS_SERVER, SSLContext

from omnigraph.errors import InvalidInput
from omnigraph.server.settings import Settings


def check_certificate(settings: Settings) -> None:
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


def replace_certificate(context: SSLContext, settings: Settings) -> None:
    """Present the certificate of the files to connections from now on; it was checked before."""
    assert settings.certificate is not None, "a server with a TLS context has a certificate"
    context.load_cert_chain(settings.certificate, settings.key)
