"""A TypeScript client that is generated from the contract walks over every route."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.serving import TOKENS

HERE = Path(__file__).parent
CONTRACT = HERE / "contract" / "openapi-shape.json"
TYPES = (
    "--noEmit --strict --skipLibCheck --target es2022 --module esnext --moduleResolution bundler"
)

pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")


def run(folder, *command):
    environment = {**os.environ, "CONTRACT": str(CONTRACT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_generated_client_walks_over_every_route(guarded_server, tmp_path):
    folder = tmp_path / "npm"
    shutil.copytree(HERE / "npm", folder)
    run(folder, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund")
    run(folder, "npx", "openapi-ts")
    run(folder, "npx", "tsc", *TYPES.split(), "--moduleResolution", "bundler", "scenario.ts")
    bundle = "--bundle --platform=node --format=esm --outfile=scenario.mjs"
    run(folder, "npx", "esbuild", "scenario.ts", *bundle.split())
    said = run(
        folder,
        *("node", "scenario.mjs", guarded_server.url),
        *(TOKENS["act-ada"], "contract", TOKENS["act-bob"]),
    )
    assert said == "done: 10 commits, 10 refusals\n"
    called, made = (folder / name for name in ("scenario.ts", "client/sdk.gen.ts"))
    assert names(r"\bapi\.(\w+)", called) == names(r"export const (\w+) =", made)


def names(pattern, file):
    return set(re.findall(pattern, file.read_text()))
