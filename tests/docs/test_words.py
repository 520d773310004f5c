"""The check of words: what it reads, and what it reports."""

import subprocess
import sys
from importlib import util

from tests.support.program import ROOT

SCRIPT = ROOT / "scripts" / "check_words.py"


def _module():
    spec = util.spec_from_file_location("check_words", SCRIPT)
    module = util.module_from_spec(spec)
    sys.modules["check_words"] = module
    spec.loader.exec_module(module)
    return module


def test_strings_docstrings_and_comments_are_checked(tmp_path, monkeypatch):
    checks = _module()
    monkeypatch.setattr(checks, "ROOT", tmp_path)
    path = tmp_path / "words.py"
    path.write_text(
        '"""This module reads."""\n'
        "# nobody reads this\n"
        'raise ValueError(f"{path} is told twice")\n'
        'click.option("--x", help="Whoever asks.")\n'
        "tell = 'tell'\n"
        'log.info("A fine message.")\n'
    )
    found = list(checks.findings(checks.source_texts(path)))
    assert sorted((text.line, text.role) for text in found) == [
        (1, "docstring"),
        (2, "comment"),
        (3, "message"),
        (4, "help"),
    ]
    roles = {text.text: text.role for text in checks.source_texts(path)}
    assert roles["A fine message."] == "log"


def test_user_visible_strings_are_listed_with_their_role():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--list"], capture_output=True, text=True, check=True
    )
    assert "help: 'How to handle entities that already exist.'" in done.stdout
    assert "message: 'no query given: pass either --query FILE or -e TEXT'" in done.stdout
