"""A server takes its address so that answers leave at once."""

import socket

from omnigraph.server.run import bind_socket
from omnigraph.server.settings import ServerSettings


def test_answers_are_sent_at_once():
    """Of other sockets asyncio leaves Nagle's wait on: 40 ms for every answer in two pieces."""
    with bind_socket(ServerSettings(port=0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP
