"""Is this a loop at all? Every fault, with names and numbers, before anything is solved.

    check(loop, machine)  ──►  ()                                 go on
                          ──►  Fault(Place("gemm", 2, ("operands", 0)), "dangling-operand", ...)

Each validator looks for one kind of fault. The first group needs the loop alone; the second its
costs and a machine; the third its dependences, so it runs only when the others are content.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from stretto.errors import listed
from stretto.limits import CYCLES, DISTANCE, ITERATION_CYCLES, STAGES, UNITS
from stretto.loop.derive import behind_views
from stretto.loop.loop import Fault, Loop, Place, topological_order
from stretto.loop.parts import DEPENDENCE_KINDS, Access, Dependence, Op
from stretto.machine import Machine
from stretto.machine.formula import told_number
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import BUFFERS, GLOBAL, SPACES


def check(loop: Loop, machine: Machine | None = None) -> tuple[Fault, ...]:
    """Every fault of a loop; with a machine, also what that machine cannot do."""
    faults = [
        *_empty(loop),
        *_duplicates(loop),
        *(() if _well_defined(loop) else _values(loop)),
        *_storages(loop),
        *_spaces(loop),
        *_words(loop),
        *_tiles(loop),
        *_accesses(loop),
        *_overwritten(loop),
        *_stated(loop),
        *_wrong_numbers(loop),
        *_parents(loop),
        *_offsets(loop),
    ]
    if machine is not None:
        machine = machine.with_slots(loop.slots)
        faults += [*_unresolved(loop), *_slots(loop, machine), *_pools(loop, machine)]
        faults += _space(loop, machine)
    if not faults and loop.resolved:
        order = topological_order(loop)
        if isinstance(order, Fault):
            faults.append(order)
        else:
            faults += _long_iteration(loop)
            faults += _ceilings(loop, machine) if machine is not None else ()
    return tuple(faults)


# The loop alone ---------------------------------------------------------------------------


def _empty(loop: Loop) -> Iterator[Fault]:
    if not loop.ops:
        yield Fault(loop.at("ops"), "empty-loop", f"loop `{loop.name}` has no operations")


def _duplicates(loop: Loop) -> Iterator[Fault]:
    named = {
        "ops": [op.name for op in loop.ops],
        "values": [v.name for v in loop.values],
        "storages": [s.name for s in loop.storages],
        "slots": list(loop.slots),
    }
    for key, names in named.items():
        if len(set(names)) == len(names):
            continue
        times = Counter(names)
        seen: Counter[str] = Counter()
        for i, name in enumerate(names):
            seen[name] += 1
            if seen[name] == 2:  # the others would say the same
                message = f"the name `{name}` stands {times[name]:,} times in {key}"
                yield Fault(loop.at(key, i, "name"), "duplicate-name", message)


def _values(loop: Loop) -> Iterator[Fault]:
    declared = {value.name for value in loop.values}
    storages = {storage.name for storage in loop.storages}
    makers: defaultdict[str, list[Op]] = defaultdict(list)
    for op in loop.ops:
        for result in op.results:
            makers[result].append(op)
    definer: dict[str, str] = {}
    for i, value in enumerate(loop.values):
        if value.storage is not None and value.storage not in storages:
            message = f"value `{value.name}` lives in `{value.storage}`, which is no storage"
            yield Fault(loop.at("values", i, "storage"), "unknown-storage", message)
        if value.view_of is not None and not any(
            operand.value == value.view_of for op in makers[value.name] for operand in op.operands
        ):
            told = f"value `{value.name}` is a view of `{value.view_of}`"
            message = f"{told}, which its maker does not read"
            yield Fault(loop.at("values", i, "view_of"), "unknown-view", message)
    for i, op in enumerate(loop.ops):
        for j, result in enumerate(op.results):
            if result not in declared:
                message = f"`{op.name}` defines `{result}`, which is not among the values"
                yield Fault(loop.at("results", j, op=i), "undeclared-result", message)
            if result in definer:
                message = f"`{op.name}` defines `{result}`, which `{definer[result]}` defines"
                yield Fault(loop.at("results", j, op=i), "defined-twice", message)
            else:
                definer[result] = op.name
        for j, operand in enumerate(op.operands):
            if operand.value not in declared:
                message = f"`{op.name}` uses `{operand.value}`, which no operation defines"
                hint = " and which is not declared as a live-in value"
                yield Fault(loop.at("operands", j, op=i), "dangling-operand", message + hint)


def _well_defined(loop: Loop) -> bool:
    """Whether all that is read or made is declared and made once, and lives in registers.

    Then `_values`, which has them one by one, finds no fault.
    """
    declared = {value.name for value in loop.values}
    results = [result for op in loop.ops for result in op.results]
    made = {*results}
    return (
        len(made) == len(results)
        and declared >= made
        and declared.issuperset([operand.value for op in loop.ops for operand in op.operands])
        and {(value.storage, value.view_of) for value in loop.values} <= {(None, None)}
    )


def _storages(loop: Loop) -> Iterator[Fault]:
    for i, storage in enumerate(loop.storages):
        if storage.bytes < 1:
            message = f"storage `{storage.name}` has {storage.bytes} bytes; at least 1 is needed"
            yield Fault(loop.at("storages", i, "bytes"), "storage-size", message)
        if storage.depth is not None and (storage.fixed or storage.depth < 1):
            why = "it is fixed, so it has one copy" if storage.fixed else "at least 1 is needed"
            message = f"storage `{storage.name}` asks for a ring of {storage.depth}; {why}"
            yield Fault(loop.at("storages", i, "depth"), "ring-depth", message)


def _spaces(loop: Loop) -> Iterator[Fault]:
    """A space that nobody knows has no budget, so it would hold any number of bytes."""
    for i, storage in enumerate(loop.storages):
        if storage.space not in SPACES:
            message = f"storage `{storage.name}` is in `{storage.space}`, which is no memory space"
            known = f"; known: {', '.join(SPACES)}"
            yield Fault(loop.at("storages", i, "space"), "unknown-space", message + known)


def _words(loop: Loop) -> Iterator[Fault]:
    """Words that costs and orders depend on: one that is none would mean what it does not say."""
    for i, op in enumerate(loop.ops):
        buffer = op.facts.buffer
        if buffer is not None and buffer not in BUFFERS:
            message = f"`{op.name}` moves data to or from `{buffer}`, which is no buffer"
            known = f"; known: {', '.join(BUFFERS)}"
            yield Fault(loop.at("facts", "buffer", op=i), "unknown-buffer", message + known)
    for i, dependence in enumerate(loop.stated):
        if dependence.kind not in DEPENDENCE_KINDS:
            way = f"dependence {dependence.src} -> {dependence.dst}"
            known = f"known: {', '.join(DEPENDENCE_KINDS)}"
            message = f"{way}: no kind `{dependence.kind}`; {known}"
            yield Fault(loop.at("dependences", i, "kind"), "unknown-kind", message)


def _tiles(loop: Loop) -> Iterator[Fault]:
    """No tile is larger than the buffer it lives in, whether it fills it or views it."""
    size = {storage.name: storage.bytes for storage in loop.storages}
    for i, value in enumerate(loop.values):
        room = size.get(value.storage or "")
        if room is not None and value.type is not None and value.type.bytes > room:
            message = (
                f"value `{value.name}`, {value.type}, takes {value.type.bytes:,} bytes; storage "
                f"`{value.storage}` has {room:,}"
            )
            yield Fault(loop.at("values", i, "type"), "tile-size", message)


def _accesses(loop: Loop) -> Iterator[Fault]:
    known = {storage.name: storage for storage in loop.storages}
    written: set[str] = {name for op in loop.ops for name in op.writes}
    written_so_far: set[str] = set()
    for i, op in enumerate(loop.ops):
        if not (op.writes or loop.reads.get(op.name) or op.reads):
            continue
        for listed_as, j, access in _touched(loop, op):
            name = access.storage
            storage = known.get(name)
            if storage is None:
                message = f"`{op.name}` accesses `{name}`, which is no storage of this loop"
                yield Fault(loop.at(listed_as, j, op=i), "unknown-storage", message)
            elif storage.fixed and access.distance:
                message = (
                    f"`{op.name}` reads fixed storage `{name}` at distance {access.distance}; a "
                    "fixed storage has one copy, whose content follows from the program order"
                )
                yield Fault(loop.at(listed_as, j, op=i), "fixed-distance", message)
            elif storage.depth is not None and _beyond(op, access, storage.depth):
                message = (
                    f"`{op.name}` reads `{name}` {access.distance} iterations back; "
                    f"its ring is capped at {storage.depth}"
                )
                yield Fault(loop.at(listed_as, j, op=i), "ring-depth", message)
            elif listed_as == "writes" or storage.fixed or access.distance:
                continue
            elif name in written and name not in written_so_far:
                message = (
                    f"`{op.name}` reads rotating storage `{name}` "
                    "before any operation of its iteration writes it"
                )
                yield Fault(loop.at(listed_as, j, op=i), "read-before-write", message)
        written_so_far.update(op.writes)


def _touched(loop: Loop, op: Op) -> Iterator[tuple[str, int, Access]]:
    """Where an operation says what it touches: reads and writes, and operands that imply reads."""
    yield from (("reads", j, read) for j, read in enumerate(op.reads))
    yield from (("writes", j, Access(name)) for j, name in enumerate(op.writes))
    home = loop.homes
    stated = frozenset(op.reads)
    if stated.issuperset(loop.reads.get(op.name, ())):
        return
    first: dict[str | None, int] = {}
    for j, operand in enumerate(op.operands):
        first.setdefault(home.get(operand.value), j)
    for read in loop.reads.get(op.name, ()):
        # Of two operations of one name, the reads are those of the other.
        if read not in stated and read.storage in first:
            yield "operands", first[read.storage], read


def _beyond(op: Op, access: Access, depth: int) -> bool:
    """Whether a ring so deep has lost what is read, or loses it while this operation writes."""
    lasts = not op.resolved or op.completion > 0
    rewritten = access.storage in op.writes and lasts
    return access.distance > depth or (access.distance == depth and rewritten)


def _overwritten(loop: Loop) -> Iterator[Fault]:
    """An operand in a fixed storage is what the storage holds: no later turn has replaced it."""
    sizes = {storage.name: storage.bytes for storage in loop.storages if storage.fixed}
    if sizes.keys().isdisjoint(loop.homes.values()):
        return
    fillers: defaultdict[str, list[int]] = defaultdict(list)
    whole = {
        value.name
        for value in loop.values
        if value.type is None or value.type.bytes >= sizes.get(value.storage or "", 0)
    }
    for i, op in enumerate(loop.ops):
        for name in {loop.homes.get(result) for result in op.results if result in whole}:
            if name in sizes and name in op.writes:
                fillers[name].append(i)
    views = loop.storage_views
    named = {op.results[0]: views[op.name] for op in loop.ops if op.name in views}
    for i, op in enumerate(loop.ops):
        for j, operand in enumerate(op.operands if op.name not in views else ()):
            name = loop.homes.get(operand.value, "")
            value, back = behind_views(operand, named)
            maker = loop.index.get(loop.producers.get(value, ""))
            if name not in sizes or maker is None or name not in loop.ops[maker].writes:
                continue
            if back == 0 and maker >= i:
                continue
            # The next turns that write all of it: its maker's own, and that of any that fills it.
            after = bisect_right(fillers[name], maker)
            turns = [(1 - back, maker), *((-back, k) for k in fillers[name][after : after + 1])]
            turns += [(1 - back, k) for k in fillers[name][:1]]
            turn = min(turns)
            if turn < (0, i):
                message = (
                    f"`{op.name}` uses `{operand.value}` at distance {operand.distance}, which "
                    f"lives in fixed storage `{name}`; by then `{loop.ops[turn[1]].name}` has "
                    "overwritten it"
                )
                yield Fault(loop.at("operands", j, op=i), "overwritten", message)


def _stated(loop: Loop) -> Iterator[Fault]:
    for i, dependence in enumerate(loop.stated):
        for end in ("src", "dst"):
            name: str = getattr(dependence, end)
            if name not in loop.index:
                message = f"dependence {dependence.src} -> {dependence.dst}: no operation `{name}`"
                yield Fault(loop.at("dependences", i, end), "unknown-op", message)
    for i, op in enumerate(loop.ops):
        for j, other in enumerate(op.constraint.before):
            if other not in loop.index or other == op.name:
                what = "itself" if other == op.name else f"`{other}`, which is no operation"
                message = f"`{op.name}` is to start before {what}"
                yield Fault(loop.at("constraint", "before", j, op=i), "unknown-op", message)


def _offsets(loop: Loop) -> Iterator[Fault]:
    for i, op in enumerate(loop.ops):
        asked = op.constraint
        if asked.stage_offset and asked.gid is None and asked.leader_gid is None:
            message = (
                f"`{op.name}` has stage_offset {told_number(asked.stage_offset)}, and no gid or "
                "leader_gid: it stands behind nobody"
            )
            yield Fault(loop.at("constraint", "stage_offset", op=i), "no-group", message)


def _parents(loop: Loop) -> Iterator[Fault]:
    parent = {op.name: op.parent for op in loop.ops}
    if all(above is None for above in parent.values()):
        return
    circular = _circular(parent)
    for i, op in enumerate(loop.ops):
        if op.parent is not None and op.parent not in parent:
            message = f"`{op.name}` is nested in `{op.parent}`, which is no operation"
            yield Fault(loop.at("parent", op=i), "unknown-op", message)
            continue
        if op.name in circular:
            yield Fault(loop.at("parent", op=i), "nesting", f"`{op.name}` is nested in itself")


def _circular(parent: Mapping[str, str | None]) -> set[str]:
    """Operations that the way up from themselves comes back to; each is passed once."""
    found: set[str] = set()
    passed: set[str] = set()
    for name in parent:
        way: dict[str, None] = {}
        above: str | None = name
        while above is not None and above not in passed and above not in way:
            way[above] = None
            above = parent.get(above)
        if above in way:
            names = list(way)
            found.update(names[names.index(above) :])
        passed.update(way)
    return found


# Its numbers: below zero, or so large that tables and programs outgrow the memory. Each is held
# against a limit of its own, and so is their sum: a reservation table has one bit for each cycle of
# the II, and the II is at most what the operations take one after the other.

_MOST = {
    "latency": CYCLES,
    "duration": CYCLES,
    "offset": CYCLES,
    "distance": DISTANCE,
    "stage_offset": STAGES,
    "occupancy": UNITS,
    "units": UNITS,
}


def _in_range(loop: Loop) -> bool:
    """Whether all numbers are, each kind of them held against its limit at once.

    What `_all_numbers` has one by one with its place, which takes five times as long.
    """
    ops, stated = loop.ops, loop.stated
    asked = [op.constraint for op in ops]
    operands = [operand for op in ops for operand in op.operands]
    uses = [use for op in ops for use in op.uses or ()]
    numbers: dict[str, list[int | None]] = {
        "latency": [part.latency for parts in (ops, operands, stated) for part in parts],
        "distance": [part.distance for parts in (operands, stated) for part in parts],
        "duration": [use.duration for use in uses],
        "offset": [use.offset for use in uses],
        "occupancy": [use.occupancy for use in uses],
        "stage_offset": [each.stage_offset for each in asked],
        "start": [each.start for each in asked],
        "stage": [each.stage for each in asked],
        "cycle": [each.cycle for each in asked],
        "max_depth": [each.max_depth for each in asked],
        "units": [demand.units for op in ops for demand in op.demands],
    }
    numbers["distance"] += [read.distance for op in ops for read in op.reads]
    for what, found in numbers.items():
        known = {number for number in {*found} if number is not None}
        if known and not (min(known) >= 0 and max(known) <= _MOST.get(what, max(known))):
            return False
    return True


def _wrong_numbers(loop: Loop) -> Iterator[Fault]:
    """Every number that is out of its range."""
    if _in_range(loop):
        return
    for what, number, op, fields, part in _all_numbers(loop):
        if number is None or 0 <= number <= _MOST.get(what, number):
            continue
        place, owner = loop.at(*fields, op=op), part if op is None else f"`{loop.ops[op].name}`"
        if op is not None and part:
            owner += f" {part}"
        if number < 0:
            told = f"{owner} has {what} {told_number(number)}; it must be 0 or more"
            yield Fault(place, f"negative-{what}", told)
        else:
            told = f"{owner} has {what} {told_number(number)}; at most {_MOST[what]:,} is allowed"
            yield Fault(place, f"large-{what}", told)


_Number = tuple[str, int | None, int | None, tuple[str | int, ...], str]
"""What it is, the number, whose operation's, where it stands there, and of which part."""


