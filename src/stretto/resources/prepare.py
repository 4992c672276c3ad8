"""A loop made ready: from opcodes, types and what analysis knows to costs on a machine, checked.

    Loop, Machine | name  ──►  classify ──►  check ──►  Prepared, or LoopError with every fault

    async.tiled_tma_load, 128x64xf16, divisibility 8
        tma_load              needs divisibility % 16 == 0     broken: 8
        tma_load_by_threads   ─► lsu 7, tp_gnic_rd 7, tp_smem_wr 7 (+7)    and the reason is kept

The rules are rows of the machine file; this module only reads them in order. Operations that
state their own uses and latency keep them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

from stretto.errors import StrettoError
from stretto.limits import CYCLES, UNITS
from stretto.loop import (
    Demand,
    Fault,
    Loop,
    LoopError,
    Note,
    Op,
    Place,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Encoding, Machine, load_machine
from stretto.machine.choice import ASKED, chosen_for_loop
from stretto.machine.formula import Formula, FormulaError, Scalar, told_number
from stretto.ops.opcodes import opcode
from stretto.ops.spaces import SPACES


@dataclass(frozen=True, slots=True)
class Prepared:
    """A loop that is ready to be bounded, scheduled or verified."""

    loop: Loop
    machine: Machine
    """With the loop's own slots."""
    notes: tuple[Note, ...]
    """Lifted budgets, operations that fell to another encoding, and the like."""
    machine_why: str = ASKED
    """Why it is this machine."""


def prepare(loop: Loop, machine: Machine | str | None = None, why: str = ASKED) -> Prepared:
    """Classify and check a loop; LoopError with every fault.

    The machine is the one given, `why` that one; else the one the loop names, else `blackwell`.
    """
    if not isinstance(loop, Loop):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever calls may have no types
        told = f"a loop is wanted, and {type(loop).__name__} is given"
        raise StrettoError(f"{told}; stretto.read(path) gives the loops of a file")
    if machine is None:
        machine, why = chosen_for_loop(loop.machine)
        why = loop.machine_why or why
    machine = load_machine(machine)
    resolved = resolve(loop, machine)
    faults = check(resolved.loop, machine)
    if faults:
        raise LoopError(loop.name, faults)
    full = machine.with_slots(loop.slots)
    lifted = [Note(Place(), text) for text in machine.notes]
    loop = resolved.loop
    more = [*_unwritten(loop), *_partly_filled(loop), *_unlimited(loop, machine)]
    notes = (*lifted, *resolved.notes, *(Note(loop.at(), text) for text in more))
    return Prepared(resolved.loop, full, notes, why)


def _unwritten(loop: Loop) -> Iterator[str]:
    """Values that an operation makes in a buffer that it does not write, and nobody else either:
    the buffer counts as there before the loop, and no ring is made of it."""
    written = {name for op in loop.ops for name in op.writes}
    homes = {value.name: value.storage for value in loop.values}
    for op in loop.ops:
        taken = {homes.get(operand.value) for operand in op.operands}
        for value in op.results:
            home = homes.get(value)
            if home is not None and home not in written and home not in taken:
                yield (
                    f"`{op.name}` defines `{value}`, which lives in `{home}`, and nothing in the "
                    f"loop writes `{home}`: it counts as filled before the loop"
                )


def _partly_filled(loop: Loop) -> Iterator[str]:
    """Buffers of which a part is never written: legal, for padding say, but seldom meant."""
    if not loop.homes:
        return
    writers = Counter(name for op in loop.ops for name in set(op.writes))
    storages = {s.name: s for s in loop.storages}
    values = {value.name: value for value in loop.values}
    for op in loop.ops:
        for value in (values[name] for name in op.results):
            home = storages.get(value.storage or "")
            if home is None or value.type is None or home.name not in op.writes:
                continue
            if value.type.bytes < home.bytes and writers[home.name] == 1:
                yield (
                    f"`{op.name}` fills `{home.name}`, {home.bytes:,} bytes, with {value.type}, "
                    f"{value.type.bytes:,} bytes, and nothing else writes it"
                )


def _unlimited(loop: Loop, machine: Machine) -> Iterator[str]:
    """Spaces that are used and left out among the budgets: legal, but perhaps forgotten."""
    for space in dict.fromkeys(s.space for s in loop.storages if SPACES[s.space].budgeted):
        if machine.budgets and machine.budget(space) is None:
            words = SPACES[space].words
            yield f"{machine.name} gives no bytes of {words}: nothing limits `{space}`"


