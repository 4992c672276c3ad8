"""Rows in a file, a line each: written as they come, gone on with after whatever ended the run.

    {"schema": ..., "id": "5b0e…", ...}\\n    whole: done
    {"schema": ..., "id": "77c1…", ...}\\n    whole: done
    {"schema": ..., "id": "0a9              torn by what ended the run: cut off, and done again

A line is handed to the system in one piece, so that at most the last is torn. One run writes at a
time, and rows of other settings or of other files are not mixed: that is said, and nothing is
changed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from stretto.errors import DocumentError, StrettoError
from stretto.files import reason, write_text
from stretto.report.batch import COLUMNS, ROW, cells
from stretto.report.sheet import record

NOT_ROWS = "is there already, and is no file of rows"
_HEAD = f'{{"schema": "{ROW}"'.encode()
"""How a row begins."""
_ID = re.compile("[0-9a-f]{16}")


class Journal:
    """A file of rows that is open for more."""

    def __init__(self, name: str, settings: str, heard: Callable[[dict[str, Any]], None]) -> None:
        """Open it, cut off what is torn, and have every row that is there `heard`."""
        self._name = name
        self._done = array("Q")
        self._several: dict[int, int] = {}
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(name, flags, 0o666)
        except (OSError, ValueError) as error:
            raise StrettoError(f"cannot write {name}: {reason(error)}") from None
        try:
            self._take_up(settings, heard)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def _take_up(self, settings: str, heard: Callable[[dict[str, Any]], None]) -> None:
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return  # a pipe or a device has nothing to go on with
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StrettoError(f"cannot write {self._name}: another batch writes there") from None
        found: list[int] = []
        whole = 0
        for line, row, end in _rows(self._name):
            if row.get("settings") != settings:
                hint = "give another -o, or remove it; an interrupted batch goes on as it began"
                told = f"has rows of other options, another machine or another Stretto: {hint}"
                raise DocumentError(f"{self._name}:{line}", "", told)
            number = int(row["id"], 16)
            found.append(number)
            if row["of"] > 1:
                self._several[number] = row["of"]
            heard(row)
            whole = end
        os.ftruncate(self._descriptor, whole)
        self._done = array("Q", sorted(found))

    def has(self, row_id: str) -> bool:
        """Whether a row was there when the file was opened."""
        number = int(row_id, 16)
        place = bisect_left(self._done, number)
        return place < len(self._done) and self._done[place] == number

    def count(self, row_id: str) -> int:
        """How many loops the document has of which this row was there."""
        return self._several.get(int(row_id, 16), 1)

    def write(self, line: str) -> None:
        """Add a row."""
        data = (line + "\n").encode("utf-8", "backslashreplace")
        try:
            while data:  # a pipe may take less than all of it
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise StrettoError(f"cannot write {self._name}: {reason(error)}") from None


def _rows(name: str) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Each whole row of a file: the number of its line, the row, and where it ends.

    What is torn may only be the end of the file.
    """
    with open(name, "rb") as file:
        end = 0
        for number, line in enumerate(file, 1):
            row = _row(line)
            if row is None:
                torn = line.rstrip(b"\0")  # a power cut may leave room that was never written
                if not line.endswith(b"\n") and _HEAD[: len(torn)] == torn[: len(_HEAD)]:
                    return
                hint = "give another -o, or remove it"
                raise DocumentError(f"{name}:{number}", "", NOT_ROWS, hint)
            end += len(line)
            yield number, row, end


def _row(line: bytes) -> dict[str, Any] | None:
    if not (line.startswith(_HEAD) and line.endswith(b"\n")):
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    found = cast("dict[str, Any]", row)
    return found if _is_whole(found) else None


def _is_whole(row: dict[str, Any]) -> bool:
    """Whether a row has what is read of it again."""
    if not isinstance(row.get("id"), str) or _ID.fullmatch(row["id"]) is None:
        return False
    if not isinstance(row.get("errors"), list) or not isinstance(row.get("success"), bool):
        return False
    if not all(isinstance(row.get(name), str) for name in ("settings", "source")):
        return False
    flags, counts = ("optimal", "overdue", "kept"), ("number", "index", "of")
    if row["success"]:
        counts = (*counts, "ii", "mii")
        mappings = isinstance(row.get("memory"), dict) and isinstance(row.get("starts"), dict)
        whole = mappings and all(isinstance(row.get(name), bool) for name in flags)
    else:
        errors = cast("list[object]", row["errors"])
        whole = bool(errors) and isinstance(errors[0], str)
    return whole and all(type(row.get(name)) is int and row[name] >= 0 for name in counts)


def write_table(journal: str, table: str) -> None:
    """The rows of a file as CSV, in the order of the inputs, whole or not at all."""
    write_text(table, _table(journal))


def _table(journal: str) -> Iterator[str]:
    order: list[int] = []
    start = 0
    for _, row, end in _rows(journal):
        order.append(row["number"] << 84 | row["index"] << 64 | start)  # one number takes less room
        start = end
    order.sort()
    yield record(COLUMNS)
    with Path(journal).open("rb") as file:
        for place in order:
            file.seek(place & (1 << 64) - 1)
            yield record(cells(json.loads(file.readline())))