def _all_numbers(loop: Loop) -> Iterator[_Number]:
    for i, op in enumerate(loop.ops):
        yield "latency", op.latency, i, ("latency",), ""
        asked = op.constraint
        yield "start", asked.start, i, ("constraint", "start"), ""
        yield "stage", asked.stage, i, ("constraint", "stage"), ""
        yield "cycle", asked.cycle, i, ("constraint", "cycle"), ""
        yield "max_depth", asked.max_depth, i, ("constraint", "max_depth"), ""
        yield "stage_offset", asked.stage_offset, i, ("constraint", "stage_offset"), ""
        for j, operand in enumerate(op.operands):
            part = f"operand `{operand.value}`"
            yield "latency", operand.latency, i, ("operands", j, "latency"), part
            yield "distance", operand.distance, i, ("operands", j, "distance"), part
        for j, read in enumerate(op.reads):
            part = f"read of `{read.storage}`"
            yield "distance", read.distance, i, ("reads", j, "distance"), part
        for j, use in enumerate(op.uses or ()):
            part = f"use of `{use.slot}`"
            yield "duration", use.duration, i, ("uses", j, "duration"), part
            yield "offset", use.offset, i, ("uses", j, "offset"), part
            yield "occupancy", use.occupancy, i, ("uses", j, "occupancy"), part
        for j, demand in enumerate(op.demands):
            yield "units", demand.units, i, ("demands", j, "units"), f"demand on `{demand.pool}`"
    for i, dependence in enumerate(loop.stated):
        part = f"dependence {dependence.src} -> {dependence.dst}"
        yield "latency", dependence.latency, None, ("dependences", i, "latency"), part
        yield "distance", dependence.distance, None, ("dependences", i, "distance"), part


