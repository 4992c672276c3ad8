"""A machine, as data.

    slots     units an operation holds for some cycles      tma ████████········
    pools     units it draws from, so many a cycle          register_bank 2 of 2
    budgets   bytes of a memory space, for all iterations in flight
    encodings which of these an opcode uses, and when its result is ready

Everything is frozen and comes from a TOML file (`load.py`); each row carries the `source` of its
numbers. Nothing here knows a loop.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from stretto.errors import StrettoError
from stretto.limits import UNITS
from stretto.machine.formula import Formula

WORD_BITS = 64
"""Slots that fit one row word; machines with more have no row words."""
WARP = 32
"""Threads of a warp."""
REGISTER_BYTES = 4
REGISTER_STEP = 8
"""Registers of a thread are given out in steps of so many (PTX ISA: setmaxnreg)."""
Unit = Literal["cycles", "weights"]
CYCLES: Unit = "cycles"


@dataclass(frozen=True, slots=True)
class Slot:
    """A unit that operations hold."""

    id: int
    """One-based; its bit in a row word is id - 1."""
    name: str
    capacity: int | None
    """Occupancy that may be held in one cycle; None is unlimited."""
    kind: str = "fine"
    role: str = ""
    primary: bool = False
    fusion_cap: int = 1
    """How many fused operations may share one hold; 1 means no fusion."""
    anchor: int | None = None
    """Cycle anchor weight: the last tie-break of the cost order."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """A capacity that operations draw from, so many units in every cycle they last."""

    name: str
    cap: int
    role: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """The bytes of a memory space."""

    space: str
    bytes: int | None
    """None: lifted, see `Machine.notes`."""
    unit: int = 1
    """Bytes that count as one when the space is reported (registers: 512)."""
    barrier: int = 0
    """Bytes of one barrier, if they live in this space."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a published capacity vector, and what Stretto makes of it."""

    index: int
    value: int
    meaning: str
    enforced_by: str
    """The rule that honours it, or why none does."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """A latency family: the typical latency of the slots it names."""

    name: str
    latency: int | None
    """None: an anchor of thousands of cycles, not a row duration."""
    slots: tuple[str, ...]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Tag:
    """A row of the per-operation latency table."""

    tag: int
    latency: int
    slots: tuple[str, ...]
    family: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A named number (or row of numbers) a machine states: ceilings, fences, anchors, caps."""

    name: str
    values: tuple[int, ...]
    meaning: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class UseCost:
    """One slot an encoding holds, with costs that may depend on the operation."""

    slot: str
    duration: Formula
    offset: int = 0
    occupancy: int = 1


@dataclass(frozen=True, slots=True)
class Need:
    """A condition an operation must not break, and what to say when it does."""

    condition: Formula
    why: str


@dataclass(frozen=True, slots=True)
class Encoding:
    """How operations of some opcodes use the machine."""

    name: str
    opcodes: tuple[str, ...]
    uses: tuple[UseCost, ...]
    latency: Formula
    demands: tuple[tuple[str, Formula], ...] = ()
    """Pool and units a cycle, beside the machine's own."""
    tag: int | None = None
    charges: tuple[int, ...] = ()
    """Tags it is charged under where no one tag is its own: a TMA load, for both its transports."""
    when: Formula | None = None
    """Must hold, else another row is meant; unknown variables mean it does not."""
    needs: tuple[Need, ...] = ()
    """Must not be known to be broken; else the next row applies and the reason is kept."""
    source: str = ""
    note: str = ""

    @property
    def tags(self) -> tuple[int, ...]:
        """The rows of the latency table it goes by: its own, or those it is charged under."""
        return self.charges if self.tag is None else (self.tag,)


