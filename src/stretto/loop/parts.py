"""The parts of a loop. Everything is frozen, picklable and plain.

    values      what flows      %s = mma(%q, %k)          dst waits for src
    storages    where it lives  smem ring, tmem fixed     who may overwrite whom, and when
    uses        what it holds   tma 96 cycles, then free
    tiles       how large       "128x64xf16"  ◄──►  TileType((128, 64), "f16"), 16,384 bytes

Latency belongs to results, duration to slots: a copy may hold its pipe for 96 cycles and deliver
after 556.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from stretto.limits import NUMBER_DIGITS
from stretto.ops.spaces import Space

_SHAPE = re.compile(r"(?:[0-9]{1,12}x)*")
_BITS = re.compile(r"(?:[su]?i|e\d+m)(\d+)|b?f(16)|f(32|64|80|128)")
_SPECIAL_BITS = {
    "index": 64,
    "token": 0,
    "ptr": 64,
    "tf32": 32,
    "f8E4M3FN": 8,
    "f8E5M2": 8,
    "f6E3M2FN": 6,
    "f6E2M3FN": 6,
    "f4E2M1FN": 4,
    "f8E8M0FNU": 8,
}


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: PLC0414 - handed on
else:

    class cached_property(functools.cached_property):  # noqa: N801 - as functools has it
        """A value of an instance, kept in its `__dict__` from the first look on.

        Up to Python 3.11 that of `functools` takes a lock for every value, which nothing of ours
        needs: whoever comes at the same time works out the same.
        """

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


Made = TypeVar("Made")


def quickly(made: type[Made]) -> type[Made]:
    """The same frozen dataclass with slots, made in a third of the time.

    A frozen dataclass sets each field by a call that looks its name up: `__init__` here sets the
    slots themselves. For what is made by the thousand.
    """
    known: dict[str, Any] = {}
    words: list[str] = []
    lines: list[str] = []
    for part in fields(made):  # pyright: ignore[reportArgumentType] - a dataclass, as said above
        assert part.default_factory is MISSING, "each would have the same"
        known[f"set_{part.name}"] = getattr(made, part.name).__set__
        lines.append(f" set_{part.name}(self, {part.name})")
        words.append(part.name)
        if part.default is not MISSING:
            known[f"of_{part.name}"] = part.default
            words[-1] += f"=of_{part.name}"
    source = f"def __init__(self, {', '.join(words)}):\n" + "\n".join(lines)
    exec(source, known)  # of names of fields, as dataclasses do it
    init = known["__init__"]
    init.__annotations__ = made.__init__.__annotations__
    init.__qualname__ = f"{made.__qualname__}.__init__"
    made.__init__ = init
    return made


@lru_cache(maxsize=256)
def element_bits(element: str) -> int | None:
    """The width of an element type, or None if it is not one."""
    if element in _SPECIAL_BITS:
        return _SPECIAL_BITS[element]
    match = _BITS.fullmatch(element)
    width = int(match[1] or match[2] or match[3]) if match else 0
    return width if 0 < width <= 128 else None


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile of elements; an empty shape is a scalar."""

    shape: tuple[int, ...]
    """Its sizes."""
    element: str
    """The type of an element, such as ``f16``."""

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        """The width of one element."""
        bits = element_bits(self.element)
        if bits is None:
            raise ValueError(f"`{self.element}` is not an element type")
        return bits

    @property
    def bytes(self) -> int:
        """Its size, packed."""
        return _packed(self.shape, self.element)

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element])

    @staticmethod
    def parse(text: str) -> TileType:
        """The type a text such as ``128x64xf16`` writes; ValueError if it is none."""
        match = _SHAPE.match(text)
        end = match.end() if match else 0
        shape, element = text[:end].split("x")[:-1], text[end:]
        dimensions = [int(size) for size in shape]
        if element_bits(element) is None or 0 in dimensions:
            told = text if len(text) <= 60 else text[:57] + "..."
            raise ValueError(f"`{told}` is not a tile type such as 128x64xf16")
        if sum(map(len, shape)) > NUMBER_DIGITS:
            raise ValueError(f"the sizes of a tile have at most {NUMBER_DIGITS:,} digits together")
        return TileType(tuple(dimensions), element)


