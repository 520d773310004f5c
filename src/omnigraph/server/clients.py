"""The address of a client, also behind proxies that are configured as trusted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from starlette.types import Scope

from omnigraph.errors import InvalidInput

Network: TypeAlias = IPv4Network | IPv6Network
_FORWARDED = b"x-forwarded-for"


def read_networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Return addresses and networks of trusted proxies; raise InvalidInput for anything else."""
    found = []
    for text in texts:
        try:
            found.append(ip_network(text.strip(), strict=False))
        except ValueError as error:
            message = (
                f"'{text}' is not an IP address or network of a trusted proxy; "
                "use e.g. 10.0.0.0/8 or 127.0.0.1"
            )
            raise InvalidInput(message, code="trusted_proxy_invalid") from error
    return tuple(found)


def client_address(scope: Scope, trusted: Sequence[Network]) -> str | None:
    """Return the address a request comes from.

    `X-Forwarded-For` is read from its end as long as the addresses are trusted proxies: everything
    before the first other address was written by the client and proves nothing.
    """
    peer = scope.get("client")
    if peer is None:
        return None
    address = str(peer[0])
    for hop in reversed(_hops(scope)):
        if not _is_trusted(address, trusted) or _parsed(hop) is None:
            break
        address = hop
    return address


def _hops(scope: Scope) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return [hop.strip() for value in values for hop in value.split(",")]


def _is_trusted(text: str, trusted: Sequence[Network]) -> bool:
    address = _parsed(text)
    return address is not None and any(address in network for network in trusted)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None
