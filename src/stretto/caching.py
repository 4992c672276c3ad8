"""What is kept on disk between runs: where, and for which Stretto.

    ~/.cache/stretto/kernels/           kernels made at their launch
    ~/.cache/stretto/answers-1.sqlite   loops that were solved

`STRETTO_CACHE` names another folder; else `XDG_CACHE_HOME` counts, as everywhere.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path


def cache_folder() -> Path:
    """Where the user's caches of ours are."""
    own = os.environ.get("STRETTO_CACHE", "")
    if own:
        return Path(own).absolute()
    said = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(said) if said and Path(said).is_absolute() else Path.home() / ".cache"
    return base / "stretto"


@cache
def package_sum() -> str:
    """A number of this package's own files: another Stretto gives other answers."""
    root = Path(__file__).parent
    found = hashlib.sha256()
    for file in sorted(root.rglob("*")):
        if file.suffix in (".py", ".toml"):
            found.update(f"{file.relative_to(root)}\0".encode())
            found.update(file.read_bytes())
    return found.hexdigest()