@lru_cache(maxsize=1024)
def _packed(shape: tuple[int, ...], element: str) -> int:
    tile = TileType(shape, element)
    return -(-tile.elements * tile.bits // 8)


DependenceKind = Literal["flow", "anti", "output", "memory", "order"]
DEPENDENCE_KINDS: tuple[DependenceKind, ...] = ("flow", "anti", "output", "memory", "order")


@dataclass(frozen=True, slots=True)
class Use:
    """A slot held from `offset` cycles after the start, for `duration` cycles."""

    slot: str
    """The slot of the machine."""
    duration: int
    """Cycles that it is held; 0: not at all."""
    offset: int = 0
    """Cycles from the start of the operation until the hold begins."""
    occupancy: int = 1
    """How much of the capacity it takes."""

    @property
    def end(self) -> int:
        """First cycle after the start at which the slot is free again."""
        return self.offset + self.duration


@dataclass(frozen=True, slots=True)
class Demand:
    """Units drawn from a pool in every cycle of the operation's longest duration."""

    pool: str
    """The pool of the machine."""
    units: int
    """How many of its units, in each cycle."""


@dataclass(frozen=True, slots=True)
class ResourceVector:
    """All that an operation holds and draws."""

    uses: tuple[Use, ...] = ()
    demands: tuple[Demand, ...] = ()
    lasting: tuple[int, ...] = ()
    """Cycles that each demand lasts, of operations that are fused; empty: the longest duration."""

    @property
    def duration(self) -> int:
        """Its longest duration: how long its pool demands last."""
        return max((use.duration for use in self.uses), default=0)

    @property
    def draws(self) -> tuple[tuple[Demand, int], ...]:
        """Each demand, and the cycles it lasts from the start."""
        if not self.demands:
            return ()
        cycles = self.lasting or (self.duration,) * len(self.demands)
        return tuple(zip(self.demands, cycles, strict=True))

    @property
    def end(self) -> int:
        """First cycle after the start at which it holds nothing."""
        return max((use.end for use in self.uses), default=0)


@dataclass(frozen=True, slots=True)
class Value:
    """A result, or a live-in when no operation defines it."""

    name: str
    """What operands call it."""
    type: TileType | None = None
    """Shape and element; None: unknown, or a token."""
    storage: str | None = None
    """The storage that holds it; None: registers (if it has a type) or nothing (tokens)."""

    view_of: str | None = None
    """The value it is another name of (a broadcast, say): it takes no registers of its own."""

    @property
    def register_bytes(self) -> int:
        """Register bytes one instance takes."""
        if self.type is None or self.storage is not None or self.view_of is not None:
            return 0
        return self.type.bytes


@dataclass(frozen=True, slots=True)
class Operand:
    """A value as an operation sees it: this iteration's, or the one `distance` before."""

    value: str
    """Its name."""
    distance: int = 0
    """Iterations back to the one that made it; 0: this one."""
    latency: int | None = None
    """Cycles after the producer's start; None: the producer's latency."""


@quickly
@dataclass(frozen=True, slots=True)
class Access:
    """A read of a storage: this iteration's instance, or the one `distance` before."""

    storage: str
    """Its name."""
    distance: int = 0
    """Iterations back to the one that wrote it; 0: this one."""


@dataclass(frozen=True, slots=True)
class Storage:
    """A buffer. Views, slices and casts of it are the same storage."""

    name: str
    """What reads and writes call it."""
    space: Space
    """The memory it lies in, such as ``smem`` or ``tmem``."""
    bytes: int
    """The size of one copy."""
    fixed: bool = False
    """Updated in place (an accumulator): one copy. Else rotating: a ring, fresh each iteration."""
    depth: int | None = None
    """The most copies of a rotating storage; None: as many as lifetimes ask for."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What analysis knows of an operation beyond its opcode and types. None: not known."""

    contiguity: int | None = None
    """Elements that are contiguous in memory along the fastest axis."""
    divisibility: int | None = None
    """The largest power of two that divides the byte address."""
    constancy: int | None = None
    """Elements in a row that are all the same."""
    bounds: tuple[int, int] | None = None
    """Least and greatest index it computes or accesses."""
    buffer: str | None = None
    """The memory space it moves data to or from: global, smem, tmem, register."""
    bank: int | None = None
    """The bank it reads; equal stated banks may fuse."""
    bank_width: int | None = None
    """Register-bank width it takes, against the machine's total."""
    bank_pairs: int | None = None
    """Register-bank pairs it takes in a cycle."""
    bytes: int | None = None
    """Bytes it moves, where the types do not tell."""
    cluster: bool | None = None
    """Whether its traffic crosses the cluster: one tile for several blocks of it."""
    tag: int | None = None
    """The operation tag of the machine's latency table, where the front end knows it."""
    accumulates: bool | None = None
    """Whether it writes registers that a product adds to."""
    scratch: int | None = None
    """Bytes of registers that it takes while it runs, beyond what it reads and makes."""
    memory_range: tuple[int, int] | None = None
    """First and last byte that it may touch of the array that it accesses."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the user asks of an operation's place."""

    gid: int | None = None
    """The number of a group that it is in."""
    leader_gid: int | None = None
    """Operations joined through gid and leader_gid share a stage, but for their offsets."""
    stage_offset: int = 0
    """Stages that it stands behind the members of its group whose offset is 0."""
    max_depth: int | None = None
    """The last stage it may stand in."""
    pending: bool = False
    """Seat it last."""
    same_depth: int | None = None
    """Operations of one number are to share a stage, where that costs no cycle of the II."""
    structural: int | None = None
    """Operations of one number are to be issued in program order, on the same terms."""
    start: int | None = None
    """The start it must have."""
    stage: int | None = None
    """The stage it must have."""
    cycle: int | None = None
    """The cycle of the steady state it must start in."""
    before: tuple[str, ...] = ()
    """Operations of the same iteration that start after it."""

    @property
    def wishes(self) -> bool:
        """Whether it asks for what may be left undone."""
        return self.same_depth is not None or self.structural is not None

    @property
    def pinned(self) -> bool:
        """Whether it is told where to stand, rather than beside whom."""
        return not self.start is self.stage is self.cycle is None

    @property
    def unpinned(self) -> Constraint:
        """What is left of it when it may stand anywhere, before or after anybody."""
        if not self.pinned and not self.before:
            return self
        return replace(self, start=None, stage=None, cycle=None, before=())


@dataclass(frozen=True, slots=True)
class Written:
    """A place in what the user wrote; lines and columns from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Op:
    """One operation of the loop body."""

    name: str
    """What schedules and dependences call it; no two in a loop have the same."""
    kind: str
    """Its opcode, such as ``async.wgmma``."""
    operands: tuple[Operand, ...] = ()
    """The values it reads."""
    results: tuple[str, ...] = ()
    """The values it makes, by name."""
    reads: tuple[Access, ...] = ()
    """The storages it reads, beyond those that its operands live in."""
    writes: tuple[str, ...] = ()
    """The storages it writes, by name."""
    uses: tuple[Use, ...] | None = None
    """What it holds; None until the machine's classifier says."""
    demands: tuple[Demand, ...] = ()
    """What it draws from pools."""
    latency: int | None = None
    """When its result is ready; None until the machine's classifier says."""
    encoding: str | None = None
    """The machine row that gave uses and latency, if one did."""
    facts: Facts = field(default_factory=Facts)
    """What analysis knows of it; costs may depend on it."""
    constraint: Constraint = field(default_factory=Constraint)
    """Where it may stand."""
    agent: str | None = None
    """Who issues it, where that is not left to the machine."""
    parent: str | None = None
    """The operation whose region encloses it, if any."""
    written: Written | None = field(default=None, compare=False, repr=False)
    """Where it comes from, where a front end knows; no part of what it is."""

    @property
    def resolved(self) -> bool:
        """Whether its costs are known."""
        return self.uses is not None and self.latency is not None

    @cached_property
    def vector(self) -> ResourceVector:
        """What it holds and draws."""
        if self.uses is None:
            raise ValueError(f"`{self.name}` has no uses yet; classify the loop first")
        return ResourceVector(self.uses, self.demands)

    @property
    def ready(self) -> int:
        """Its latency, known."""
        if self.latency is None:
            raise ValueError(f"`{self.name}` has no latency yet; classify the loop first")
        return self.latency

    @cached_property
    def completion(self) -> int:
        """Cycles after its start when it is wholly done: result ready, slots free."""
        return max(self.ready, self.vector.end)


@quickly
@dataclass(frozen=True, slots=True)
class Dependence:
    """``start[dst] >= start[src] + latency - II * distance``."""

    src: str
    """The operation that comes first."""
    dst: str
    """The operation that waits."""
    latency: int
    """Cycles from the start of `src` to the earliest start of `dst`."""
    distance: int = 0
    """Iterations from `src` to `dst`; 0: the same iteration."""
    kind: DependenceKind = "flow"
    """Why: what flows, what must not be overwritten, or an order that was stated."""
    via: str = ""
    """The value or storage it comes from."""
