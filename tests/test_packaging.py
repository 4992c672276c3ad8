"""What is published: built from the sdist, whole, and the same bytes each time."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import stretto
from pages import ROOT

BUILD = ROOT / "packaging" / "build.py"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist and a pure wheel, each built twice."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, str(BUILD), "--only", "sdist", "pure", "-o", str(folder)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.count("reproducible") == 2
    return folder


def test_the_wheel_has_every_file_of_the_package_and_no_other(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    assert wheel.name == f"stretto-{stretto.__version__}-py3-none-any.whl"
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("stretto/")}
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/stretto"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    there = {name.removeprefix("src/") for name in tracked if (ROOT / name).exists()}
    assert inside == there


def test_the_sdist_builds_wheels_and_brings_its_papers(dist: Path) -> None:
    (sdist,) = dist.glob("*.tar.gz")
    top = f"stretto-{stretto.__version__}"
    with tarfile.open(sdist) as archive:
        names = set(archive.getnames())
    for name in ("hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff"):
        assert f"{top}/{name}" in names
    assert f"{top}/src/stretto/generate/kernel/seats.pxd" in names
    assert not any(name.endswith((".so", ".c")) for name in names)


def test_what_ci_runs_exists() -> None:
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for target in re.findall(r"run: make (\S+)", path.read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", rules, re.MULTILINE), f"{path.name}: make {target}"
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    for script in re.findall(r"\.venv/bin/python (\S+\.py)", hooks):
        assert (ROOT / script).exists()


def test_the_citation_names_the_last_release() -> None:
    released = re.findall(
        r"^## (\d\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )[0]
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {released[0]}\ndate-released: {released[1]}" in cited
