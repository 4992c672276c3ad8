"""Seeded small loops with everything a loop may have, in which the rules of legality bind.

rich_problem(seed=17)  ──►  Rich(loop, machine, fuse, max_stages), the same on every run
features(rich)         ──►  {"carried view", "capped ring", ...}: what it has, for counting

storages    ring, capped ring, fixed, live-in, in registers; in place, overwritten, carried
values      in registers or in a storage, listed as a read or not; views of either
costs       latency below, at and above the holds; instants; holds far beyond the II
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from stretto.loop import (
    DEPENDENCE_KINDS,
    Access,
    Constraint,
    Demand,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    Space,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Budget, Machine, Pool, Slot
from tiny_loops import with_agents, with_offsets

TILE = TileType((128,), "f32")
OWN_SLOT = "own"


@dataclass(frozen=True)
class Rich:
    """A loop, its machine and what was asked of its schedule."""

    loop: Loop
    machine: Machine
    fuse: bool
    max_stages: int | None


def rich_problem(seed: int) -> Rich:
    """A resolved loop that passes `check()`; where a draft does not, the next one is tried."""
    rng = random.Random(f"rich {seed}")
    while True:
        rich = _Draft(f"rich{seed}", random.Random(f"rich {seed} {rng.random()}")).finish()
        rich = replace(rich, loop=_without_stale(rich.loop))
        if check(rich.loop, rich.machine) == ():
            return rich


def _without_stale(loop: Loop) -> Loop:
    """Without operands that their fixed storage holds no more."""
    faults = [fault.place for fault in check(loop) if fault.code == "overwritten"]
    stale = {(place.op, place.field) for place in faults}
    ops = list(loop.ops)
    for i, op in enumerate(ops):
        kept = [o for j, o in enumerate(op.operands) if (i, ("operands", j)) not in stale]
        ops[i] = replace(op, operands=tuple(kept))
    return replace(loop, ops=tuple(ops))


def rich_agents(seed: int) -> Rich:
    """A rich problem on a machine whose agents have registers, too few of them at times."""
    rich = rich_problem(seed)
    loop, machine = with_agents(rich.loop, rich.machine, seed, 30)
    return replace(rich, loop=loop, machine=machine)


class _Draft:
    """A loop in the making; every step draws from the same generator."""

    def __init__(self, name: str, rng: random.Random) -> None:
        self.name = name
        self.rng = rng
        self.scale = rng.choice([2, 3, 3, 4, 6, 9])
        self.own_slot = rng.random() < 0.15
        self.fusing = rng.random() < 0.2
        """Whether operations are mostly alike and crowd a slot that fused ones share."""
        self.instant = rng.random() < 0.08
        """Whether most operations take no time at all."""
        self.slots = self._slots()
        self.pools = [Pool(f"p{i}", rng.randint(1, 4)) for i in range(rng.choice([0, 0, 1, 2]))]
        size = rng.randint(9, 14) if rng.random() < 0.08 else rng.randint(2, 8)
        kinds = ("a",) if self.fusing else rng.choice([("a",), ("a", "b")])
        ops = [self._op(i, rng.choice(kinds)) for i in range(size)]
        self.ops = with_offsets(random.Random(f"offsets {name}"), ops, 0.3)
        self.values: dict[str, Value] = {}
        self.back: dict[str, int] = {}
        """Iterations between a value and the instance of the storage it lives in."""
        self.updates: tuple[str, str] | None = None
        """An operation that shall take a value, because it updates where that lives."""
        self.storages = self._storages()

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def finish(self) -> Rich:
        """Add all that relates operations to one another, in the order in which it builds up."""
        rng = self.rng
        self._live_ins()
        self._writers()
        if self.chance(0.2):
            self._accumulator()
        if self.chance(0.2):
            self._handed_on()
        self._results()
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3])):
            self._add_view()
        if self.chance(0.25):
            self._add_register_view()
        self._operands()
        self._readers()
        self._nests()
        stated = tuple(self._stated() for _ in range(rng.choice([0, 0, 1, 1, 2])))
        loop = Loop(
            self.name,
            tuple(self.ops),
            tuple(self.values.values()),
            tuple(self.storages),
            stated,
            slots=(OWN_SLOT,) if self.own_slot else (),
        )
        machine = Machine("rich", "a machine of random loops", tuple(self.slots), tuple(self.pools))
        machine = replace(machine, budgets=self._budgets())
        return Rich(loop, machine, self.chance(0.7), rng.choice([None] * 7 + [1, 2, 3]))

    # The machine and what operations hold ---------------------------------------------------

    def _slots(self) -> list[Slot]:
        capacities = [1, 1, 1, 1, 2, 3, 4, 4, None]
        if self.fusing:
            return [Slot(1, "s0", self.rng.choice([1, 1, 2]), fusion_cap=self.rng.choice([2, 3]))]
        return [
            Slot(
                i + 1,
                f"s{i}",
                self.rng.choice(capacities),
                fusion_cap=self.rng.choice([1, 1, 2, 3]),
            )
            for i in range(self.rng.choice([1, 2, 2, 3]))
        ]

    def _op(self, i: int, kind: str) -> Op:
        rng = self.rng
        uses = self._uses()
        end = max((use.end for use in uses), default=0)
        latency = rng.choice([0, end, end, rng.randint(0, self.scale), rng.randint(0, self.scale)])
        if self.chance(0.15):
            latency = end + rng.randint(1, 2 * self.scale)
        if self.instant and self.chance(0.8):
            latency = 0
        demands = tuple(
            Demand(pool.name, rng.randint(0, pool.cap)) for pool in self.pools if self.chance(0.5)
        )
        return Op(
            f"op{i}",
            kind,
            uses=uses,
            demands=demands,
            latency=latency,
            facts=Facts(bank=rng.choice([0, 0, 0, 0, 1] if self.fusing else [None, 0, 0, 1])),
            constraint=self._constraint(),
        )

    def _constraint(self) -> Constraint:
        rng = self.rng
        gid = rng.choice([0, 0, 1]) if self.chance(0.15) else None
        return Constraint(
            gid=gid,
            leader_gid=rng.choice([0, 1]) if self.chance(0.06) else None,
            max_depth=rng.choice([0, 1, 1, 2, 3]) if self.chance(0.12) else None,
            pending=self.chance(0.06),
        )

    def _uses(self) -> tuple[Use, ...]:
        rng = self.rng
        if self.chance(0.7 if self.instant else 0.15):
            return ()
        chosen = rng.sample(self.slots, min(len(self.slots), rng.choice([1, 1, 1, 1, 2, 3])))
        uses = [self._use(slot) for slot in chosen]
        if self.chance(0.12):
            # The same slot once more, after the first hold.
            first = uses[0]
            again = first.end + rng.choice([0, 1, 2])
            uses.append(replace(first, offset=again, duration=rng.randint(1, 2)))
        if self.own_slot and self.chance(0.4):
            uses.append(Use(OWN_SLOT, rng.randint(1, self.scale)))
        return tuple(uses)

    def _use(self, slot: Slot) -> Use:
        rng = self.rng
        most = 2 if slot.capacity is None else slot.capacity
        duration = rng.choice([0, 1, 1, 2, rng.randint(1, self.scale), rng.randint(1, self.scale)])
        occupancy = rng.choice([1, 1, 1, rng.randint(1, most)])
        if most == 4 and self.chance(0.5):
            # Held across several iterations: one unit, four times as long.
            duration, occupancy = rng.randint(self.scale, 4 * self.scale), 1
        return Use(slot.name, duration, rng.choice([0, 0, 0, 0, 1, 2]), occupancy)

    # Storages -------------------------------------------------------------------------------

    def _storages(self) -> list[Storage]:
        rng = self.rng
        storages: list[Storage] = []
        for s in range(rng.choice([0, 0, 1] if self.fusing else [0, 1, 1, 2, 2, 3])):
            fixed = self.chance(0.35)
            depth = rng.choice([1, 2, 2, 3]) if not fixed and self.chance(0.4) else None
            spaces: list[Space] = ["smem", "smem", "smem", "tmem", "register"]
            size = rng.choice([1, 1, 2, 3, 4])
            storages.append(Storage(f"m{s}", rng.choice(spaces), size, fixed, depth))
        return storages

    def _live_ins(self) -> None:
        if self.chance(0.4):
            self.values["x"] = Value("x", TILE)
        if self.chance(0.15):
            self.storages.append(Storage("given", "smem", self.rng.randint(1, 3)))
            self.values["g"] = Value("g", None, "given")
            self.back["g"] = 0
        for storage in self.storages:
            if storage.fixed and self.chance(0.15):
                name = f"start_{storage.name}"
                self.values[name] = Value(name, None, storage.name)
                self.back[name] = 0

    def _writers(self) -> None:
        """Several writers now and then: the first overwrites, the others may update in place."""
        for storage in self.storages:
            if storage.name == "given":
                continue
            positions = [self.rng.randrange(len(self.ops))]
            if self.chance(0.35):
                positions.append(self.rng.randrange(len(self.ops)))
            if self.chance(0.1):
                positions.append(self.rng.randrange(len(self.ops)))
            for nth, at in enumerate(sorted(set(positions))):
                op = self.ops[at]
                reads = op.reads
                if self.chance(0.45) and (storage.fixed or nth > 0):
                    reads = (*reads, Access(storage.name))
                elif not storage.fixed and self.chance(0.15):
                    far = self.rng.choice([1, 1, 2, 3])
                    if storage.depth is None or far < storage.depth:
                        reads = (*reads, Access(storage.name, far))
                self.ops[at] = replace(op, reads=reads, writes=(*op.writes, storage.name))

    def _accumulator(self) -> None:
        """One operation updates a storage in place, for longer than an iteration lasts."""
        at = self.rng.randrange(len(self.ops))
        op = self.ops[at]
        self.storages.append(Storage("sum", "tmem", self.rng.randint(1, 2), fixed=True))
        self.ops[at] = replace(
            op,
            reads=(*op.reads, Access("sum")),
            writes=("sum", *op.writes),
            uses=tuple(use for use in op.uses or () if use.offset == 0)[:1],
            latency=self.rng.choice([op.ready, self.rng.randint(self.scale, 4 * self.scale)]),
        )

    def _handed_on(self) -> None:
        """A writer that is ready soon and done late, and who comes before or after it."""
        rng = self.rng
        early, late = sorted(rng.sample(range(len(self.ops)), 2))
        roomy = [slot for slot in self.slots if slot.capacity is None or slot.capacity > 2]
        slot = rng.choice(roomy or self.slots)
        hold = Use(slot.name, rng.randint(self.scale, 2 * self.scale), rng.choice([0, 0, 1]))
        updated = self.chance(0.6)
        self.storages.append(Storage("hand", "smem", 1, fixed=not updated or self.chance(0.4)))
        at, other = (early, late) if updated else (late, early)
        op, second = self.ops[at], self.ops[other]
        self.ops[at] = replace(
            op, uses=(hold,), latency=rng.randint(0, 2), writes=(*op.writes, "hand")
        )
        if updated:
            self.ops[other] = replace(second, writes=("hand", *second.writes))
            self.updates = (second.name, f"v{at}")
        else:
            self.ops[other] = replace(second, reads=(*second.reads, Access("hand")))

    def _results(self) -> None:
        for i, op in enumerate(self.ops):
            names = [f"v{i}"] if self.chance(0.85) else []
            if self.chance(0.1):
                names.append(f"w{i}")
            homes = list(op.writes)
            for name in names:
                home = homes.pop() if homes and self.chance(0.75) else None
                kind = None if home else self.rng.choice([None, TILE, TILE])
                self.values[name] = Value(name, kind, home)
                if home is not None:
                    self.back[name] = 0
            self.ops[i] = replace(op, results=tuple(names))

    def _position(self, value: str) -> int:
        """Where a value is made; -1: before the loop."""
        return next((i for i, op in enumerate(self.ops) if value in op.results), -1)

    def _storage(self, name: str) -> Storage:
        return next(s for s in self.storages if s.name == name)

    # Views ----------------------------------------------------------------------------------

    def _add_view(self) -> None:
        """Another name of a value in a storage: no time, no accesses of its own."""
        housed = [v for v in self.values.values() if v.storage is not None]
        if not housed:
            return
        rng = self.rng
        views = [v for v in housed if v.name.startswith("n")]
        seen = rng.choice(views) if views and self.chance(0.4) else rng.choice(housed)
        made = self._position(seen.name)
        carried = self.chance(0.3) and made >= 0
        at = rng.randint(0, len(self.ops)) if carried else rng.randint(made + 1, len(self.ops))
        distance = rng.choice([1, 1, 1, 2]) if carried else 0
        assert seen.storage is not None
        home = self._storage(seen.storage)
        back = self.back[seen.name] + distance
        if home.depth is not None and back >= home.depth:
            distance, back = 0, self.back[seen.name]
            at = max(at, made + 1)
        name = f"n{len(self.values)}"
        latency = rng.choice([None, None, None, 0, 1, self.scale]) if made >= 0 else None
        view = Op(
            f"view_{name}",
            "view",
            (Operand(seen.name, distance, latency),),
            (name,),
            uses=(),
            latency=0,
            constraint=self._constraint() if self.chance(0.2) else Constraint(),
        )
        self.values[name] = Value(name, None, seen.storage)
        self.back[name] = back
        self.ops.insert(at, view)

    def _add_register_view(self) -> None:
        loose = [v for v in self.values.values() if v.storage is None and v.type is not None]
        if not loose:
            return
        seen = self.rng.choice(loose)
        made = self._position(seen.name)
        at = self.rng.randint(made + 1, len(self.ops))
        name = f"r{len(self.values)}"
        uses = self._uses() if self.chance(0.3) else ()
        distance = self.rng.choice([0, 0, 1]) if made >= 0 else 0
        op = Op(f"cast_{name}", "cast", (Operand(seen.name, distance),), (name,), uses=uses)
        self.values[name] = Value(name, seen.type, None, seen.name)
        self.ops.insert(at, replace(op, latency=0))

    @staticmethod
    def _is_name(op: Op) -> bool:
        return op.kind in {"view", "cast"}

    # Flows and reads ------------------------------------------------------------------------

    def _operands(self) -> None:
        density = 0.05 if self.fusing else self.rng.choice([0.1, 0.2, 0.3, 0.4])
        for j, op in enumerate(self.ops):
            if self._is_name(op):
                continue
            operands: list[Operand] = []
            reads = list(op.reads)
            for value in self.values.values():
                housed = value.storage is not None
                asked = self.updates == (op.name, value.name)
                if not asked and not self.chance(density * (1.6 if housed else 0.8)):
                    continue
                operand = self._operand(op, j, value)
                if operand is None:
                    continue
                operands.append(operand)
                if value.storage is not None and self.chance(0.5):
                    fixed = self._storage(value.storage).fixed or value.storage == "given"
                    far = 0 if fixed else operand.distance + self.back[value.name]
                    reads.append(Access(value.storage, far))
            self.rng.shuffle(operands)
            self.ops[j] = replace(op, operands=tuple(operands), reads=tuple(dict.fromkeys(reads)))

    def _operand(self, op: Op, j: int, value: Value) -> Operand | None:
        """How an operation sees a value; None: it cannot."""
        rng = self.rng
        made = self._position(value.name)
        if made < 0:
            return Operand(value.name)
        distance = rng.choice([0, 0, 0, 0, 1, 1, 2, 3]) if made < j else rng.choice([1, 1, 2, 3])
        if value.storage is not None:
            home = self._storage(value.storage)
            if home.depth is not None:
                # A writer may not reach the copy it writes; others may, if they come first.
                late = home.name in op.writes or self._first_writer(home.name) <= j
                most = home.depth - (1 if late else 0) - self.back[value.name]
                distance = min(distance, most)
            if home.name == "sum" and made == j and self.chance(0.7):
                return None
            if distance < 0 or (distance == 0 and made >= j):
                return None
        return Operand(value.name, distance, self._latency(self.ops[made]))

    def _first_writer(self, storage: str) -> int:
        return next((i for i, op in enumerate(self.ops) if storage in op.writes), len(self.ops))

    def _latency(self, producer: Op) -> int | None:
        if self.chance(0.6):
            return None
        ready = producer.ready
        return self.rng.choice([0, max(0, ready - 1), ready // 2, ready + 1, ready + self.scale])

    def _readers(self) -> None:
        """Reads of a storage with no value to go with them."""
        for storage in self.storages:
            first = self._first_writer(storage.name)
            for j, op in enumerate(self.ops):
                if self._is_name(op) or not self.chance(0.18):
                    continue
                far = self.rng.choice([0, 0, 0, 1, 1, 2, 3])
                if storage.fixed or storage.name == "given":
                    far = 0
                elif far == 0 and j <= first:
                    far = 1
                if storage.depth is not None:
                    late = storage.name in op.writes or first <= j
                    far = min(far, storage.depth - (1 if late else 0))
                    if far == 0 and j <= first:
                        continue
                reads = tuple(dict.fromkeys((*op.reads, Access(storage.name, far))))
                self.ops[j] = replace(op, reads=reads)

    def _nests(self) -> None:
        if not self.chance(0.15):
            return
        for _ in range(self.rng.choice([1, 1, 2])):
            outer, inner = sorted(self.rng.choices(range(len(self.ops)), k=2))
            if outer < inner:
                parent = self.ops[outer].name
                self.ops[inner] = replace(self.ops[inner], parent=parent)

    def _stated(self) -> Dependence:
        rng = self.rng
        i, j = rng.randrange(len(self.ops)), rng.randrange(len(self.ops))
        distance = rng.choice([0, 0, 0, 1, 2, 3]) if i < j else rng.randint(1, 3)
        latency = rng.choice([0, 0, 1, rng.randint(0, self.scale)])
        kind = rng.choice(DEPENDENCE_KINDS)
        return Dependence(self.ops[i].name, self.ops[j].name, latency, distance, kind)

    # Memory ---------------------------------------------------------------------------------

    def _budgets(self) -> tuple[Budget, ...]:
        """Room for what carried reads ask at least, and then too little, enough or plenty."""
        budgets = [Budget("register", 1 << 18, unit=512)]
        spaces: tuple[Space, ...] = ("smem", "tmem")
        for space in spaces:
            inside = [s for s in self.storages if s.space == space]
            least = sum(s.bytes for s in inside)
            asked = sum(s.bytes * (1 + self._reach(s)) for s in inside)
            unit = max((s.bytes for s in inside), default=1)
            extra = self.rng.choice([-unit, 0, 0, 1, unit, unit, 2 * unit, 4 * unit, 100])
            room = None if self.chance(0.05) else max(1, least, asked + extra)
            budgets.append(Budget(space, room))
        return tuple(budgets)

    def _reach(self, storage: Storage) -> int:
        """The farthest iteration back at which it is read."""
        if storage.fixed or storage.name == "given":
            return 0
        far = [
            read.distance for op in self.ops for read in op.reads if read.storage == storage.name
        ]
        far += [
            operand.distance + self.back[operand.value]
            for op in self.ops
            for operand in op.operands
            if self.values[operand.value].storage == storage.name
        ]
        return max(far, default=0)


# What a loop has ------------------------------------------------------------------------------


def features(rich: Rich) -> set[str]:
    """Everything of interest that a problem has, by name."""
    loop = rich.loop
    found = {*_of_storages(loop), *_of_values(loop), *_of_ops(loop), *_of_costs(rich)}
    found |= {f"stated {d.kind}" for d in loop.stated}
    found |= {f"stated at distance {d.distance}" for d in loop.stated}
    found |= {"max_stages"} if rich.max_stages is not None else set()
    found |= {"loop slot"} if loop.slots else set()
    found |= {"tight memory"} if _tight(rich) else set()
    return found


def is_view(loop: Loop, op: Op) -> bool:
    """Whether it is another name of what a storage holds."""
    homes = {value.name: value.storage for value in loop.values}
    if len(op.operands) != 1 or len(op.results) != 1 or op.completion or op.reads or op.writes:
        return False
    home = homes[op.operands[0].value]
    return home is not None and home == homes[op.results[0]]


def _of_storages(loop: Loop) -> Iterator[str]:
    for storage in loop.storages:
        writers = [i for i, op in enumerate(loop.ops) if storage.name in op.writes]
        if not writers:
            yield "live-in storage"
            continue
        yield "fixed storage" if storage.fixed else "ring"
        if storage.depth is not None:
            yield f"ring capped at {storage.depth}"
        if storage.space == "register":
            yield "register storage"
        if len(writers) > 1:
            yield "several writers"
        for i, op in enumerate(loop.ops):
            for read in op.reads:
                if read.storage != storage.name:
                    continue
                yield f"listed read at distance {read.distance}"
                if i in writers:
                    yield "in-place update" if not read.distance else "carried in-place update"
                if i < writers[0]:
                    yield "reader before the writer"
        if len(writers) > 1 and all(r.storage != storage.name for r in loop.ops[writers[-1]].reads):
            yield "overwriting writer"


def _of_values(loop: Loop) -> Iterator[str]:
    values = {value.name: value for value in loop.values}
    for op in loop.ops:
        listed = {read.storage for read in op.reads}
        for operand in op.operands:
            value = values[operand.value]
            producer = loop.producers.get(value.name)
            where = "register" if value.storage is None else "stored"
            yield f"{where} operand at distance {operand.distance}"
            if producer is None:
                yield f"{where} live-in value"
            if value.view_of is not None:
                yield "register view"
            if value.storage is not None and not is_view(loop, op):
                yield "operand listed" if value.storage in listed else "operand not listed"
                if value.storage in op.writes:
                    yield "operand of its writer"
                if producer is not None and is_view(loop, loop.op(producer)):
                    yield "operand through a view"
            if producer is not None and operand.latency is not None:
                ready = loop.op(producer).ready
                yield "operand latency below" if operand.latency < ready else "operand latency"
                if operand.latency > ready:
                    yield "operand latency above"
        if is_view(loop, op):
            yield "carried view" if op.operands[0].distance else "view"
            above = loop.producers.get(op.operands[0].value)
            if above is not None and is_view(loop, loop.op(above)):
                yield "view of a view"


def _of_ops(loop: Loop) -> Iterator[str]:
    for op in loop.ops:
        constraint = op.constraint
        if constraint.gid is not None:
            yield "gid"
        if constraint.leader_gid is not None:
            yield "leader_gid"
        if constraint.stage_offset and any(op.name in group for group in loop.groups):
            yield "stage_offset"
        if constraint.max_depth is not None:
            yield "max_depth"
        if constraint.pending:
            yield "pending"
        if op.parent is not None:
            yield "nest"
    if loop.groups:
        yield "group"
    if len(loop.ops) > 8:
        yield "more than 8 operations"


def _of_costs(rich: Rich) -> Iterator[str]:
    loop, machine = rich.loop, rich.machine.with_slots(rich.loop.slots)
    classes: set[tuple[str, int | None, tuple[str, ...]]] = set()
    for op in loop.ops:
        uses = op.uses or ()
        if not uses:
            yield "no uses"
        if op.completion == 0 and not is_view(loop, op):
            yield "instant"
        if op.ready == 0:
            yield "zero latency"
        if op.vector.end > op.ready + 3:
            yield "completion far above latency"
        if op.ready > op.vector.end + 3:
            yield "holds far below latency"
        if len({use.slot for use in uses}) < len(uses):
            yield "one slot twice"
        elif len(uses) > 1:
            yield "several uses"
        for use in uses:
            capacity = machine.slot(use.slot).capacity
            if use.offset:
                yield "offset"
            if not use.duration:
                yield "zero duration"
            if capacity is None:
                yield "unlimited slot"
            elif capacity > 1:
                yield "capacity above 1"
                if use.duration > 8:
                    yield "long hold"
        if any(demand.units for demand in op.demands):
            yield "pool"
        key = (op.kind, op.facts.bank, tuple(sorted(use.slot for use in uses)))
        fusible = uses and all(machine.slot(use.slot).fusion_cap > 1 for use in uses)
        if op.facts.bank is not None and fusible and rich.fuse:
            if key in classes:
                yield "fusible pair"
            classes.add(key)


def _tight(rich: Rich) -> bool:
    for budget in rich.machine.budgets:
        inside = [s for s in rich.loop.storages if s.space == budget.space]
        if budget.bytes is None or budget.space == "register" or not inside:
            continue
        if budget.bytes < sum(s.bytes for s in inside) + 2 * max(s.bytes for s in inside):
            return True
    return False