# The loop on a machine --------------------------------------------------------------------


def _unresolved(loop: Loop) -> Iterator[Fault]:
    for i, op in enumerate(() if loop.resolved else loop.ops):
        if not op.resolved:
            missing = "uses" if op.uses is None else "latency"
            message = f"`{op.name}` ({op.kind}) has no {missing}; classify the loop first"
            yield Fault(loop.at(missing, op=i), "unclassified", message)


def _slots(loop: Loop, machine: Machine) -> Iterator[Fault]:
    capacities = {slot.name: slot.capacity for slot in machine.slots}
    for i, op in enumerate(loop.ops):
        if not op.uses:
            continue
        known: list[tuple[str, int, int, int]] = []
        for j, use in enumerate(op.uses):
            if use.slot not in capacities:
                names = listed(capacities)
                message = f"`{op.name}` uses slot `{use.slot}`; {machine.name} has {names}"
                yield Fault(loop.at("uses", j, "slot", op=i), "unknown-slot", message)
                continue
            if len(op.uses) > 1:
                known.append((use.slot, use.offset, use.end, use.occupancy))
            capacity = capacities[use.slot]
            if capacity is not None and use.occupancy > capacity and use.duration > 0:
                message = (
                    f"`{op.name}` takes {use.occupancy} of slot `{use.slot}`, "
                    f"which has capacity {capacity}"
                )
                yield Fault(loop.at("uses", j, "occupancy", op=i), "over-capacity", message)
        if len(known) > 1 and len({slot for slot, _, _, _ in known}) < len(known):
            yield from _own_overlap(loop.at("uses", op=i), op, machine, known)


