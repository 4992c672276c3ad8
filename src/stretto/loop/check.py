"""Is this a loop at all? Every fault, with names and numbers, before anything is solved.

    check(loop, machine)  ──►  ()                                 go on
                          ──►  (Fault("$.ops[2].operands[0]", "dangling-operand", ...), ...)

Each validator looks for one kind of fault. The first group needs the loop alone; the second its
costs and a machine; the third its dependences, so it runs only when the others are content.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stretto.loop.loop import Loop
from stretto.loop.types import Op, Value
from stretto.machine import Machine


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a loop."""

    path: str
    """Where, as a JSON path into the loop document."""
    code: str
    """What kind of fault, in a word or two."""
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def check(loop: Loop, machine: Machine | None = None) -> tuple[Fault, ...]:
    """Every fault of a loop; with a machine, also what that machine cannot do."""
    faults = [
        *_empty(loop),
        *_duplicates(loop),
        *_values(loop),
        *_storages(loop),
        *_stated(loop),
        *_numbers(loop),
        *_parents(loop),
    ]
    if machine is not None:
        machine = machine.with_slots(loop.slots)
        faults += [*_unresolved(loop), *_slots(loop, machine), *_pools(loop, machine)]
        faults += _space(loop, machine)
    if not faults and loop.resolved:
        order = topological_order(loop)
        if isinstance(order, Fault):
            faults.append(order)
        elif machine is not None:
            faults += _ceilings(loop, machine, order)
    return tuple(faults)


# The loop alone ---------------------------------------------------------------------------


def _empty(loop: Loop) -> Iterator[Fault]:
    if not loop.ops:
        yield Fault("$.ops", "empty-loop", f"loop `{loop.name}` has no operations")


def _duplicates(loop: Loop) -> Iterator[Fault]:
    named = {
        "ops": [op.name for op in loop.ops],
        "values": [v.name for v in loop.values],
        "storages": [s.name for s in loop.storages],
        "slots": list(loop.slots),
    }
    for key, names in named.items():
        seen: set[str] = set()
        for i, name in enumerate(names):
            if name in seen:
                message = f"the name `{name}` stands {Counter(names)[name]} times in {key}"
                yield Fault(f"$.{key}[{i}].name", "duplicate-name", message)
            seen.add(name)


def _values(loop: Loop) -> Iterator[Fault]:
    declared = {value.name for value in loop.values}
    storages = {storage.name for storage in loop.storages}
    definer: dict[str, str] = {}
    for i, value in enumerate(loop.values):
        if value.storage is not None and value.storage not in storages:
            message = f"value `{value.name}` lives in `{value.storage}`, which is no storage"
            yield Fault(f"$.values[{i}].storage", "unknown-storage", message)
        if value.view_of is not None and not _views(loop, value):
            viewed = f"value `{value.name}` is a view of `{value.view_of}`"
            message = f"{viewed}, which its maker does not read"
            yield Fault(f"$.values[{i}].view_of", "unknown-view", message)
    for i, op in enumerate(loop.ops):
        for j, result in enumerate(op.results):
            path = f"$.ops[{i}].results[{j}]"
            if result not in declared:
                message = f"`{op.name}` defines `{result}`, which is not among the values"
                yield Fault(path, "undeclared-result", message)
            if result in definer:
                message = f"`{op.name}` defines `{result}`, which `{definer[result]}` defines"
                yield Fault(path, "defined-twice", message)
            definer.setdefault(result, op.name)
        for j, operand in enumerate(op.operands):
            if operand.value not in declared:
                message = f"`{op.name}` uses `{operand.value}`, which no operation defines"
                hint = " and which is not declared as a live-in value"
                yield Fault(f"$.ops[{i}].operands[{j}]", "dangling-operand", message + hint)


def _views(loop: Loop, value: Value) -> bool:
    makers = [op for op in loop.ops if value.name in op.results]
    return any(operand.value == value.view_of for op in makers for operand in op.operands)


