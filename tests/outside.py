"""A package with generators of its own, installed into a folder without a network."""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

PLUGIN = Path(__file__).parent / "plugin"


def install(folder: Path) -> Path:
    """What an installer leaves in a folder of packages: the module, and what it offers."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copy(PLUGIN / "third_party_generators.py", folder)
    info = folder / f"third_party_generators-{project['version']}.dist-info"
    info.mkdir()
    about = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(about, encoding="utf-8")
    offered: list[str] = []
    for group, points in project["entry-points"].items():
        offered += [f"[{group}]", *(f"{name} = {where}" for name, where in points.items())]
    (info / "entry_points.txt").write_text("\n".join(offered) + "\n", encoding="utf-8")
    return folder


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that has the package."""
    return {**os.environ, "PYTHONPATH": str(folder)}