def _own_overlap(
    at: Place, op: Op, machine: Machine, uses: list[tuple[str, int, int, int]]
) -> Iterator[Fault]:
    """Two uses of one slot by one operation collide at every II."""
    by_slot: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for slot, start, end, occupancy in uses:
        by_slot[slot].append((start, end, occupancy))
    for slot, holds in by_slot.items():
        capacity = machine.slot(slot).capacity
        if capacity is None or len(holds) < 2:
            continue
        lasting = [hold for hold in holds if hold[0] < hold[1]]
        changes = [(s, o) for s, _, o in lasting] + [(e, -o) for _, e, o in lasting]
        load = 0
        for cycle, change in sorted(changes):  # at one time, what ends goes before what begins
            load += change
            if load > capacity:
                message = (
                    f"`{op.name}` alone takes {load} of slot `{slot}` {cycle} cycles after its "
                    f"start; the capacity is {capacity}"
                )
                yield Fault(at, "over-capacity", message)
                break


def _pools(loop: Loop, machine: Machine) -> Iterator[Fault]:
    for i, op in enumerate(loop.ops):
        if not op.demands:
            continue
        total: defaultdict[str, int] = defaultdict(int)
        for j, demand in enumerate(op.demands):
            if not machine.has_pool(demand.pool):
                names = listed(pool.name for pool in machine.pools)
                message = f"`{op.name}` draws on pool `{demand.pool}`; {machine.name} has {names}"
                yield Fault(loop.at("demands", j, "pool", op=i), "unknown-pool", message)
                continue
            total[demand.pool] += demand.units
            cap = machine.pool(demand.pool).cap
            if total[demand.pool] > cap:
                message = f"`{op.name}` draws {total[demand.pool]} from `{demand.pool}`, cap {cap}"
                yield Fault(loop.at("demands", j, "units", op=i), "over-capacity", message)