# Costs ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Classified:
    """An operation with its costs, the row they come from, and what is worth saying about it."""

    op: Op
    encoding: str | None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Resolved:
    """A loop whose every operation has its costs, and what was noted on the way."""

    loop: Loop
    notes: tuple[Note, ...] = ()


def resolve(loop: Loop, machine: Machine) -> Resolved:
    """The loop on a machine; LoopError with every operation that has no place there."""
    if loop.resolved:
        return Resolved(loop)
    values = {value.name: value for value in loop.values}
    storages = {storage.name: storage for storage in loop.storages}
    ops: list[Op] = []
    notes: list[Note] = []
    faults: list[Fault] = []
    for i, op in enumerate(loop.ops):
        if op.resolved:
            ops.append(op)
            continue
        try:
            classified = classify(op, machine, values, storages, loop.at(op=i))
        except FormulaError as error:
            told = f"`{op.name}` ({op.kind}): {error}"
            faults.append(Fault(loop.at(op=i), "no-encoding", told))
            continue
        ops.append(classified.op)
        notes.extend(classified.notes)
    if faults:
        raise LoopError(loop.name, faults)
    return Resolved(replace(loop, ops=tuple(ops)), tuple(notes))


def _slot_of(machine: Machine, slot: str, op: Op) -> str:
    """The slot of the agent that an operation is given to by name."""
    from stretto.machine.replicas import slot_of  # noqa: PLC0415 - few loops name agents

    return slot_of(machine, slot, machine.agent_for(opcode(op.kind).issuer), op.agent)


def classify(
    op: Op,
    machine: Machine,
    values: Mapping[str, Value] | None = None,
    storages: Mapping[str, Storage] | None = None,
    place: Place = Place(),  # noqa: B008 - a frozen value
) -> Classified:
    """One operation on a machine; FormulaError says why it has no cost there.

    What is noted of it is at `place`.
    """
    if op.resolved:
        return Classified(op, op.encoding)
    known = variables(op, values or {}, storages or {})
    encoding, notes = _select(op, machine, known, place)
    costs = _Costs(machine, encoding, known)
    uses = tuple(
        Use(
            use.slot if op.agent is None else _slot_of(machine, use.slot, op),
            costs.cycles(use.duration, f"uses[{i}].duration"),
            use.offset,
            use.occupancy,
        )
        for i, use in enumerate(encoding.uses)
    )
    demands = costs.demands()
    return Classified(
        replace(
            op,
            uses=uses if op.uses is None else op.uses,
            demands=op.demands + demands,
            latency=costs.cycles(encoding.latency, "latency") if op.latency is None else op.latency,
            encoding=encoding.name,
        ),
        encoding.name,
        notes,
    )


def _select(
    op: Op, machine: Machine, known: Mapping[str, Scalar], place: Place
) -> tuple[Encoding, tuple[Note, ...]]:
    """The first row whose `when` holds and whose `needs` are not broken, and what to say.

    A stated tag names the row outright, so that `when` has nothing left to choose.
    """
    unfit: list[str] = []
    for encoding in _candidates(op, machine):
        if op.facts.tag is None and not _applies(encoding, known):
            continue
        broken = [
            f"{need.why} ({_facts_of(need.condition, known)})"
            for need in encoding.needs
            if need.condition.known(known) and not need.condition.holds(known)
        ]
        if not broken:
            if unfit:
                unfit[-1] += f"; takes {encoding.name}"
            return encoding, tuple(Note(Place(place.loop), told) for told in unfit)
        unfit.append(f"`{op.name}` ({op.kind}) cannot be {encoding.name}: " + "; ".join(broken))
    if op.kind in machine.opcodes or op.facts.tag is not None:
        named = f"`{op.name}` ({op.kind}) "  # whoever tells of it names it
        told = "; ".join(one.removeprefix(named) for one in unfit)
        told = told or "no row of the machine file matches its types and facts"
        raise FormulaError(told)
    if machine.fallback is None:
        raise FormulaError(f"{machine.name} does not know this operation; it has no encoding")
    told = f"`{op.name}`: {machine.name} does not know `{op.kind}`; takes {machine.fallback}"
    return machine.encoding(machine.fallback), (Note(place, told),)


def _applies(encoding: Encoding, known: Mapping[str, Scalar]) -> bool:
    when = encoding.when
    return when is None or (when.known(known) and when.holds(known))


def _candidates(op: Op, machine: Machine) -> tuple[Encoding, ...]:
    rows = machine.encodings_of(op.kind)
    tag = op.facts.tag
    if tag is None:
        return rows
    tagged = tuple(e for e in rows if e.tag == tag)
    tagged = tagged or tuple(e for e in machine.encodings if e.tag == tag)
    if not tagged:
        raise FormulaError(f"{machine.name} has no row with tag {tag:#04x}")
    return tagged


