"""What was made, on disk: one folder a key, there whole or not at all.

    ~/.cache/stretto/kernels/9f2c…/attention_forward.py      the Gluon source
                                   attention_forward.txt     its schedules, for people
                                   attention_forward.json    the same for programs
                                   attention_forward.seal    that all of it is ours

An entry is written beside its place and moved there; who comes second takes what the first wrote.
It is run, so it is taken only where nobody but the user could have written it, and where the seal
is that of its key and its content. What was read then is what runs: no file is opened again, and
no byte code is looked at. Else it is made anew, and a warning says why.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any

from stretto.caching import (
    UntrustedError,
    cache_folder,
    check_own,
    make_own,
    read_own,
    seal,
    tell,
    write_own,
)
from stretto.limits import FILE_BYTES

PARTS = (".py", ".txt", ".json")
SEAL = ".seal"


@dataclass(frozen=True)
class Entry:
    """A kernel that was made."""

    file: Path
    """Of the source."""
    source: str
    """As it was written or read: the file may be another by now."""
    text: str
    document: Mapping[str, Any]


class Store:
    """A folder of entries."""

    def __init__(self, folder: Path | None = None) -> None:
        self._root, self._below = (folder, ()) if folder else (cache_folder(), ("kernels",))

    def get(self, key: str, name: str) -> Entry | None:
        """The entry of a key, if there is a whole one that can be trusted."""
        try:
            *parts, sealed = (
                read_own(self._root, *self._below, key, name + end, limit=FILE_BYTES)
                for end in (*PARTS, SEAL)
            )
            file = self._root.joinpath(*self._below, key, f"{name}.py")
            if not compare_digest(sealed, _seal(key, name, parts)):
                tell(UntrustedError(file, "is not as it was written"))
                return None
            source, text, document = (part.decode() for part in parts)
            return Entry(file, source, text, json.loads(document))
        except UntrustedError as error:
            tell(error)
        except (OSError, ValueError):
            pass
        return None

    def put(
        self, key: str, name: str, source: str, text: str, document: Mapping[str, Any]
    ) -> Entry:
        """Keep an entry; where the folder is no place for it, in one of this process alone."""
        full = {**document, "source_sha256": sha256(source.encode()).hexdigest()}
        parts = [part.encode() for part in (source, text, json.dumps(full, indent=2) + "\n")]
        files: dict[str, bytes] = dict(zip(PARTS, parts, strict=True))
        try:
            folder = make_own(self._root, *self._below)
            check_own(self._root, *self._below)
            self._write(folder, key, name, {**files, SEAL: _seal(key, name, parts)})
        except (OSError, UntrustedError) as error:
            if isinstance(error, UntrustedError):
                tell(error)
            folder = _own_folder()
            self._write(folder, key, name, files)
        return Entry(folder / key / f"{name}.py", source, text, full)

    def _write(self, folder: Path, key: str, name: str, files: Mapping[str, bytes]) -> None:
        made = Path(tempfile.mkdtemp(prefix=".making-", dir=folder))
        aside = made.with_name(f"{made.name}-aside")
        try:
            for end, data in files.items():
                write_own(made / (name + end), data)
            with suppress(OSError):
                made.rename(folder / key)
                return
            if self.get(key, name) is None:  # what lies there is not whole, or not to be trusted
                _put_aside(folder / key, aside)
                made.rename(folder / key)
        finally:
            shutil.rmtree(made, ignore_errors=True)
            shutil.rmtree(aside, ignore_errors=True)


def _put_aside(there: Path, aside: Path) -> None:
    if there.is_dir() and not there.is_symlink():
        there.rename(aside)
    else:
        there.unlink()


def _seal(key: str, name: str, parts: Sequence[bytes]) -> bytes:
    return seal(key.encode(), name.encode(), *parts).encode()


@cache
def _own_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="stretto-"))