def _storages(loop: Loop) -> Iterator[Fault]:
    known = {storage.name: storage for storage in loop.storages}
    for i, storage in enumerate(loop.storages):
        path = f"$.storages[{i}]"
        if storage.bytes < 1:
            message = f"storage `{storage.name}` has {storage.bytes} bytes; at least 1 is needed"
            yield Fault(f"{path}.bytes", "storage-size", message)
        if storage.depth is not None and (storage.fixed or storage.depth < 1):
            why = "it is fixed, so it has one copy" if storage.fixed else "at least 1 is needed"
            message = f"storage `{storage.name}` asks for a ring of {storage.depth}; {why}"
            yield Fault(f"{path}.depth", "ring-depth", message)
    written: set[str] = {name for op in loop.ops for name in op.writes}
    written_so_far: set[str] = set()
    for i, op in enumerate(loop.ops):
        accesses = [(f"reads[{j}]", r.storage, r.distance) for j, r in enumerate(op.reads)]
        accesses += [(f"writes[{j}]", name, 0) for j, name in enumerate(op.writes)]
        for place, name, distance in accesses:
            path = f"$.ops[{i}].{place}"
            storage = known.get(name)
            if storage is None:
                message = f"`{op.name}` accesses `{name}`, which is no storage of this loop"
                yield Fault(path, "unknown-storage", message)
            elif storage.fixed and distance:
                message = (
                    f"`{op.name}` reads fixed storage `{name}` at distance {distance}; a fixed "
                    "storage has one copy, whose content follows from the program order"
                )
                yield Fault(path, "fixed-distance", message)
            elif (
                storage.depth is not None
                and distance >= storage.depth
                and (distance > storage.depth or name in op.writes)
            ):
                message = (
                    f"`{op.name}` reads `{name}` {distance} iterations back; "
                    f"its ring is capped at {storage.depth}"
                )
                yield Fault(path, "ring-depth", message)
        for j, read in enumerate(op.reads):
            storage = known.get(read.storage)
            if storage is None or storage.fixed or read.distance or read.storage not in written:
                continue
            if read.storage not in written_so_far:
                message = (
                    f"`{op.name}` reads rotating storage `{read.storage}` "
                    "before any operation of its iteration writes it"
                )
                yield Fault(f"$.ops[{i}].reads[{j}]", "read-before-write", message)
        written_so_far.update(op.writes)


def _stated(loop: Loop) -> Iterator[Fault]:
    for i, dependence in enumerate(loop.stated):
        for end in ("src", "dst"):
            name: str = getattr(dependence, end)
            if name not in loop.index:
                message = f"dependence {dependence.src} -> {dependence.dst}: no operation `{name}`"
                yield Fault(f"$.dependences[{i}].{end}", "unknown-op", message)


def _numbers(loop: Loop) -> Iterator[Fault]:
    for path, owner, what, number in _all_numbers(loop):
        if number is not None and number < 0:
            code = f"negative-{what.replace(' ', '-')}"
            yield Fault(path, code, f"{owner} has {what} {number}; it must be 0 or more")


def _all_numbers(loop: Loop) -> Iterator[tuple[str, str, str, int | None]]:
    for i, op in enumerate(loop.ops):
        path, owner = f"$.ops[{i}]", f"`{op.name}`"
        yield f"{path}.latency", owner, "latency", op.latency
        yield f"{path}.constraint.max_depth", owner, "max_depth", op.constraint.max_depth
        for j, operand in enumerate(op.operands):
            named = f"{owner} operand `{operand.value}`"
            yield f"{path}.operands[{j}].latency", named, "latency", operand.latency
            yield f"{path}.operands[{j}].distance", named, "distance", operand.distance
        for j, read in enumerate(op.reads):
            named = f"{owner} read of `{read.storage}`"
            yield f"{path}.reads[{j}].distance", named, "distance", read.distance
        for j, use in enumerate(op.uses or ()):
            named = f"{owner} use of `{use.slot}`"
            yield f"{path}.uses[{j}].duration", named, "duration", use.duration
            yield f"{path}.uses[{j}].offset", named, "offset", use.offset
            yield f"{path}.uses[{j}].occupancy", named, "occupancy", use.occupancy
        for j, demand in enumerate(op.demands):
            named = f"{owner} demand on `{demand.pool}`"
            yield f"{path}.demands[{j}].units", named, "units", demand.units
    for i, dependence in enumerate(loop.stated):
        path, owner = f"$.dependences[{i}]", f"dependence {dependence.src} -> {dependence.dst}"
        yield f"{path}.latency", owner, "latency", dependence.latency
        yield f"{path}.distance", owner, "distance", dependence.distance


