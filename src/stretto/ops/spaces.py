"""Memory spaces of the chip: one row each.

    smem       shared memory   buffers: an address, a ring, bytes of a budget
    tmem       tensor memory   likewise
    register   registers       no address; the peak of what lives there is counted

A new space is one row here (and a word of `Space`), a budget in the file of each machine that has
it, and a class in `ir/dialect/types.py` if its tiles are to have a type of their own.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from stretto.errors import StrettoError

Space = Literal["smem", "tmem", "register"]

REGISTERS: Space = "register"
"""Where values live that are in no storage."""
GLOBAL = "global"
"""Where tiles are before and after: off the chip, so no space that a storage could be in."""
BY_NAME = "nv_tileas.tensor"
"""The type of tiles in a space without one of its own: it names the space."""


class MemorySpace(NamedTuple):
    """What is true of every tile in one space."""

    name: Space
    words: str
    """In messages."""
    budgeted: bool = True
    """Whether a storage there is a ring of buffers, which takes bytes of a budget; otherwise what
    lives there counts at its peak, in registers."""
    mlir: str = BY_NAME
    """The name of its tiles' type."""
    foreign: tuple[str, ...] = ()
    """What other people's dialects call it."""
    fill: str = ""
    """The opcode by which threads fill a buffer there from registers; none if empty."""
    read: str = ""
    """The opcode by which they read one into registers."""
    viewed: bool = False
    """Whether a buffer there has views: transposed, in another shape."""


class Spaces(dict[str, MemorySpace]):
    """Rows by name; whoever asks for another is told which there are."""

    def __missing__(self, name: str) -> MemorySpace:
        raise StrettoError(f"`{name}` is no memory space; known: {', '.join(self)}")


SPACES = Spaces(
    (row.name, row)
    for row in (
        MemorySpace(
            "smem",
            "shared memory",
            mlir="nv_tileas.smem_ref",
            foreign=("#ttg.shared_memory",),
            fill="async.smem_write",
            read="async.smem_read",
            viewed=True,
        ),
        MemorySpace(
            "tmem",
            "tensor memory",
            mlir="nv_tileas.tmem_ref",
            foreign=("#ttng.tensor_memory",),
            fill="async.tmem_store",
            read="async.tmem_load",
        ),
        MemorySpace(REGISTERS, "registers", budgeted=False, mlir="tensor"),
    )
)
STAGING: Space = "smem"
"""Where tiles land that come from global memory, and where they leave from."""
TENSOR: Space = "tmem"
"""Where products add up that do not leave their sums in registers."""
FOREIGN: dict[str, Space] = {word: row.name for row in SPACES.values() for word in row.foreign}
"""Spaces by what other people's dialects call them."""
MEMORIES: tuple[Space, ...] = tuple(row.name for row in SPACES.values() if row.budgeted)
"""Spaces whose tiles are buffers with an address, and bytes of a budget."""
BUFFERS = (GLOBAL, *SPACES)
"""Wherever a tile may be."""


def words_of(buffer: str) -> str:
    """Where a tile is, in words."""
    return "global memory" if buffer == GLOBAL else SPACES[buffer].words