def _space(loop: Loop, machine: Machine) -> Iterator[Fault]:
    """What cannot fit even with every ring one deep."""
    for budget in machine.budgets:
        if budget.bytes is None or not SPACES[budget.space].budgeted:
            continue
        inside = [s for s in loop.storages if s.space == budget.space]
        total = sum(s.bytes for s in inside)
        if total > budget.bytes:
            parts = listed((f"{s.name} {s.bytes:,}" for s in inside), " + ")
            message = (
                f"{budget.space} holds {budget.bytes:,} bytes; one copy of each storage takes "
                f"{total:,} ({parts})"
            )
            yield Fault(loop.at("storages"), "over-budget", message)


# Its dependences --------------------------------------------------------------------------


def _ceilings(loop: Loop, machine: Machine) -> Iterator[Fault]:
    """One dependence on far memory, or across the cluster, must stay below its ceiling.

    What takes long for another reason, such as a loop inside, has none.
    """
    ceilings = {figure.name: figure.values[0] for figure in machine.ceilings}
    if "far_memory" not in ceilings:
        return
    near, far = ceilings["far_memory"], ceilings.get("cross_cluster", ceilings["far_memory"])
    flows: dict[str, Dependence] = {}
    for flow in loop.dependences:
        if flow.kind == "flow" and (
            flow.src not in flows or flow.latency > flows[flow.src].latency
        ):
            flows[flow.src] = flow
    for i, op in enumerate(loop.ops):
        if not _is_far(op):
            continue
        ceiling = far if op.facts.cluster else near
        told, latency = f"`{op.name}` is ready", op.ready
        if op.name in flows and flows[op.name].latency > latency:
            flow = flows[op.name]
            told, latency = f"`{op.name}` is ready for `{flow.dst}`", flow.latency
        if latency >= ceiling:
            where = "from another cluster" if op.facts.cluster else "from far memory"
            message = (
                f"{told} after {latency} cycles {where}; {machine.name} puts the ceiling of one "
                f"such dependence at {ceiling}"
            )
            yield Fault(loop.at("latency", op=i), "ceiling", message)


def _is_far(op: Op) -> bool:
    """Whether it goes to global memory and back, or to another cluster."""
    return bool(op.facts.cluster) or op.facts.buffer == GLOBAL or opcode(op.kind).far


def _long_iteration(loop: Loop) -> Iterator[Fault]:
    """Operations that take too long one after the other, each until all it starts is ready."""
    longest = [op.completion for op in loop.ops]
    for src, _, latency, _ in loop.edges:
        if latency > longest[src]:  # noqa: PLR1730 - a call takes longer, here and elsewhere
            longest[src] = latency
    total = sum(longest)
    if total > ITERATION_CYCLES:
        told = f"one after the other, the operations take {total:,} cycles"
        limit = f"at most {ITERATION_CYCLES:,} are allowed"
        yield Fault(loop.at("ops"), "long-iteration", f"{told}; {limit}")
