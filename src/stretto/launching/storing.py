"""What was made, on disk: one folder a key, there whole or not at all.

    ~/.cache/stretto/kernels/9f2c…/attention_forward.py      the Gluon source
                                   attention_forward.txt     its schedules, for people
                                   attention_forward.json    the same for programs; a sum of the .py

An entry is written beside its place and moved there; who comes second takes what the first wrote.
One that was touched since, so that the sum is another, is made anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stretto.caching import cache_folder


@dataclass(frozen=True)
class Entry:
    """A kernel that was made."""

    file: Path
    """Of the source."""
    text: str
    document: Mapping[str, Any]

    @property
    def source(self) -> str:
        """The Gluon source."""
        return self.file.read_text(encoding="utf-8")


class Store:
    """A folder of entries."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "kernels"

    def get(self, key: str, name: str) -> Entry | None:
        """The entry of a key, if there is a whole one."""
        folder = self._folder / key
        file = folder / f"{name}.py"
        try:
            document = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
            text = file.with_suffix(".txt").read_text(encoding="utf-8")
            whole = document["source_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return Entry(file, text, document) if whole else None

    def put(
        self, key: str, name: str, source: str, text: str, document: Mapping[str, Any]
    ) -> Entry:
        """Keep an entry; where the folder cannot be written, in one that this process alone has."""
        data = source.encode()
        full = {**document, "source_sha256": hashlib.sha256(data).hexdigest()}
        files = {
            f"{name}.py": data,
            f"{name}.txt": text.encode(),
            f"{name}.json": (json.dumps(full, indent=2) + "\n").encode(),
        }
        try:
            _write(self._folder, key, files)
        except OSError:
            self._folder = _own_folder()
            _write(self._folder, key, files)
        return Entry(self._folder / key / f"{name}.py", text, full)


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="stretto-"))


def _write(folder: Path, key: str, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder))
    try:
        for name, data in files.items():
            (made / name).write_bytes(data)
        with suppress(OSError):
            made.rename(folder / key)
            return
        # Somebody was faster, or what lies there is not whole: file by file, the sum's last.
        for name in files:
            os.replace(made / name, folder / key / name)
    finally:
        shutil.rmtree(made, ignore_errors=True)
