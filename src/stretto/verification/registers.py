"""What lives in the registers of an agent: registers.

    compute, 98,304 bytes     iteration 0   scores ──────── p ───────┐
                              iteration 1             scores ────────┴─ p ──      131,072 at once

A tile lives with the agent of the operation that makes it, where a machine states how many
registers that has: from when its registers may be written (arithmetic takes them when it is
complete, in place of what it read last; all else when it is issued) until its last reader is
complete. What a product adds to becomes the product's own when that is issued; what else a product
reads is kept until it was waited for. Names take no registers. Scratch lives while its operation
runs.

Where no schedule keeps to the registers, one that does not says how many of a thread are too many,
no more and no fewer.
"""

from __future__ import annotations

from collections.abc import Iterator

from stretto.loop import Loop, Op, Storage, Value
from stretto.machine.machine import REGISTER_BYTES
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import SPACES
from stretto.verification.layout import Layout, Moment, Span, Violation


def registers(laid: Layout) -> Iterator[Violation]:
    """In no cycle does more live with an agent than its registers hold, or as is stated."""
    stated, worst = laid.analysis.spilled, 0
    for violation, threads in _crowded(laid):
        detail = dict(violation.detail)
        excess = int(detail["load"]) - int(detail["limit"])
        spilled = -(-excess // (threads * REGISTER_BYTES))
        worst = max(worst, spilled)
        if spilled > stated:
            yield violation
    if worst < stated:
        message = f"the schedule states that {stated} registers of a thread spill; {worst} do"
        yield Violation("registers", message, (), (("stated", stated), ("spilled", worst)))


def _crowded(laid: Layout) -> Iterator[tuple[Violation, int]]:
    """By replica: when most lives with it, if that is too much; and the threads that it has."""
    who = {op.name: _issued_by(laid, op) for op in laid.loop.ops}
    present = {name: agent for agent in who.values() if agent is not None for name in [agent[0]]}
    for name, (_, kind) in present.items():
        agent = next(a for a in laid.machine.agents if a.name == kind)
        alike = sum(other == kind for _, other in present.values())
        most = agent.room(alike)
        if most is None:
            continue
        mine = [op.name for op in laid.loop.ops if (who[op.name] or ("",))[0] == name]
        steady, passing = _held(laid, frozenset(mine))
        resting = sum(size for _, size in steady)
        worst = max(
            laid.moments(passing, most - resting), key=lambda moment: moment.load, default=None
        )
        if worst is None and resting > most:
            worst = Moment(0, 0, ())
        if worst is not None:
            yield _too_much(laid, name, most, steady, worst), agent.threads(alike)


def _issued_by(laid: Layout, op: Op) -> tuple[str, str] | None:
    """The replica that issues an operation, and the agent it is one of."""
    for agent in laid.machine.agents:
        for number in range(agent.replicas):
            if op.agent == agent.replica(number):
                return agent.replica(number), agent.name
    issuer = opcode(op.kind).issuer
    return next(((a.name, a.name) for a in laid.machine.agents if issuer in a.issues), None)


def _too_much(
    laid: Layout, agent: str, most: int, steady: list[tuple[str, int]], worst: Moment
) -> Violation:
    load = worst.load + sum(size for _, size in steady)
    oldest = min((run.first for run in worst.held), default=0)
    cycle = worst.cycle - oldest * laid.ii
    lines = [f"`{name}` {size:,}" for name, size in steady]
    for run in worst.held:
        times = f"{run.count} × " if run.count > 1 else ""
        name, *what = run.span.owner
        lines.append(f"{' '.join([*what, ''])}`{name}` {times}{run.span.amount:,}")
    message = (
        f"{agent} has registers for {most:,} bytes of tiles; at cycle {cycle} (II {laid.ii}) "
        f"{load:,} live: {' + '.join(lines)}"
    )
    makers = {result: op.name for op in laid.loop.ops for result in op.results}
    held = [run.span.owner for run in worst.held]
    ops = [owner[0] if owner[1:] else makers.get(owner[0], "") for owner in held]
    detail = (("agent", agent), ("limit", most), ("cycle", cycle), ("load", load), ("ii", laid.ii))
    return Violation("registers", message, tuple(dict.fromkeys(filter(None, ops))), detail)


# Lives --------------------------------------------------------------------------------------


def _held(laid: Layout, mine: frozenset[str]) -> tuple[list[tuple[str, int]], list[Span]]:
    """What always lives with an agent, and what one iteration has there for a time."""
    loop = laid.loop
    makers = {result: op for op in loop.ops for result in op.results}
    uses = _uses(loop)
    steady: list[tuple[str, int]] = []
    passing: list[Span] = []
    for value in loop.values:
        if not value.register_bytes:
            continue
        maker, taken = makers.get(value.name), uses.get(value.name, [])
        if maker is None:
            if any(op.name in mine for op, _, _ in taken):
                steady.append((value.name, value.register_bytes))
        elif maker.name in mine:
            passing += _life(laid, value, maker, taken)
    for storage in loop.storages:
        if not SPACES[storage.space].budgeted:
            _stored(laid, storage, mine, steady, passing)
    for op in loop.ops:
        if op.facts.scratch and op.name in mine and op.name in laid.starts:
            begin = laid.at(op.name, 0)
            owner = (op.name, "scratch")
            passing.append(Span(owner, begin, begin + op.completion, op.facts.scratch))
    return steady, passing


def _uses(loop: Loop) -> dict[str, list[tuple[Op, int, int]]]:
    """Value to (who reads it, by which operand, how many iterations later), by whatever name."""
    views = {value.name: value.view_of for value in loop.values if value.view_of is not None}
    makers = {result: op for op in loop.ops for result in op.results}
    found: dict[str, list[tuple[Op, int, int]]] = {}
    for op in loop.ops:
        if op.results and op.completion == 0 and _all_names(loop, op, views):
            continue
        for number, operand in enumerate(op.operands):
            value, later = operand.value, operand.distance
            for _ in range(len(loop.values)):
                if value not in views:
                    break
                seen = makers[value].operands if value in makers else ()
                later += next((o.distance for o in seen if o.value == views[value]), 0)
                value = views[value]
            found.setdefault(value, []).append((op, number, later))
    return found


def _all_names(loop: Loop, op: Op, views: dict[str, str]) -> bool:
    known = {value.name for value in loop.values}
    made = [result for result in op.results if result in known]
    return bool(made) and all(result in views for result in made)


def _life(
    laid: Layout, value: Value, maker: Op, taken: list[tuple[Op, int, int]]
) -> Iterator[Span]:
    loop = laid.loop
    waited = [(op, later) for op, _, later in taken]
    waited += [
        (waiter, later + back)
        for op, number, later in taken
        if opcode(op.kind).accumulator not in (None, number)
        for waiter, back in _waiters(loop, op)
    ]
    if any(op.name not in laid.starts for op, _ in [(maker, 0), *waited]):
        return
    done = laid.at(maker.name, 0) + maker.completion
    begin = laid.at(maker.name, 0) if opcode(maker.kind).memory else done
    ends = [done]
    for op, number, later in taken:
        if number == opcode(op.kind).accumulator and _adds_to(loop, op, value):
            ends.append(laid.at(op.name, later))
        else:
            ends.append(laid.at(op.name, later) + op.completion)
            if opcode(op.kind).accumulator is not None:
                for waiter, back in _waiters(loop, op):
                    ends.append(laid.at(waiter.name, later + back) + waiter.completion)
    yield Span((value.name,), begin, max(begin, *ends), value.register_bytes)


def _adds_to(loop: Loop, op: Op, value: Value) -> bool:
    """Whether a product's own result takes the registers of what it adds to."""
    made = [v.register_bytes for v in loop.values if v.name in op.results]
    return value.register_bytes in made


def _waiters(loop: Loop, product: Op) -> Iterator[tuple[Op, int]]:
    """Who waits for a product, and how many iterations later."""
    for op in loop.ops:
        if opcode(op.kind).awaits and op.operands and op.operands[0].value in product.results:
            yield op, op.operands[0].distance


def _stored(
    laid: Layout,
    storage: Storage,
    mine: frozenset[str],
    steady: list[tuple[str, int]],
    passing: list[Span],
) -> None:
    """A storage in registers is the agent's whose operation writes it first, or reads it."""
    touched = laid.touched[storage.name]
    writers = [touch for touch in touched if touch.writes]
    if not touched or (writers or touched)[0].op.name not in mine:
        return
    if storage.fixed or not writers:
        steady.append((storage.name, storage.bytes))
    elif all(touch.op.name in laid.starts for touch in touched):
        begin = min(laid.at(touch.op.name, 0) for touch in writers)
        end = max(laid.at(touch.op.name, touch.back) + touch.op.completion for touch in touched)
        passing.append(Span((storage.name,), begin, end, storage.bytes))