@dataclass(frozen=True, slots=True)
class _Costs:
    """The formulas of an encoding, computed; what is wrong with one names it and its place."""

    machine: Machine
    encoding: Encoding
    known: Mapping[str, Scalar]

    def cycles(self, formula: Formula, place: str) -> int:
        """A duration or a latency."""
        if not formula.known(self.known):
            missing = ", ".join(f"`{name}`" for name in formula.names if name not in self.known)
            raise FormulaError(
                f"its cost is `{formula.text}`, and {missing} cannot be told; "
                "state the types of its operands and results, or its uses and latency"
            )
        return self._most(formula, f"encodings.{self.encoding.name}.{place}", CYCLES, "cycles")

    def demands(self) -> tuple[Demand, ...]:
        """What it draws from pools: those of any operation, then its own."""
        own = f"encodings.{self.encoding.name}.demands"
        rows = [("demands", pool, formula) for pool, formula in self.machine.demands]
        rows += [(own, pool, formula) for pool, formula in self.encoding.demands]
        return tuple(
            Demand(pool, units)
            for table, pool, formula in rows
            if formula.known(self.known)
            and (units := self._most(formula, f"{table}.{pool}", UNITS, "units")) > 0
        )

    def _most(self, formula: Formula, place: str, most: int, unit: str) -> int:
        where = f"{place} of {self.machine.file or self.machine.name}"
        try:
            cost = formula.cost(self.known)
        except FormulaError as error:
            raise FormulaError(f"{where}: {error}") from None
        if cost > most:
            told = f"`{formula.text}` is {told_number(cost)}"
            raise FormulaError(f"{where}: {told}; at most {most:,} {unit} are allowed")
        return cost


def _facts_of(condition: Formula, known: Mapping[str, Scalar]) -> str:
    return ", ".join(f"{name} {known[name]}" for name in condition.names)


def variables(
    op: Op, values: Mapping[str, Value], storages: Mapping[str, Storage]
) -> dict[str, Scalar]:
    """Everything a formula may name, as far as it is known of this operation."""
    known: dict[str, Scalar] = {}
    facts = op.facts
    for name in ("contiguity", "divisibility", "constancy", "bank", "bank_width", "bank_pairs"):
        fact: int | None = getattr(facts, name)
        if fact is not None:
            known[name] = fact
    if facts.bounds is not None:
        known["lower"], known["upper"] = facts.bounds
    if facts.memory_range is not None:
        known["first_byte"], known["last_byte"] = facts.memory_range
    for name in ("cluster", "accumulates"):
        said: bool | None = getattr(facts, name)
        if said is not None:
            known[name] = int(said)
    buffer = facts.buffer or _touched_space(op, values, storages)
    if buffer is not None:
        known["buffer"] = buffer
    inputs = _types([operand.value for operand in op.operands], values)
    outputs = _types(op.results, values)
    if inputs or outputs:
        into, out = (inputs or outputs)[0], (outputs or inputs)[0]
        known |= {"elements": out.elements, "element_bits": out.bits, "element": out.element}
        known |= {"bytes": out.bytes, "in_elements": into.elements, "in_bytes": into.bytes}
    if facts.bytes is not None:
        known["bytes"] = known["in_bytes"] = facts.bytes
    return known | _product(inputs)


def _types(names: tuple[str, ...] | list[str], values: Mapping[str, Value]) -> list[TileType]:
    found = [values[name].type for name in names if name in values]
    return [t for t in found if t is not None and t.bits > 0]


def _touched_space(
    op: Op, values: Mapping[str, Value], storages: Mapping[str, Storage]
) -> str | None:
    """Where it writes, or reads: listed, or where an operand lives and the result does not."""
    made, taken = (
        [values[name].storage for name in names if name in values]
        for names in (op.results, [operand.value for operand in op.operands])
    )
    implied = [name for name in taken if name is not None and name not in made]
    touched = [*op.writes, *(read.storage for read in op.reads), *implied]
    return next((storages[name].space for name in touched if name in storages), None)


def _product(inputs: list[TileType]) -> dict[str, Scalar]:
    """m, n and k of a matrix product a[m, k] × b[k, n]; those of a batch as one of more rows."""
    if len(inputs) < 2 or len(inputs[0].shape) < 2 or len(inputs[1].shape) < 2:
        return {}
    (*batch, m, k), (*others, k2, n) = inputs[0].shape, inputs[1].shape
    return {"m": prod(batch) * m, "n": n, "k": k} if (batch, k) == (others, k2) else {}
