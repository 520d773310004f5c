"""Simulate a power failure: record what a process synced, kill it, and lose the rest.

Lance never syncs, so a file or a name that `FileSync.fsync` did not get is not stable. The recorder
takes the place of that function: it notes the inode of a synced file, and the names in a synced
folder. `lose` then tears contents and drops or restores names that are not stable, each
independently of the others.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnigraph.storage import file_sync

MODES = ("names", "versions", "zeros", "cut", "empty")
"""Losses of all that is not stable: names, the contents of version files, or those of all files."""
_BLOCK = 4096


@dataclass(slots=True)
class Disk:
    """What survives: names with their inodes, and contents of inodes by time and size."""

    names: dict[str, int] = field(default_factory=dict)
    contents: dict[int, tuple[int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Path, shadow: Path) -> Disk:
        """Return a disk on which everything below a folder is stable."""
        disk = cls()
        for path in sorted(base.rglob("*")):
            stat = path.stat()
            disk.names[str(path.relative_to(base))] = stat.st_ino
            if path.is_file():
                disk.contents[stat.st_ino] = (stat.st_mtime_ns, stat.st_size)
                _keep(path, stat.st_ino, shadow)
        return disk

    def apply(self, log: Path) -> None:
        """Apply the syncs of a process, in order."""
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if "names" not in entry:
                self.contents[entry["inode"]] = (entry["time"], entry["size"])
                continue
            folder = entry["folder"]
            gone = [n for n in self.names if _parent(n) == folder]
            for name in gone:
                del self.names[name]
            for name, inode in entry["names"].items():
                self.names[_join(folder, name)] = inode

    def below(self, folder: str) -> dict[str, int]:
        """Return the stable names in a folder."""
        found = {name: inode for name, inode in self.names.items() if _parent(name) == folder}
        return {name.rpartition("/")[2]: inode for name, inode in found.items()}


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _keep(file: Path, inode: int, shadow: Path) -> None:
    """Keep a link to a file, so that a name that comes back has its content."""
    copy = shadow / str(inode)
    if not copy.exists():
        os.link(file, copy)


class Recorder:
    """Records syncs of this process below a folder, and kills it at a step; -1 is never."""

    def __init__(self, base: Path, log: Path, shadow: Path, step: int) -> None:
        self._base = base
        self._log = log
        self._shadow = shadow
        self._last = step
        self.count = 0
        self._lock = threading.RLock()

    def install(self) -> None:
        """Take the place of the function that syncs, for graphs that are opened from now on."""
        file_sync.fsync_path = self.sync

    def step(self, name: str) -> None:
        """Count a step; kill the process if it is its last."""
        with self._lock:
            if self.count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1

    def sync(self, path: Path) -> None:
        """Record the sync of a file or a folder."""
        with self._lock:
            self.step(f"sync {path}")
            stat = path.stat()
            if path.is_dir():
                if not path.is_relative_to(self._base):
                    return
                names = {one.name: one.inode() for one in os.scandir(path)}
                folder = str(path.relative_to(self._base))
                self._note({"folder": "" if folder == "." else folder, "names": names})
            else:
                _keep(path, stat.st_ino, self._shadow)
                self._note({"inode": stat.st_ino, "time": stat.st_mtime_ns, "size": stat.st_size})

    def _note(self, entry: Mapping[str, Any]) -> None:
        with self._log.open("a") as log:
            log.write(json.dumps(entry) + "\n")


# --- losing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unstable:
    """What a power failure may change: a name or a content, below the folder of the graph.

    `old` is the content that a name had before, None if it had none.
    """

    path: str
    is_name: bool
    old: Path | None = None


def find_unstable(base: Path, disk: Disk, shadow: Path, folder: str = "") -> Iterator[Unstable]:
    """Yield everything below a folder that is not stable, folders before what is in them."""
    stable = disk.below(folder)
    current = {one.name: one.inode() for one in os.scandir(base / folder)}
    for name in sorted(stable.keys() | current.keys()):
        path, before, now = _join(folder, name), stable.get(name), current.get(name)
        if before != now:
            copy = shadow / str(before)
            old = copy if before is not None and copy.exists() else None
            if now is not None or old is not None:
                yield Unstable(path, is_name=True, old=old)
        if now is None:
            continue
        stat = (base / path).stat()
        if (base / path).is_dir():
            yield from find_unstable(base, disk, shadow, path)
        elif disk.contents.get(now) != (stat.st_mtime_ns, stat.st_size):
            yield Unstable(path, is_name=False)


def lose(base: Path, unstable: Sequence[Unstable], mode: str | int) -> list[str]:
    """Change what is not stable below a copy of a folder; return what was changed.

    `mode` is one of MODES, or a number that seeds a random choice for each name and content.
    """
    chance, changed = random.Random(mode), list[str]()
    for one in unstable:
        path, kind = base / one.path, _choose(one, mode, chance)
        if not path.parent.exists() or (not one.is_name and not path.is_file()):
            continue
        if one.is_name and kind == "lose":
            _remove(path)
            if one.old is not None:
                path.write_bytes(one.old.read_bytes())
            changed.append(f"name {one.path}")
        elif not one.is_name:
            data = path.read_bytes()
            torn = _torn(data, kind, chance)
            if torn != data:
                path.write_bytes(torn)
                changed.append(f"{kind} {one.path}")
    return changed


def _choose(one: Unstable, mode: str | int, chance: random.Random) -> str:
    """Return whether a name is lost, or how a content is torn."""
    if isinstance(mode, int):
        if one.is_name:
            return chance.choice(["keep", "lose"])
        return chance.choice(["keep", "empty", "zeros", "cut", "hole"])
    if one.is_name:
        return "lose" if mode == "names" else "keep"
    if mode == "versions":
        return "empty" if one.path.endswith(".manifest") else "keep"
    return "keep" if mode == "names" else mode


def _torn(data: bytes, kind: str, chance: random.Random) -> bytes:
    match kind:
        case "empty":
            return b""
        case "zeros":
            return bytes(len(data))
        case "cut":
            return data[: len(data) // 2]
        case "hole":
            start = chance.randrange(len(data) // _BLOCK + 1) * _BLOCK
            hole = bytes(min(_BLOCK, len(data) - start))
            return data[:start] + hole + data[start + _BLOCK :]
        case _:
            return data


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
