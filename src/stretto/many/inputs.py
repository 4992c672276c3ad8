"""Where loops come from: files, folders, patterns, lines, and loops at hand; one unit at a time.

    kernels/            every file in it that can hold loops, in the order of their names
    'dumps/**/*.json'   what a pattern matches, where the shell does not
    loops.jsonl         a document a line: each line is a unit
    -                   standard input, either way
    Loop                one that Python has

A unit is the data of one document, with where it comes from: whoever works on it needs no file.
None is read before it is asked for.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from stretto.errors import DocumentError, StrettoError
from stretto.files import STANDARD, STDIN, read_data, reason
from stretto.limits import FILE_BYTES
from stretto.loop import Loop
from stretto.loop.json import loop_to_json

SUFFIXES = (".json", ".jsonl", ".mlir", ".ttir", ".tileirbc", ".graphml", ".ssp")
"""Of files in folders that may hold loops; a file that is named is read whatever it is called."""
_LOOPS = re.compile(rb'"schema"\s*:\s*"stretto\.loop/|"schema_version"\s*:')
_HEAD = 4096
"""Bytes of a JSON file in a folder in which it says that it is loops."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A document with loops, or one of its loops."""

    number: int
    """Its place among all of the inputs, from 1."""
    file: str
    line: int | None
    data: bytes
    error: str = ""
    """Why there is no data."""
    index: int | None = None
    """Which of its loops; None: it is not known yet how many it has."""
    of: int = 1
    """How many it has."""
    at_hand: int = 0
    """Which of the loops that Python has: two that are equal are two all the same."""

    @property
    def source(self) -> str:
        """Where it stands."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def id(self, settings: str) -> str:
        """Of its row: the same place, content and settings give the same."""
        place = f"{settings}\0{self.source}\0{self.index or 0}\0{self.at_hand or ''}"
        found = hashlib.sha256(place.encode("utf-8", "surrogatepass"))
        found.update(self.data)
        return found.hexdigest()[:16]

    def loops(self, count: int) -> Iterator[Unit]:
        """Each of its loops, of which it has so many."""
        return (replace(self, index=index, of=count) for index in range(count))


class Inputs:
    """The units of some inputs, and how much of them has been read."""

    def __init__(self, given: Iterable[str | os.PathLike[str] | Loop]) -> None:
        self._given = given if isinstance(given, Iterator) else list(given)
        self.left_alone = 0
        """Files in folders that are of other kinds."""
        self.read = 0
        """Bytes."""
        self.size = 0
        """Bytes, where all are files; 0: not known."""
        self._seen: set[tuple[int, int]] = set()
        if isinstance(self._given, list):
            self._check(self._given)

    def _check(self, given: list[str | os.PathLike[str] | Loop]) -> None:
        """That every input is there, before anything is done; and how much it is."""
        known = True
        for one in given:
            if isinstance(one, Loop) or os.fspath(one) == STANDARD:
                known = False
                continue
            found = False
            within = os.path.isdir(one)
            for file in _files(os.fspath(one)):
                if within and not file.endswith(SUFFIXES):
                    continue
                found = True
                try:
                    self.size += os.stat(file).st_size
                except OSError as error:
                    if within:
                        continue  # a row says why
                    raise DocumentError(file, "", f"cannot be read: {reason(error)}") from None
            if not found:
                kinds = ", ".join(SUFFIXES)
                hint = f"a folder is searched for {kinds}" if within else ""
                raise DocumentError(os.fspath(one), "", "has no file with loops", hint)
        if not known:
            self.size = 0

    def leave_out(self, output: str) -> None:
        """Do not read the file that the rows go to, which may lie in a folder that is searched."""
        given = self._given if isinstance(self._given, list) else []
        named = (os.fspath(one) for one in given if not isinstance(one, Loop))
        same = _identity(output)
        if same is None:
            return
        if any(not os.path.isdir(one) and _identity(one) == same for one in named):
            raise StrettoError(f"{output} is an input, and cannot take the rows; give another -o")
        self._seen.add(same)

    def __iter__(self) -> Iterator[Unit]:
        number = at_hand = 0
        for one in self._given:
            at_hand += isinstance(one, Loop)
            for unit in self._units(one, at_hand):
                number += 1
                yield replace(unit, number=number)

    def _units(self, one: str | os.PathLike[str] | Loop, at_hand: int) -> Iterator[Unit]:
        if isinstance(one, Loop):
            text = json.dumps(loop_to_json(one), ensure_ascii=False)
            data = text.encode("utf-8", "surrogatepass")
            yield Unit(0, f"<{one.name}>", None, data, at_hand=at_hand)
            return
        name = os.fspath(one)
        if name == STANDARD:
            yield from self._stream(STDIN, _stdin())
            return
        within = os.path.isdir(name)
        for file in _files(name):
            if self._again(file):
                continue
            if within and not _may_hold_loops(file):
                self.left_alone += 1
                continue
            yield from self._file(file)

    def _again(self, file: str) -> bool:
        """Whether it came before, under this name or another."""
        same = _identity(file)
        if same is None:
            return False  # whoever reads it says why
        if same in self._seen:
            return True
        self._seen.add(same)
        return False

    def _file(self, name: str) -> Iterator[Unit]:
        try:
            if os.path.isfile(name):
                with open(name, "rb") as file:
                    yield from self._stream(name, file)
                return
            _, data = read_data(name)  # what a shell hands over, or it says what is wrong
        except DocumentError as error:
            yield Unit(0, name, None, b"", str(error))
        except OSError as error:
            told = DocumentError(name, "", f"cannot be read: {reason(error)}")
            yield Unit(0, name, None, b"", str(told))
        else:
            yield from self._stream(name, io.BytesIO(data if isinstance(data, bytes) else b""))

    def _stream(self, name: str, file: BinaryIO) -> Iterator[Unit]:
        """A document a line where the first line is one by itself, and is not the only one."""
        first = file.readline(FILE_BYTES + 1)
        self.read += len(first)
        if _is_document(first):
            second, number = _next_line(file, 1)
            if second:
                yield Unit(0, name, 1, first.strip())
                line: bytes = second
                while line:
                    self.read += len(line)
                    yield self._line(name, number, line, file)
                    line, number = _next_line(file, number)
                return
            yield Unit(0, name, None, first)
            return
        data = first + file.read(FILE_BYTES + 1 - len(first))
        self.read += len(data) - len(first)
        if len(data) > FILE_BYTES:
            hint = f"at most {FILE_BYTES:,} bytes are read"
            yield Unit(0, name, None, b"", str(DocumentError(name, "", "is too large", hint)))
            return
        yield Unit(0, name, None, data)

    def _line(self, name: str, number: int, line: bytes, file: BinaryIO) -> Unit:
        if len(line) <= FILE_BYTES:
            return Unit(0, name, number, line.strip())
        while line and not line.endswith(b"\n"):
            line = file.readline(FILE_BYTES)
            self.read += len(line)
        hint = f"at most {FILE_BYTES:,} bytes are read"
        told = DocumentError(f"{name}:{number}", "", "the line is too long", hint)
        return Unit(0, name, number, b"", str(told))


def _identity(file: str) -> tuple[int, int] | None:
    """What a file is, under whatever name; None where there is none."""
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino


def _files(name: str) -> Iterator[str]:
    """What a path or a pattern stands for, in order."""
    if os.path.isdir(name):
        for folder, inner, files in os.walk(name):
            inner[:] = sorted(one for one in inner if not one.startswith("."))
            for file in sorted(files):
                if not file.startswith("."):
                    yield os.path.join(folder, file)
    elif os.path.lexists(name) or not glob.has_magic(name):
        yield name
    else:
        for found in sorted(glob.glob(name, recursive=True)):
            if not os.path.isdir(found):
                yield found


def _may_hold_loops(file: str) -> bool:
    """Whether a file of a folder is worth reading: other documents are in JSON too."""
    if not file.endswith((".json", ".jsonl")):
        return file.endswith(SUFFIXES)
    if not os.path.isfile(file):
        return True  # whoever reads it says why; to open a pipe would wait for its writer
    try:
        with open(file, "rb") as opened:
            return _LOOPS.search(opened.read(_HEAD)) is not None
    except OSError:
        return True  # likewise


def _is_document(line: bytes) -> bool:
    text = line.strip()
    if not (text.startswith(b"{") and text.endswith(b"}") and line.endswith(b"\n")):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _next_line(file: BinaryIO, number: int) -> tuple[bytes, int]:
    """The next line that is not blank, and its number; b"": there is none."""
    while True:
        line = file.readline(FILE_BYTES + 1)
        number += 1
        if not line or line.strip():
            return line, number


def _stdin() -> BinaryIO:
    stream = sys.stdin
    if stream is None or not hasattr(stream, "buffer"):  # pyright: ignore[reportUnnecessaryComparison]
        raise StrettoError("standard input is closed")
    return stream.buffer
