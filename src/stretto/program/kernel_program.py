"""A whole kernel as a program: what it declares, what the host hands over, what its agents do.

KernelProgram ── memory        k_tile × 3, q_tile, total (tensor memory): declared in this order,
              │                barriers k_tile_full, k_tile_free among them
              ├─ descriptors   q_desc: tiles of 64 x 128 of `q`, made by the host
              ├─ arguments     what the host hands over: descriptors, pointers, numbers
              └─ agents        compute: 4 warps ─ instructions
                               copy:    1 warp  ─ instructions
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from stretto.kernel import Kernel
from stretto.kernel.types import Pointer, Scalar
from stretto.program.expressions import Expression, Given
from stretto.program.instructions import Instruction
from stretto.program.layouts import Named
from stretto.program.traces import Mark, Tracing

BarrierRole = Literal["full", "free", "turn", "named"]
"""A slot is full, or free; an agent's turn in an order between agents; one of the hardware."""


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Tiles in shared memory."""

    name: str
    depth: int | None
    """Slots of a ring; None: a tile of its own."""
    shape: tuple[int, ...]
    element: str
    turned: bool = False
    """Whether its columns lie in one piece, not its rows."""


@dataclass(frozen=True, slots=True)
class TensorMemory:
    """Sums in tensor memory, of f32."""

    name: str
    depth: int | None
    """None: there is one."""
    shape: tuple[int, ...]
    block: tuple[int, int]
    """Rows and columns that one instruction multiplies."""


@dataclass(frozen=True, slots=True)
class Barriers:
    """Barriers in shared memory, each in phase 0 at first."""

    name: str
    depth: int | None
    """None: there is one."""
    arrivals: int
    """That complete a phase, beside the bytes that are expected."""
    role: BarrierRole
    of: str
    """The ring, tile or sum that it guards, or the turn that it is."""


@dataclass(frozen=True, slots=True)
class NamedBarrier:
    """A barrier of the hardware, of which every block has sixteen."""

    name: str
    number: int
    threads: int
    """Of two agents, one of which waits."""


Declaration = SharedMemory | TensorMemory | Barriers


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A view of a tensor by tiles of one shape, which the host makes at a launch."""

    name: str
    tensor: str
    """The parameter of the kernel that it is a view of."""
    block: tuple[int, ...]
    element: str
    base: Expression | None = None
    """The array; None: the parameter says all."""
    sizes: tuple[Expression, ...] = ()
    strides: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Argument:
    """What the kernel takes beside descriptors."""

    name: str
    given: Given
    type: Scalar | Pointer


@dataclass(frozen=True, slots=True)
class WorkTiles:
    """Tiles that blocks go over, each several: how many of both there are is told at a launch."""

    NAMES: ClassVar = ("tiles_x", "tiles_y", "tiles_z")
    """What the kernel takes: how many tiles there are along an axis of the grid."""

    axes: tuple[int, ...]
    blocks: int
    """That run at most."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the names, those that the kernel takes."""
        return tuple(self.NAMES[axis] for axis in self.axes)


@dataclass(frozen=True, slots=True)
class AgentProgram:
    """One agent: warps that run one body."""

    name: str
    warps: int
    registers: int
    """Of a thread, once agents have shared them out."""
    takes: tuple[str, ...]
    """What the kernel hands to it: arguments, descriptors, memory, barriers."""
    body: tuple[Instruction, ...]
    marks: Mapping[str, tuple[Mark, ...]] = field(default_factory=dict[str, "tuple[Mark, ...]"])
    """Where it reads clocks: of each loop, by its number, the marks of a step."""

    @property
    def function(self) -> str:
        """What its function is called."""
        return f"{self.name.replace('.', '_')}_agent"


@dataclass(frozen=True)
class KernelProgram:
    """All of it; nothing is left to decide."""

    kernel: Kernel
    machine: str
    title: str
    """What it is, for who reads the source."""
    memory: tuple[Declaration, ...]
    """In the order in which it is declared."""
    descriptors: tuple[Descriptor, ...]
    arguments: tuple[Argument, ...]
    """Those that somebody uses."""
    agents: tuple[AgentProgram, ...]
    """The first is what the kernel's own warps do; the others are started beside it."""
    layouts: tuple[Named, ...]
    """Those that have names, by which instructions mean them."""
    bytes: int
    """Shared memory in all."""
    scratch: int
    """Of those: what the compiler takes beside what is declared."""
    warps: int
    """With which it is launched; others are started beside them."""
    maxnreg: int | None
    """Registers a thread begins with, where agents share them out anew."""
    turns: Mapping[str, int] = field(default_factory=dict[str, int])
    """Orders between agents, and how many iterations lie between the two."""
    assumed: tuple[Expression, ...] = ()
    """What it takes for granted of what the host hands over, which a launch is asked."""
    tracing: Tracing | None = None
    """Whether it reads clocks, and takes `trace` to write them to."""
    tiles: WorkTiles | None = None
    """Where a launch asks for tiles, not for blocks."""
    named: tuple[NamedBarrier, ...] = ()

    @property
    def name(self) -> str:
        """What the Gluon kernel is called."""
        return f"{self.kernel.name}_kernel"

    @property
    def barriers(self) -> dict[str, Barriers]:
        """All barriers, those of the hardware as such that two agents arrive at."""
        found = {one.name: one for one in self.memory if isinstance(one, Barriers)}
        return found | {
            one.name: Barriers(one.name, None, 2, "named", one.name) for one in self.named
        }

    @property
    def rings(self) -> dict[str, int]:
        """Slots of each ring in shared memory."""
        return {
            one.name: one.depth
            for one in self.memory
            if isinstance(one, SharedMemory) and one.depth is not None
        }
