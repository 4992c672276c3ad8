"""An oracle of legality: a schedule in absolute time, every rule by enumeration.

    disagreements(loop, machine, analysis)  ──►  []                                    legal
                                            ──►  ["storage m0, copy 1: ...", ...]      not

It shares no code with the verifier, the derivation or the simulator, and never looks at derived
dependences: each rule is written from its statement, over iterations laid out one by one.
The published order inside a stage is left to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from living import over
from stretto.loop import Loop, Op, Use
from stretto.machine import Machine
from stretto.solution import ScheduleAnalysis
from timeline import Timeline, ranks


def disagreements(
    loop: Loop, machine: Machine, analysis: ScheduleAnalysis, max_stages: int | None = None
) -> list[str]:
    """Everything that is wrong with a schedule."""
    machine = machine.with_slots(loop.slots)
    ii = analysis.ii
    if not analysis.success or ii is None:
        return ["no schedule"]
    wrong = list(_placed(loop, analysis, ii))
    if wrong:
        return wrong
    line = timeline(loop, analysis)
    return [
        *_stages(loop, analysis, ii, max_stages),
        *_groups(loop, analysis),
        *_orders(line),
        *_instants(line),
        *_storages(line, machine, analysis),
        *_fusion(line, machine, analysis),
        *_units(line, machine, analysis),
        *_registers(loop, machine, analysis),
    ]


def _registers(loop: Loop, machine: Machine, analysis: ScheduleAnalysis) -> list[str]:
    """What lives fits, or as many registers more are stated as it takes, and not one less."""
    assert analysis.ii is not None
    spilled = analysis.spilled
    told = over(loop, machine, analysis.ii, analysis.starts, spilled)
    if spilled and not over(loop, machine, analysis.ii, analysis.starts, spilled - 1):
        told.append(f"{spilled} registers are said to spill; fewer do")
    return told


def timeline(loop: Loop, analysis: ScheduleAnalysis) -> Timeline:
    """Enough iterations that every pair of operations that can meet does so."""
    assert analysis.ii is not None
    rings = {use.name: max(1, use.ring_depth) for use in analysis.storages}
    stages = max(analysis.starts.values()) // analysis.ii + 1
    longest = max(op.completion for op in loop.ops)
    near = Timeline(loop, analysis.ii, analysis.starts, rings, 1)
    count = stages - (-longest // analysis.ii) + max(rings.values(), default=1) + near.farthest + 2
    return Timeline(loop, analysis.ii, analysis.starts, rings, count)


# Places -------------------------------------------------------------------------------------


def _placed(loop: Loop, analysis: ScheduleAnalysis, ii: int) -> Iterator[str]:
    placed = Counter(placement.op for placement in analysis.placements)
    expected = Counter(op.name for op in loop.ops)
    if placed != expected:
        yield f"placed {dict(placed)}; the loop has {dict(expected)}"
    if ii < 1:
        yield f"II {ii}"
    for placement in analysis.placements:
        if placement.start < 0:
            yield f"`{placement.op}` starts at {placement.start}"
    if {use.name for use in analysis.storages} != {s.name for s in loop.storages}:
        yield "the storages are not those of the loop"


def _stages(
    loop: Loop, analysis: ScheduleAnalysis, ii: int, max_stages: int | None
) -> Iterator[str]:
    deepest, first = 0, min(analysis.starts.values())
    if first >= ii:
        yield f"the first start is {first}; stage 0 ends at {ii}"
    for placement in analysis.placements:
        begin, op = placement.stage * ii, loop.op(placement.op)
        deepest = max(deepest, placement.stage)
        if not begin <= placement.start < begin + ii:
            yield f"`{op.name}` starts at {placement.start}, not in stage {placement.stage}"
        if placement.cycle is not None and placement.cycle != placement.start - begin:
            yield f"`{op.name}` starts at {placement.start}, not in cycle {placement.cycle}"
        limit = op.constraint.max_depth
        for what, wanted in (("stage", op.constraint.stage), ("start", op.constraint.start)):
            if wanted is not None and getattr(placement, what) != wanted:
                yield f"`{op.name}` is not in {what} {wanted}"
        if op.constraint.cycle is not None and placement.start - begin != op.constraint.cycle:
            yield f"`{op.name}` is not in cycle {op.constraint.cycle}"
        for other in op.constraint.before:
            if analysis.starts[other] <= placement.start:
                yield f"`{op.name}` does not start before `{other}`"
        if limit is not None and placement.start >= (limit + 1) * ii:
            yield f"`{op.name}` starts at {placement.start}, after stage {limit}"
    if analysis.stage_count != deepest + 1:
        yield f"the stage count is {analysis.stage_count}; the deepest stage is {deepest}"
    if max_stages is not None and deepest >= max_stages:
        yield f"{deepest + 1} stages; {max_stages} are allowed"
    last = max(analysis.starts[op.name] + op.ready for op in loop.ops)
    depth = analysis.pipeline_depth
    if not (depth - 1) * ii < last + 1 <= depth * ii:
        yield f"the pipeline depth is {depth}; the last result is ready at {last}, II {ii}"


def _groups(loop: Loop, analysis: ScheduleAnalysis) -> Iterator[str]:
    stage = {placement.op: placement.stage for placement in analysis.placements}
    joined: dict[str, set[int]] = {
        op.name: {g for g in (op.constraint.gid, op.constraint.leader_gid) if g is not None}
        for op in loop.ops
    }
    for op in loop.ops:
        # Everything that a chain of shared gids reaches.
        reached, gids = {op.name}, set(joined[op.name])
        grown = True
        while grown:
            more = {name for name, own in joined.items() if own & gids} - reached
            reached |= more
            gids = gids.union(*(joined[name] for name in more))
            grown = bool(more)
        for name in sorted(reached):
            wide = loop.op(name).constraint.stage_offset - op.constraint.stage_offset
            if stage[name] > stage[op.name] + wide:
                told = f"`{op.name}` in stage {stage[op.name]}, `{name}` in stage {stage[name]}"
                yield f"{told}, which should be {wide} apart"


# Time ---------------------------------------------------------------------------------------


def _orders(line: Timeline) -> Iterator[str]:
    told: set[tuple[str, str, str]] = set()
    for order in line.orders:
        early, late = line.start(order.earlier), line.start(order.later)
        if late >= early + order.least:
            continue
        key = (line.op(order.earlier).name, line.op(order.later).name, order.why.split(",")[0])
        if key not in told:
            told.add(key)
            yield (
                f"{order.why}: {line.named(order.later)} is {order.least} cycles "
                f"after {line.named(order.earlier)} at the earliest"
            )


def _instants(line: Timeline) -> Iterator[str]:
    found = ranks(line.in_one_cycle())
    if isinstance(found, list):
        events = ", ".join(line.named(event) for event in found[:6])
        yield f"no order inside one cycle: {events}"


# Memory -------------------------------------------------------------------------------------


def _storages(line: Timeline, machine: Machine, analysis: ScheduleAnalysis) -> Iterator[str]:
    used: Counter[str] = Counter()
    published = {use.name: use for use in analysis.storages}
    for storage in line.loop.storages:
        lifetime, ring = line.ii, 1
        if storage.name in line.rotating:
            lifetime = _lifetime(line, storage.name)
            while ring * line.ii < lifetime:
                ring += 1
        use = published[storage.name]
        if (use.lifetime, use.ring_depth) != (lifetime, ring):
            yield (
                f"storage {storage.name} lives {lifetime} cycles in {ring} copies; "
                f"published: {use.lifetime} cycles, {use.ring_depth} copies"
            )
        if (use.space, use.bytes) != (storage.space, storage.bytes):
            yield f"storage {storage.name} is published as {use.bytes} bytes of {use.space}"
        if storage.depth is not None and ring > storage.depth:
            yield f"storage {storage.name} has {ring} copies; its cap is {storage.depth}"
        used[storage.space] += ring * storage.bytes
    for row in analysis.memory:
        if row.used != used[row.space]:
            yield f"{row.space}: {row.used} bytes are published, {used[row.space]} are used"
    for space, total in used.items():
        budget = machine.budget(space)
        most = None if budget is None else budget.bytes
        if space != "register" and most is not None and total > most:
            yield f"{space}: {total} bytes are used, there are {most}"
        if space != "register" and space not in {row.space for row in analysis.memory}:
            yield f"{space}: {total} bytes are used, nothing is published"


def _lifetime(line: Timeline, storage: str) -> int:
    """Of the first iteration's instance: from a writer's first issue to the last completion."""
    touches = [
        touch
        for event in line.events
        for name, touch in line.touches(event)
        if name == storage and touch.instance == 0
    ]
    begin = min(line.start(touch.event) for touch in touches if touch.writes)
    return max(line.done(touch.event) for touch in touches) - begin


# Slots and pools ----------------------------------------------------------------------------


def held(op: Op) -> list[Use]:
    """What it holds, in an order that does not depend on how it is written."""
    return sorted(
        (use for use in op.uses or () if use.duration > 0), key=lambda u: (u.slot, u.offset)
    )


def holds(members: Sequence[Op]) -> list[Use]:
    """What operations hold together, use by use."""
    joint: list[Use] = []
    for uses in zip(*(held(op) for op in members), strict=True):
        offset, end = min(use.offset for use in uses), max(use.end for use in uses)
        most = max(use.occupancy for use in uses)
        joint.append(Use(uses[0].slot, end - offset, offset, most))
    return joint


def _units(line: Timeline, machine: Machine, analysis: ScheduleAnalysis) -> Iterator[str]:
    """Count what is held in every cycle of one II of the steady state."""
    grouped = {name for group in analysis.fused for name in group}
    parts = [*analysis.fused, *((op.name,) for op in line.loop.ops if op.name not in grouped)]
    last = max(line.starts.values()) + max(op.completion for op in line.loop.ops)
    first = 0
    while first < last:
        first += line.ii  # from here on, every iteration that is under way began in the past
    window = range(first, first + line.ii)
    load: Counter[tuple[str, str, int]] = Counter()
    for iteration in range(first // line.ii + 1):
        for part in parts:
            begin = line.starts[part[0]] + line.ii * iteration
            members = [line.loop.op(name) for name in part]
            if len({len(held(op)) for op in members}) > 1:
                continue  # told by the fusion rule
            for use in holds(members):
                for cycle in _within(window, begin + use.offset, begin + use.end):
                    load["slot", use.slot, cycle] += use.occupancy
            for op in members:
                lasts = max((use.duration for use in op.uses or ()), default=0)
                for demand in op.demands:
                    for cycle in _within(window, begin, begin + lasts):
                        load["pool", demand.pool, cycle] += demand.units
    for (what, name, cycle), units in sorted(load.items()):
        most = machine.slot(name).capacity if what == "slot" else machine.pool(name).cap
        if most is not None and units > most:
            yield f"{what} {name}: {units} of {most} in cycle {cycle}"


def _within(window: range, begin: int, end: int) -> range:
    return range(max(window.start, begin), min(window.stop, end))


# Fusion -------------------------------------------------------------------------------------


def _fusion(line: Timeline, machine: Machine, analysis: ScheduleAnalysis) -> Iterator[str]:
    if not analysis.fused:
        return
    seen: set[str] = set()
    edges = _same_iteration(line)
    for group in analysis.fused:
        if len(group) < 2 or seen & set(group) or not set(group) <= set(line.position):
            yield f"fused {group}: not a group of its own"
            return
        seen |= set(group)
        members = [line.loop.op(name) for name in group]
        yield from _may_share(line, machine, members)
        for name in group:
            reached = _reached(edges, name)
            if reached & set(group):
                yield f"fused {group}: a path from `{name}` to {sorted(reached & set(group))}"
    unit = {op.name: op.name for op in line.loop.ops}
    unit |= {name: group[0] for group in analysis.fused for name in group}
    contracted: dict[str, set[str]] = {}
    for src, dsts in edges.items():
        outside = {unit[dst] for dst in dsts if unit[dst] != unit[src]}
        contracted.setdefault(unit[src], set()).update(outside)
    for name in sorted(set(unit.values())):
        if name in _reached(contracted, name):
            yield f"fused {analysis.fused}: a circle through `{name}`"


def _may_share(line: Timeline, machine: Machine, members: Sequence[Op]) -> Iterator[str]:
    names = [op.name for op in members]
    first = members[0]
    slots = [use.slot for use in held(first)]
    if not slots:
        yield f"fused {names}: nothing is held"
    for op in members:
        if line.starts[op.name] != line.starts[first.name]:
            yield f"fused {names}: `{op.name}` starts at {line.starts[op.name]}"
        if op.kind != first.kind:
            yield f"fused {names}: `{op.name}` is {op.kind}"
        if op.facts.bank is None or op.facts.bank != first.facts.bank:
            yield f"fused {names}: `{op.name}` has bank {op.facts.bank}"
        if [use.slot for use in held(op)] != slots:
            yield f"fused {names}: `{op.name}` holds other slots"
        above = op.parent
        while above is not None:
            if above in names:
                yield f"fused {names}: `{op.name}` is nested in `{above}`"
            above = line.loop.op(above).parent
    for slot in slots:
        if len(members) > machine.slot(slot).fusion_cap:
            yield f"fused {names}: slot {slot} takes {machine.slot(slot).fusion_cap}"


def _same_iteration(line: Timeline) -> dict[str, set[str]]:
    """Who comes before whom inside one iteration: by a value, as stated, or on a storage."""
    edges: dict[str, set[str]] = {}
    for op in line.loop.ops:
        for operand in op.operands:
            if operand.distance == 0 and operand.value in line.maker:
                edges.setdefault(line.maker[operand.value].name, set()).add(op.name)
    for stated in line.loop.stated:
        if stated.distance == 0:
            edges.setdefault(stated.src, set()).add(stated.dst)
    for order in _rings_capped(line).storage_orders():
        if order.earlier[0] == order.later[0]:
            name = line.op(order.later).name
            edges.setdefault(line.op(order.earlier).name, set()).add(name)
    return edges


def _rings_capped(line: Timeline) -> Timeline:
    """With rings as deep as may be: what is then ordered is so in every schedule."""
    far = line.farthest + 1
    rings = {s.name: far if s.depth is None else s.depth for s in line.loop.storages}
    return Timeline(line.loop, line.ii, line.starts, rings, 2 * far)


def _reached(edges: Mapping[str, set[str]], name: str) -> set[str]:
    seen: set[str] = set()
    front = [name]
    while front:
        for dst in edges.get(front.pop(), set()):
            if dst not in seen:
                seen.add(dst)
                front.append(dst)
    return seen
