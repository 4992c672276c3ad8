"""Packs what a machine with torch and Triton, but without a package index, needs for Stretto.

    python benchmarks/gpu/pack.py [FILE [PYTHON]]     build/gpu/site.zip: stretto, xdsl, OR-tools
    python -m zipfile -e site.zip site                there, with Python 3.12 and NumPy
    PYTHONPATH=site python train.py

PYTHON is a Python 3.12 of this machine, which compiles the seating loops. Without one they run as
their twin: the same schedules, about ten times later.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
VERSION = "3.12"
WANTED = {
    "xdsl": ["xdsl"],
    "immutabledict": ["immutabledict"],
    "ordered-set": ["ordered_set"],
    "typing-extensions": ["typing_extensions.py"],
    "ortools": ["ortools", "ortools.libs", "pybind11_abseil"],
    "absl-py": ["absl"],
    "protobuf": ["google"],
}
"""Packages, and what of them is imported: wheels have more; pandas is not."""
LARGEST = 48 * 2**20
"""Bytes; what is carried to the machine is limited."""


def pinned() -> list[str]:
    """The packages that are wanted, at the versions of requirements.txt."""
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    rows = re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)
    found = {name.replace("_", "-").lower(): version for name, version in rows}
    return [f"{name}=={found[name]}" for name in WANTED]


def pip(*words: str, python: str = sys.executable) -> None:
    """Run pip."""
    subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *words], check=True
    )


def others(folder: Path) -> None:
    """What Stretto imports, as wheels for the other machine's Python."""
    asked = ("--no-deps", "--python-version", VERSION, "--only-binary=:all:")
    with tempfile.TemporaryDirectory() as scratch:
        pip("install", "--target", scratch, *asked, *pinned())
        for name in (name for names in WANTED.values() for name in names):
            shutil.move(Path(scratch, name), folder / name)


def ours(folder: Path, python: str | None) -> bool:
    """Stretto itself; whether its seating loops are compiled."""
    if python is None:
        left = shutil.ignore_patterns("__pycache__", "*.so")
        shutil.copytree(ROOT / "src/stretto", folder / "stretto", ignore=left)
        return False
    with tempfile.TemporaryDirectory() as scratch:
        pip("wheel", "--no-deps", "--wheel-dir", scratch, str(ROOT), python=python)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as packed:
            inside = [name for name in packed.namelist() if name.startswith("stretto/")]
            packed.extractall(folder, inside)
    tag = f"cpython-{VERSION.replace('.', '')}"
    for built in (folder / "stretto").rglob("*.so"):  # of other versions, beside the sources
        if tag not in built.name:
            built.unlink()
    return any((folder / "stretto").rglob("*.so"))


def main(file: str = "build/gpu/site.zip", python: str | None = None) -> int:
    """Pack, and say what it came to."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        site = Path(scratch)
        others(site)
        compiled = ours(site, python)
        for found in list(site.rglob("__pycache__")):
            shutil.rmtree(found)
        shutil.make_archive(str(Path(file).with_suffix("")), "zip", site)
    size = Path(file).stat().st_size
    loops = "compiled" if compiled else f"as their twin (no Python {VERSION} was given)"
    print(f"{file}: {size / 2**20:.1f} MB; the seating loops {loops}")
    if size > LARGEST:
        print(f"that is more than {LARGEST / 2**20:.0f} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