def _parents(loop: Loop) -> Iterator[Fault]:
    parent = {op.name: op.parent for op in loop.ops}
    for i, op in enumerate(loop.ops):
        if op.parent is not None and op.parent not in parent:
            message = f"`{op.name}` is nested in `{op.parent}`, which is no operation"
            yield Fault(f"$.ops[{i}].parent", "unknown-op", message)
            continue
        above, steps = op.parent, 0
        while above is not None and above != op.name and steps <= len(loop.ops):
            above, steps = parent.get(above), steps + 1
        if above == op.name:
            yield Fault(f"$.ops[{i}].parent", "nesting", f"`{op.name}` is nested in itself")


# The loop on a machine --------------------------------------------------------------------


def _unresolved(loop: Loop) -> Iterator[Fault]:
    for i, op in enumerate(loop.ops):
        if not op.resolved:
            missing = "uses" if op.uses is None else "latency"
            message = f"`{op.name}` ({op.kind}) has no {missing}; classify the loop first"
            yield Fault(f"$.ops[{i}].{missing}", "unclassified", message)


def _slots(loop: Loop, machine: Machine) -> Iterator[Fault]:
    for i, op in enumerate(loop.ops):
        known: list[tuple[str, int, int, int]] = []
        for j, use in enumerate(op.uses or ()):
            path = f"$.ops[{i}].uses[{j}]"
            if not machine.has_slot(use.slot):
                names = ", ".join(slot.name for slot in machine.slots)
                message = f"`{op.name}` uses slot `{use.slot}`; {machine.name} has {names}"
                yield Fault(f"{path}.slot", "unknown-slot", message)
                continue
            known.append((use.slot, use.offset, use.end, use.occupancy))
            capacity = machine.slot(use.slot).capacity
            if capacity is not None and use.occupancy > capacity and use.duration > 0:
                message = (
                    f"`{op.name}` takes {use.occupancy} of slot `{use.slot}`, "
                    f"which has capacity {capacity}"
                )
                yield Fault(f"{path}.occupancy", "over-capacity", message)
        yield from _own_overlap(f"$.ops[{i}].uses", op, machine, known)


def _own_overlap(
    path: str, op: Op, machine: Machine, uses: list[tuple[str, int, int, int]]
) -> Iterator[Fault]:
    """Two uses of one slot by one operation collide at every II."""
    by_slot: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for slot, start, end, occupancy in uses:
        by_slot[slot].append((start, end, occupancy))
    for slot, holds in by_slot.items():
        capacity = machine.slot(slot).capacity
        if capacity is None or len(holds) < 2:
            continue
        for start, _, _ in holds:
            load = sum(o for s, e, o in holds if s <= start < e)
            if load > capacity:
                message = (
                    f"`{op.name}` alone takes {load} of slot `{slot}` {start} cycles after its "
                    f"start; the capacity is {capacity}"
                )
                yield Fault(path, "over-capacity", message)
                break


def _pools(loop: Loop, machine: Machine) -> Iterator[Fault]:
    for i, op in enumerate(loop.ops):
        total: defaultdict[str, int] = defaultdict(int)
        for j, demand in enumerate(op.demands):
            path = f"$.ops[{i}].demands[{j}]"
            if not machine.has_pool(demand.pool):
                names = ", ".join(pool.name for pool in machine.pools) or "none"
                message = f"`{op.name}` draws on pool `{demand.pool}`; {machine.name} has {names}"
                yield Fault(f"{path}.pool", "unknown-pool", message)
                continue
            total[demand.pool] += demand.units
            cap = machine.pool(demand.pool).cap
            if total[demand.pool] > cap:
                message = f"`{op.name}` draws {total[demand.pool]} from `{demand.pool}`, cap {cap}"
                yield Fault(f"{path}.units", "over-capacity", message)


