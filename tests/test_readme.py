"""The README tells the truth: its commands print what it says, its Python computes what it says."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest

from documents import parse_loop
from stretto.cli.main import main
from stretto.machine import read_machine

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TUTORIAL = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
DOCS = sorted((ROOT / "docs").glob("*.md"))


def sessions() -> list[tuple[str, str]]:
    """Every `$ command` of README and tutorial with the output shown under it."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"```console\n(.*?)```", README + TUTORIAL, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def test_the_readme_shows_commands() -> None:
    assert len(sessions()) >= 4


@pytest.mark.parametrize(("command", "expected"), sessions())
def test_readme_output(
    command: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "stretto"
    main(arguments)
    assert capsys.readouterr().out == expected


def test_readme_python() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    shown = re.search(r"print\(.*#\s*(\d+)", code)
    assert shown is not None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    assert out.getvalue().strip() == shown[1]


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *DOCS]:
        prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_files_named_in_the_docs_exist() -> None:
    for page in [ROOT / "README.md", *DOCS]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"`((?:src|tests|examples|benchmarks)/[\w./-]+\.\w+)`", text):
            assert (ROOT / target).exists(), f"{page.name}: {target}"


def test_the_machine_of_the_docs_loads() -> None:
    text = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
    (toml,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert read_machine("toy.toml", toml, {}).name == "toy"


def test_the_loop_of_the_docs_loads() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert parse_loop("tiny.json", document).name == json.loads(document)["name"]
