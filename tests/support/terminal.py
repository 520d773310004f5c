"""A program on a terminal of its own, for a conversation: send keys, wait for text."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence

PATIENCE = float(os.environ.get("TERMINAL_PATIENCE", "60"))
"""Seconds after which a text that should have appeared is a failure."""
_SIZE = struct.pack("HHHH", 40, 120, 0, 0)
# Ctrl-C reaches a program only from its controlling terminal.
_TAKE_TERMINAL = (
    "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
)


class Terminal:
    """Runs Python with some arguments on a terminal of 120 columns."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, _SIZE)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _TAKE_TERMINAL, *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=dict(env),
        )
        os.close(follower)
        self._shown = ""
        self._ended = False

    def send(self, keys: str) -> None:
        """Type some keys."""
        os.write(self._leader, keys.encode())

    def expect(self, text: str) -> str:
        """Wait for a text; return what was shown before it since the last wait."""
        deadline = time.monotonic() + PATIENCE
        while text not in self._shown:
            remaining = deadline - time.monotonic()
            assert not self._ended, f"ended before {text!r}: {self._shown!r}"
            assert remaining > 0, f"waited for {text!r}: {self._shown!r}"
            self._read(remaining)
        before, _, self._shown = self._shown.partition(text)
        return before

    def press_until(self, key: str, text: str) -> None:
        """Press a key once a second until a text appears.

        Readline notices Ctrl-C only while it waits for a key, so one that comes just after the
        last echo has no effect until the next.
        """
        deadline = time.monotonic() + PATIENCE
        while text not in self._shown:
            assert not self._ended, self._shown
            assert time.monotonic() < deadline, self._shown
            self.send(key)
            until = time.monotonic() + 1
            while text not in self._shown and time.monotonic() < until:
                self._read(max(0.0, until - time.monotonic()))
        self.expect(text)

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        deadline = time.monotonic() + PATIENCE
        while not self._ended:
            remaining = deadline - time.monotonic()
            assert remaining > 0, f"waited for the end: {self._shown!r}"
            self._read(remaining)
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()
        os.close(self._leader)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._leader], [], [], seconds)
        if not ready:
            return
        try:
            chunk = os.read(self._leader, 65536)
        except OSError:  # how Linux reports that the other end is closed
            chunk = b""
        self._ended = not chunk
        self._shown += chunk.decode(errors="replace")