def _space(loop: Loop, machine: Machine) -> Iterator[Fault]:
    """What cannot fit even with every ring one deep."""
    for budget in machine.budgets:
        if budget.bytes is None or budget.space == "register":
            continue
        inside = [s for s in loop.storages if s.space == budget.space]
        total = sum(s.bytes for s in inside)
        if total > budget.bytes:
            parts = " + ".join(f"{s.name} {s.bytes:,}" for s in inside)
            message = (
                f"{budget.space} holds {budget.bytes:,} bytes; one copy of each storage takes "
                f"{total:,} ({parts})"
            )
            yield Fault("$.storages", "over-budget", message)


# Its dependences --------------------------------------------------------------------------


def topological_order(loop: Loop) -> tuple[int, ...] | Fault:
    """Program positions in an order that respects distance-0 dependences, or the cycle."""
    successors: list[list[int]] = [[] for _ in loop.ops]
    waiting = [0] * len(loop.ops)
    for dependence in loop.dependences:
        if dependence.distance == 0:
            src, dst = loop.index[dependence.src], loop.index[dependence.dst]
            successors[src].append(dst)
            waiting[dst] += 1
    # Operations come out in rounds, program order inside a round, whatever was ready first.
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        later: list[int] = []
        for i in ready:
            order.append(i)
            for j in successors[i]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    later.append(j)
        ready = sorted(later)
    if len(order) == len(loop.ops):
        return tuple(order)
    cycle = _some_cycle(successors, {i for i, count in enumerate(waiting) if count > 0})
    names = [loop.ops[i].name for i in cycle]
    way = " -> ".join([*names, names[0]])
    message = f"a cycle of dependences at distance 0, which no II can satisfy: {way}"
    return Fault("$.ops", "zero-distance-cycle", message)


def _some_cycle(successors: list[list[int]], blocked: set[int]) -> list[int]:
    """A cycle among operations that never became ready: each has a blocked predecessor."""
    predecessor: dict[int, int] = {}
    for i in sorted(blocked):
        for j in successors[i]:
            if j in blocked:
                predecessor.setdefault(j, i)
    at = min(predecessor)
    seen: list[int] = []
    while at not in seen:
        seen.append(at)
        at = predecessor[at]
    cycle = seen[seen.index(at) :][::-1]
    first = cycle.index(min(cycle))
    return cycle[first:] + cycle[:first]


def _ceilings(loop: Loop, machine: Machine, order: Iterable[int]) -> Iterator[Fault]:
    """Accumulated latency must stay below the ceiling of the farthest memory on its path."""
    ceilings = {figure.name: figure.values[0] for figure in machine.ceilings}
    if "far_memory" not in ceilings:
        return
    near, far = ceilings["far_memory"], ceilings.get("cross_cluster", ceilings["far_memory"])
    incoming: list[list[tuple[int, int]]] = [[] for _ in loop.ops]
    for dependence in loop.dependences:
        if dependence.distance == 0:
            dst = loop.index[dependence.dst]
            incoming[dst].append((loop.index[dependence.src], dependence.latency))
    start = [0] * len(loop.ops)
    crosses = [bool(op.facts.cluster) for op in loop.ops]
    for i in order:
        for src, latency in incoming[i]:
            start[i] = max(start[i], start[src] + latency)
            crosses[i] = crosses[i] or crosses[src]
        ready = start[i] + loop.ops[i].ready
        ceiling = far if crosses[i] else near
        if ready >= ceiling:
            message = (
                f"`{loop.ops[i].name}` is ready {ready} cycles into its iteration "
                f"(path {start[i]} + latency {loop.ops[i].ready}); {machine.name} puts the "
                f"ceiling at {ceiling}"
            )
            yield Fault(f"$.ops[{i}].latency", "ceiling", message)
