"""One-row upserts of PostgreSQL by 64 clients, for comparison, where its server is installed.

The server runs in a temporary folder, with its default durability, and listens on a socket there.
"""

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

CLIENTS = 64
TABLE = "CREATE TABLE note (slug text PRIMARY KEY, text text)"
UPSERT = """\\set number random(1, 1000000000)
INSERT INTO note VALUES (:client_id || '-' || :number, NULL)
  ON CONFLICT (slug) DO UPDATE SET text = excluded.text;
"""


def upserts_per_second(seconds: float) -> float | None:
    """Return the commits per second of all clients; None if PostgreSQL is not installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/pgbench"))
    if not programs:
        return None
    folder, bin_ = Path(tempfile.mkdtemp(prefix="omnigraph-bench-")), programs[-1].parent
    user = _unprivileged_user()
    if user is not None:
        shutil.chown(folder, user)

    def run(program: str, *arguments: str) -> str:
        command: Sequence[str] = (str(bin_ / program), *arguments)
        done = subprocess.run(
            command, cwd=folder, user=user, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    try:
        run("initdb", "--pgdata=data", "--username=bench", "--auth=trust")
        options = f"-k {folder} -c listen_addresses=''"
        run("pg_ctl", "--pgdata=data", "--wait", "--log=log", f"--options={options}", "start")
        try:
            (folder / "upsert.sql").write_text(UPSERT, encoding="ascii")
            session = (f"--host={folder}", "--username=bench")
            run("psql", *session, f"--command={TABLE}", "postgres")
            counts = (f"--client={CLIENTS}", "--jobs=2", f"--time={round(seconds)}")
            report = run("pgbench", *session, *counts, "-n", "--file=upsert.sql", "postgres")
        finally:
            run("pg_ctl", "--pgdata=data", "--mode=immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    [rate] = re.findall(r"^tps = ([0-9.]+)", report, re.MULTILINE)
    return float(rate)


def _unprivileged_user() -> str | None:
    """Return a user to run the server as, which refuses to run as root."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)
