"""A place in the bytes of a file, and the primitives that stand there.

    7f 54 69 6c …  85 02 …          varint()  ──►  261, and the place moves on
                   ▲
                   12               a fault: "kernel.tileirbc: offset 12: error: …"

A cursor never leaves its window, and no count is believed before as many bytes are there.
"""

from __future__ import annotations

from stretto.errors import DocumentError


class Cursor:
    """A window `[at, end)` of the bytes of a file; `at` counts from the file's first byte."""

    __slots__ = ("at", "data", "end", "file")

    def __init__(self, file: str, data: bytes, at: int, end: int) -> None:
        self.file = file
        self.data = data
        self.at = at
        self.end = end

    def fail(self, message: str, hint: str = "", at: int | None = None) -> DocumentError:
        """An error at this place, or at another of the same file."""
        place = self.at if at is None else at
        return DocumentError(self.file, f"offset {place}", message, hint)

    def part(self, at: int, end: int) -> Cursor:
        """Another window of the same file."""
        return Cursor(self.file, self.data, at, end)

    @property
    def left(self) -> int:
        """Bytes left in the window."""
        return self.end - self.at

    def byte(self, what: str) -> int:
        """One byte."""
        if self.at >= self.end:
            raise self.fail(f"the data ends where {what} is expected")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self, what: str, bits: int = 64) -> int:
        """An unsigned number, seven bits a byte, lowest first."""
        at, end, data = self.at, self.end, self.data
        if at < end and data[at] < 0x80:
            self.at = at + 1
            return data[at]
        value = shift = 0
        while at < end and shift < bits:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                if value >> bits:
                    break
                self.at = at
                return value
        if at >= end:
            raise self.fail(f"the data ends inside {what}")
        raise self.fail(f"{what} has more than {bits} bits")

    def signed(self, what: str, bits: int = 64) -> int:
        """A signed number: the sign is the lowest bit."""
        value = self.varint(what, bits)
        return (value >> 1) ^ -(value & 1)

    def count(self, what: str, each: int = 1) -> int:
        """A number of things that follow, of at least `each` bytes."""
        start = self.at
        number = self.varint(f"the number of {what}")
        if number * each > self.left:
            hint = f"{self.left:,} bytes are left, and each takes at least {each}"
            raise self.fail(f"{number:,} {what} are announced", hint, start)
        return number

    def bytes(self, length: int, what: str) -> bytes:
        """So many bytes."""
        if length > self.left:
            raise self.fail(f"{what} takes {length:,} bytes; {self.left:,} are left")
        self.at += length
        return self.data[self.at - length : self.at]

    def integers(self, width: int, what: str) -> tuple[int, ...]:
        """A counted array of signed integers of so many bytes."""
        number = self.count(what, width)
        raw = self.bytes(number * width, what)
        return tuple(
            int.from_bytes(raw[k : k + width], "little", signed=True)
            for k in range(0, number * width, width)
        )

    def offsets(self, number: int, width: int, what: str) -> tuple[int, ...]:
        """So many unsigned integers of `width` bytes, the first at a multiple of `width`."""
        raw = self.bytes(number * width, what)
        return tuple(
            int.from_bytes(raw[k : k + width], "little") for k in range(0, number * width, width)
        )

    def align(self, base: int, width: int, what: str) -> None:
        """Skip padding up to a multiple of `width`, counted from `base`."""
        padding = (base - self.at) % width
        if padding > self.left:
            raise self.fail(f"the data ends in the padding before {what}")
        self.at += padding