@dataclass(frozen=True, slots=True)
class Product:
    """How kernels are lowered to a matrix product of the machine: a × b, summed up."""

    name: str
    opcode: str
    accumulator: str
    """The space that sums live in."""
    a: tuple[str, ...]
    """The spaces it takes the left factor from; a tile in registers goes to the first."""
    b: tuple[str, ...]
    """Likewise the right factor."""
    types: tuple[tuple[str, str, str], ...] = ()
    """Elements of the left factor, the right one and the sum that it takes; empty: any."""
    rows: int = 1
    """Of what the rows of its left factor are a multiple."""
    columns: int = 1
    """Likewise the columns of its right factor."""
    depth: int = 1
    """Bits of what a row of its left factor is a multiple."""
    repeats: bool = False
    """Whether fewer rows and columns will do, repeated to as many as `rows` and `columns`."""
    batches: bool = True
    """Whether it multiplies several pairs of matrices at a time."""
    wait: str = ""
    """The opcode that waits for it, where nobody else is told that it is done."""
    in_step: bool = False
    """Whether a sum that threads read must be waited for in the step that issued the product."""
    held: int = 0
    """Registers of a thread that sums and left factors of a loop's products may take for a left
    factor that no step changes to be held in them as well; 0: none is."""
    held_of_tiles: int = 0
    """Likewise in a block that goes over several tiles: the copy of the next tile's factor takes
    the place of one that is held; no fewer than `held`."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Agent:
    """Warps that issue operations in order: a slot of the same name, held while they are at it."""

    name: str
    issues: tuple[str, ...]
    """Whose work it does, of tma, mma and simt."""
    warps: int
    registers: int | None = None
    """Of 32 bits, for each thread; None: any number."""
    replicas: int = 1
    """Most of them at a time, each with a part of the rows; number n has the slot NAME.n."""
    addresses: int = 0
    """Registers of each thread that hold no tiles: addresses, counters, what is under way."""
    crowded: tuple[int, ...] = ()
    """Registers of each thread where one replica more is asked for than there are, two more, and so
    on: as many as that are allowed."""
    source: str = ""

    def replica(self, number: int) -> str:
        """What one of them is called, and its slot."""
        return f"{self.name}.{number}" if number else self.name

    def threads(self, together: int) -> int:
        """Of one of so many replicas: who is alone has the warps of the others as well."""
        return self.warps * (self.replicas // together) * WARP

    def room(self, together: int) -> int | None:
        """Bytes of registers that one of so many replicas has for tiles; None: any number."""
        if self.registers is None:
            return None
        return self.threads(together) * max(0, self.registers - self.addresses) * REGISTER_BYTES


@dataclass(frozen=True)
class Machine:
    """A target: what its loops may hold, and what its operations cost."""

    name: str
    title: str
    slots: tuple[Slot, ...]
    pools: tuple[Pool, ...] = ()
    demands: tuple[tuple[str, Formula], ...] = ()
    """Pool and units a cycle of any operation that states the facts the formula names."""
    budgets: tuple[Budget, ...] = ()
    encodings: tuple[Encoding, ...] = ()
    products: tuple[Product, ...] = ()
    """What front ends lower products of tiles to; the first is taken."""
    agents: tuple[Agent, ...] = ()
    """Who issues operations, where that is a matter of the machine."""
    families: tuple[Family, ...] = ()
    tags: tuple[Tag, ...] = ()
    cells: tuple[Cell, ...] = ()
    tier2: tuple[Figure, ...] = ()
    anchors: tuple[Figure, ...] = ()
    ceilings: tuple[Figure, ...] = ()
    fences: tuple[Figure, ...] = ()
    costs: tuple[Figure, ...] = ()
    """Weights of the cost order that are the machine's to state: spill_weight, spill_cap."""
    limits: tuple[Figure, ...] = ()
    """Caps: on what a program may name (named_barriers), and on what the cost-based evaluator lets
    pass (bank_claims_in_iteration, bank_claims_carried)."""
    timings: tuple[Figure, ...] = ()
    """What a prediction of whole kernels needs beside the rows: waits, arrivals, rates, clocks."""
    measured: str = ""
    """When and on what its numbers were measured, where they were."""
    unit: Unit = CYCLES
    """What its durations and latencies are: cycles of its clock, or weights that only compare."""
    pipelining: tuple[str, ...] | None = None
    """Slots whose use makes a loop worth pipelining; None: every limited slot does."""
    fallback: str | None = None
    """Encoding of operations the file does not know; None: they are an error."""
    blocks: int = 1
    """That share an SM; budgets are then those of one of them (`machine.sharing`)."""
    notes: tuple[str, ...] = ()
    """What every result on this machine must say, such as a lifted budget."""
    file: str = field(default="", compare=False)
    """Where it stands, for messages."""
    extends: str = field(default="", compare=False)
    """The machine that its file says it changes, if any."""

    @cached_property
    def _slots_by_name(self) -> dict[str, Slot]:
        return {slot.name: slot for slot in self.slots}

    @cached_property
    def _pools_by_name(self) -> dict[str, Pool]:
        return {pool.name: pool for pool in self.pools}

    def has_slot(self, name: str) -> bool:
        """Whether there is a slot of this name."""
        return name in self._slots_by_name

    def slot(self, name: str) -> Slot:
        """The slot of this name."""
        return self._slots_by_name[name]

    def has_pool(self, name: str) -> bool:
        """Whether there is a pool of this name."""
        return name in self._pools_by_name

    def pool(self, name: str) -> Pool:
        """The pool of this name."""
        return self._pools_by_name[name]

    def budget(self, space: str) -> Budget | None:
        """The budget of a memory space, if the machine states one."""
        return next((b for b in self.budgets if b.space == space), None)

    @cached_property
    def _encodings_by_opcode(self) -> dict[str, tuple[Encoding, ...]]:
        rows: dict[str, tuple[Encoding, ...]] = {}
        for encoding in self.encodings:
            for opcode in encoding.opcodes:
                rows[opcode] = (*rows.get(opcode, ()), encoding)
        return rows

    def encodings_of(self, opcode: str) -> tuple[Encoding, ...]:
        """The rows an opcode may select, in file order."""
        return self._encodings_by_opcode.get(opcode, ())

    def agent_for(self, issuer: str) -> Agent | None:
        """Who does the work of an issuer; None where the machine does not say."""
        return next((agent for agent in self.agents if issuer in agent.issues), None)

    def replica_for(self, named: str | None, issuer: str) -> tuple[Agent, str] | None:
        """The agent that issues an operation, and which of its replicas: as named, or by issuer."""
        for agent in self.agents:
            if named is not None and named in map(agent.replica, range(agent.replicas)):
                return agent, named
        agent = self.agent_for(issuer)
        return None if agent is None else (agent, agent.name)

    def agents_of_products(self) -> Agent:
        """Who issues products."""
        return next(agent for agent in self.agents if "mma" in agent.issues)

    def replicas_of_products(self, count: int) -> tuple[str, ...]:
        """So many that share the rows of a kernel; StrettoError where there are not as many."""
        agent = self.agents_of_products() if self.agents else None
        most = agent.replicas if agent else 1
        if not 1 <= count <= most:
            most += len(agent.crowded) if agent else 0
            known = f"1 to {most}" if most > 1 else "1"
            raise StrettoError(f"{count} consumers; {self.name} has {known}")
        return tuple(self.agents_of_products().replica(n) for n in range(count))

    def cost(self, name: str) -> int:
        """A weight of the cost order; 0 where the machine states none."""
        return next((figure.values[0] for figure in self.costs if figure.name == name), 0)

    def limit(self, name: str) -> int | None:
        """A cap on what a program may name; None where the machine states none."""
        return next((figure.values[0] for figure in self.limits if figure.name == name), None)

    def known_limit(self, name: str) -> int:
        """A cap that kernels are emitted by; StrettoError where the machine states none."""
        found = self.limit(name)
        if found is None:
            told = f"machine {self.name} does not state `limits.{name}`"
            raise StrettoError(f"{told}, by which kernels are emitted")
        return found

    def timing(self, name: str) -> tuple[int, ...] | None:
        """Numbers of a prediction; None where the machine states none."""
        return next((figure.values for figure in self.timings if figure.name == name), None)

    def encoding(self, name: str) -> Encoding:
        """The encoding of this name."""
        return next(e for e in self.encodings if e.name == name)

    @cached_property
    def opcodes(self) -> tuple[str, ...]:
        """Every opcode the machine knows, sorted."""
        return tuple(sorted(self._encodings_by_opcode))

    def with_slots(self, names: Iterable[str]) -> Machine:
        """This machine and exclusive slots that a loop brings along, numbered after its own."""
        fresh = [name for name in names if not self.has_slot(name)]
        if not fresh:
            return self
        first = max((slot.id for slot in self.slots), default=0) + 1
        added = tuple(
            Slot(id=first + i, name=name, capacity=1, kind="loop", role="declared by the loop")
            for i, name in enumerate(fresh)
        )
        return replace(self, slots=self.slots + added)

    @property
    def without_limits(self) -> Machine:
        """This machine with room for anything in every cycle: what dependences alone allow."""
        slots = tuple(replace(slot, capacity=None) for slot in self.slots)
        pools = tuple(replace(pool, cap=UNITS) for pool in self.pools)
        return replace(self, slots=slots, pools=pools)

    def with_capacity(self, slot: str, capacity: int) -> Machine:
        """This machine with one slot of another capacity: a what-if."""
        return replace(
            self,
            slots=tuple(replace(s, capacity=capacity) if s.name == slot else s for s in self.slots),
        )

    def with_registers(self, agent: str, registers: int | None) -> Machine:
        """This machine with other registers for each thread of one agent: a what-if."""
        return replace(
            self,
            agents=tuple(
                replace(a, registers=registers) if a.name == agent else a for a in self.agents
            ),
        )

    def with_cap(self, pool: str, cap: int) -> Machine:
        """This machine with one pool of another cap: a what-if."""
        return replace(
            self, pools=tuple(replace(p, cap=cap) if p.name == pool else p for p in self.pools)
        )
