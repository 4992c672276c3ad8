"""Machine files: TOML in, frozen `Machine` out, every fault with its key.

    [slots.tma]
    capacity = 0      ──►  my.toml: slots.tma.capacity: error: is 0; expected ... at least 1

Sections: machine, slots, pools, demands, budgets, families, tags, cells, tier2, anchors,
ceilings, fences, costs, limits, timings, products, agents, encodings; or `extends`, another
machine, and what differs. Only `machine.name` and one slot with its capacity are required.
`docs/machines.md` walks through a whole file.

A machine is read once. Its file is the same while its time stamp and size are, and the environment
while the variables that the file asks about have the same values.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from time import time_ns
from typing import Any, Literal, TypeVar, cast, get_args

from stretto.document import Cursor, each, one_of, parse_toml
from stretto.errors import MachineError, nearest
from stretto.files import STANDARD, read_text
from stretto.limits import MACHINE_BYTES
from stretto.machine.formula import Formula, FormulaError
from stretto.machine.machine import (
    CYCLES,
    Agent,
    Budget,
    Cell,
    Encoding,
    Family,
    Figure,
    Machine,
    Need,
    Pool,
    Product,
    Slot,
    Tag,
    Unit,
    UseCost,
)
from stretto.ops.opcodes import ISSUERS
from stretto.ops.operations import OF_COST
from stretto.ops.spaces import SPACES

T = TypeVar("T")

KINDS = ("coarse", "fine", "test", "pipe")
UNITS: tuple[Unit, ...] = get_args(Unit)
FORMULA_WANTED = {
    "number": 'a cost such as 8 or "ceil(bytes / 512)"',
    "condition": 'a condition such as "bytes % 16 == 0"',
}


WRITTEN = "<machine>"
"""What a machine is called that stands in the loop itself."""

_NO_FOLDER = ("<", "/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""How files begin that are none: stdin, texts, pipes of a shell."""


def machine_names() -> tuple[str, ...]:
    """The machines that ship, sorted."""
    files = resources.files("stretto.machine").joinpath("targets").iterdir()
    return tuple(sorted(f.name.removesuffix(".toml") for f in files if f.name.endswith(".toml")))


def load_machine(
    name: str | os.PathLike[str] | Machine, environment: Mapping[str, str] | None = None
) -> Machine:
    """A machine that ships, by name; a user's own, by the path of its TOML file; or TOML itself.

    A machine is given back as it is.

    It is read once: a file is read again when it has changed, or the environment has. A name of
    several lines is the text of a machine file, as loops have it that bring their machine along.
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever calls may have no types
        told = f"a machine is wanted, and {type(name).__name__} is given"
        raise MachineError(f"{told}; it goes by a name, the path of a .toml file, or as a Machine")
    name = os.fspath(name)
    environment = os.environ if environment is None else environment
    if "\n" in name:
        return once(name, SHIPS, environment, partial(read_machine, WRITTEN, name))
    if name in machine_names():
        target = resources.files("stretto.machine").joinpath("targets", f"{name}.toml")

        def ships(asked: Mapping[str, str]) -> Machine:
            return read_machine(f"{name}.toml", target.read_text(encoding="utf-8"), asked)

        return once(name, SHIPS, environment, ships)
    find_machine(name)

    def own(asked: Mapping[str, str]) -> Machine:
        return read_machine(name, read_text(name, MACHINE_BYTES)[1], asked)

    return once(name, stamp(name), environment, own)


def find_machine(path: str) -> str:
    """The path of a machine file that somebody gave; MachineError where it can be none."""
    if path == STANDARD or not (path.endswith(".toml") or os.path.exists(path)):
        known = ", ".join(machine_names())
        hint = nearest(path, machine_names())
        meant = f"{hint} " if hint else ""
        message = f"no machine `{path}`; {meant}known: {known}; or the path of a .toml file"
        raise MachineError(message)
    return path


def machine_beside(file: str, name: str) -> str:
    """The machine that a document names, as `load_machine` takes it.

    A machine that ships stays a name. A path is relative to the folder of the document, or to the
    working directory where a document has none, as on stdin.
    """
    if "\n" in name or name in machine_names() or file.startswith(_NO_FOLDER):
        return name
    path = os.path.join(os.path.dirname(file), name)
    return path if name.endswith(".toml") or os.path.exists(path) else name


def read_machine(file: str, text: str, environment: Mapping[str, str]) -> Machine:
    """The machine a TOML text describes, alone or over the one that it extends."""
    top = parse_toml(file, text)
    if "extends" not in top.table():
        return machine_of(top, environment)
    from stretto.machine.settings import extended  # noqa: PLC0415 - few files extend others

    base = top.get("extends").text()
    machine = replace(machine_of(extended(top), environment), extends=base)
    own = top.table().get("machine")
    if file.endswith(".toml") and not (isinstance(own, Mapping) and "name" in own):
        machine = replace(machine, name=os.path.basename(file).removesuffix(".toml"))
    return machine


def machine_of(top: Cursor, environment: Mapping[str, str]) -> Machine:
    """The machine a document describes, which extends none."""
    head = top.get("machine")
    slots = _slots(top.get("slots"))
    pools = top.opt("pools", lambda c: _named(c, _pool), ())
    known = _Known(slots, pools)
    budgets, notes = _budgets(top, environment)
    encodings = top.opt("encodings", lambda c: _named(c, known.encoding), ())
    figures = partial(_named, read=partial(_figure, top))
    machine = Machine(
        name=head.get("name").text(),
        title=head.opt("title", Cursor.text, ""),
        slots=slots,
        pools=pools,
        budgets=budgets,
        encodings=encodings,
        products=top.opt("products", lambda c: _named(c, _product), ()),
        agents=top.opt("agents", lambda c: _named(c, known.agent), ()),
        families=top.opt("families", lambda c: _named(c, known.family), ()),
        tags=top.opt("tags", each(known.tag), ()),
        cells=top.opt("cells", each(partial(_cell, top)), ()),
        tier2=top.opt("tier2", lambda c: _named(c, partial(_published, top)), ()),
        anchors=top.opt("anchors", figures, ()),
        ceilings=top.opt("ceilings", figures, ()),
        fences=top.opt("fences", figures, ()),
        costs=top.opt("costs", figures, ()),
        limits=top.opt("limits", figures, ()),
        timings=top.opt("timings", figures, ()),
        measured=head.opt("measured", Cursor.text, ""),
        unit=cast("Unit", head.opt("unit", one_of(*UNITS), CYCLES)),
        pipelining=head.opt("pipelining", known.slot_list, None),
        demands=top.opt("demands", known.demands, ()),
        fallback=head.opt("fallback", lambda c: _fallback(c, encodings), None),
        notes=notes,
        file=top.file,
    )
    head.done()
    top.done()
    if machine.tags or any(encoding.tags for encoding in encodings):
        from stretto.machine.agreement import check_latencies  # noqa: PLC0415 - few have any

        check_latencies(top, machine)
    return machine


def _named(table: Cursor, read: Callable[[str, Cursor], T]) -> tuple[T, ...]:
    rows: list[T] = []
    for name, row in table.entries():
        rows.append(read(name, row))
        row.done()
    return tuple(rows)


def _source(row: Cursor) -> str:
    return row.opt("source", Cursor.text, "")


def _slots(table: Cursor) -> tuple[Slot, ...]:
    rows: list[Slot] = []
    ids: dict[int, str] = {}
    for name, row in table.entries():
        slot = row.record(
            partial(Slot, id=len(rows) + 1, name=name),
            "capacity",
            id=Cursor.positive,
            capacity=_capacity,
            kind=one_of(*KINDS),
            role=Cursor.text,
            primary=Cursor.boolean,
            fusion_cap=Cursor.positive,
            anchor=Cursor.natural,
            source=Cursor.text,
        )
        if slot.id in ids:
            raise row.fail(f"has id {slot.id}, which `{ids[slot.id]}` has already", "ids differ")
        ids[slot.id] = name
        rows.append(slot)
    if not rows:
        raise table.fail("has no slot", "a machine needs at least one")
    return tuple(sorted(rows, key=lambda slot: slot.id))


def _capacity(cursor: Cursor) -> int | None:
    if cursor.value == "unlimited":
        return None
    if isinstance(cursor.value, str):
        raise cursor.fail(f'is "{cursor.value}"', 'expected a whole number or "unlimited"')
    return cursor.positive()


def _pool(name: str, row: Cursor) -> Pool:
    text = Cursor.text
    return row.record(partial(Pool, name), "cap", cap=Cursor.positive, role=text, source=text)


def _product(name: str, row: Cursor) -> Product:
    def space(cursor: Cursor) -> str:
        return cursor.choice(tuple(SPACES))

    def spaces(cursor: Cursor) -> tuple[str, ...]:
        found = tuple(space(item) for item in cursor.items())
        if not found:
            raise cursor.fail("is empty", "expected one memory space or more")
        return found

    def types(cursor: Cursor) -> tuple[str, str, str]:
        words = cursor.text().split()
        if len(words) != 3:
            raise cursor.fail(f'is "{cursor.value}"', "expected the types of two factors and a sum")
        return words[0], words[1], words[2]

    return Product(
        name=name,
        opcode=row.get("opcode").text(),
        accumulator=space(row.get("accumulator")),
        a=spaces(row.get("a")),
        b=spaces(row.get("b")),
        types=row.opt("types", lambda c: tuple(map(types, c.items())), ()),
        rows=row.opt("rows", Cursor.positive, 1),
        columns=row.opt("columns", Cursor.positive, 1),
        depth=row.opt("depth", Cursor.positive, 1),
        repeats=row.opt("repeats", Cursor.boolean, False),
        batches=row.opt("batches", Cursor.boolean, True),
        wait=row.opt("wait", Cursor.text, ""),
        in_step=row.opt("in_step", Cursor.boolean, False),
        held=row.opt("held", Cursor.natural, 0),
        held_of_tiles=row.opt("held_of_tiles", Cursor.natural, 0),
        source=_source(row),
    )


def _budgets(
    top: Cursor, environment: Mapping[str, str]
) -> tuple[tuple[Budget, ...], tuple[str, ...]]:
    notes: list[str] = []

    def budget(space: str, row: Cursor) -> Budget:
        if space not in SPACES:
            raise row.fail("unknown memory space", "expected one of " + ", ".join(SPACES))
        size: int | None = row.get("bytes").positive()
        switch = row.opt("unlimited_by", Cursor.text, "")
        if switch and environment.get(switch) == "1":
            notes.append(f"{switch}=1 lifts the {space} budget of {size:,} bytes")
            size = None
        unit = row.opt("unit", Cursor.positive, 1)
        barrier = row.opt("barrier", Cursor.positive, 0)
        return Budget(space=space, bytes=size, unit=unit, barrier=barrier, source=_source(row))

    return top.opt("budgets", lambda c: _named(c, budget), ()), tuple(notes)


def _number(top: Cursor, row: Cursor) -> int:
    """A figure of its own, or that of the place it names."""
    if not row.has("of") and not row.has("at_least"):
        return row.get("value").natural()
    from stretto.machine.agreement import figure  # noqa: PLC0415 - few machines publish any

    return figure(top, row)


def _published(top: Cursor, name: str, row: Cursor) -> Figure:
    return Figure(name, (_bound(top, row),), row.get("meaning").text(), _source(row))


def _bound(top: Cursor, row: Cursor) -> int:
    """A figure that a rule has: one of its own would be shown and decide nothing."""
    from stretto.machine.agreement import figure  # noqa: PLC0415 - few machines publish any

    if not row.has("of") and not row.has("at_least"):
        hint = "`of` names the figure of a rule that it is, `at_least` one that it has to exceed"
        raise row.fail("states a number that no rule has", hint)
    return figure(top, row)


def _cell(top: Cursor, row: Cursor) -> Cell:
    return Cell(
        index=row.get("index").natural(),
        value=_bound(top, row),
        meaning=row.get("meaning").text(),
        enforced_by=row.get("enforced_by").text(),
        source=_source(row),
    )


def _figure(top: Cursor, name: str, row: Cursor) -> Figure:
    if row.has("values"):
        values = tuple(item.natural() for item in row.get("values").items())
        if not values:
            raise row.get("values").fail("is empty", "expected one number or more")
    else:
        values = (_number(top, row),)
    return Figure(name, values, row.get("meaning").text(), _source(row))


def _fallback(cursor: Cursor, encodings: tuple[Encoding, ...]) -> str:
    name = cursor.text()
    if name not in [e.name for e in encodings]:
        raise cursor.fail(f"is {name!r}", "expected the name of an encoding of this file")
    return name


def _formula(cursor: Cursor, wanted: Literal["number", "condition"]) -> Formula:
    """A formula, after a check that it can be read and may come out as what is wanted."""
    expected = "expected " + FORMULA_WANTED[wanted]
    if isinstance(cursor.value, int) and not isinstance(cursor.value, bool):
        if wanted == "condition":
            raise cursor.fail(f"is {cursor.integer()}, a number", expected)
        return Formula(str(cursor.natural()))
    if not isinstance(cursor.value, str):
        raise cursor.fail(f"is {cursor.value!r}", expected)
    try:
        formula = Formula.parse(cursor.text())
        formula.check(wanted)
    except FormulaError as error:
        raise cursor.fail(str(error), expected) from None
    return formula


def _cost(cursor: Cursor) -> Formula:
    return _formula(cursor, "number")


def _condition(cursor: Cursor) -> Formula:
    return _formula(cursor, "condition")


class _Known:
    """The slots and pools that later sections may name."""

    def __init__(self, slots: tuple[Slot, ...], pools: tuple[Pool, ...]) -> None:
        self._slots = {slot.name: slot for slot in slots}
        self._pools = {pool.name for pool in pools}

    def slot_name(self, cursor: Cursor) -> str:
        name = cursor.text()
        if name not in self._slots:
            expected = "expected one of " + ", ".join(self._slots)
            raise cursor.fail(f"no slot {name!r}", expected)
        return name

    def slot_list(self, cursor: Cursor) -> tuple[str, ...]:
        return each(self.slot_name)(cursor)

    def family(self, name: str, row: Cursor) -> Family:
        return row.record(
            partial(Family, name, latency=None),
            "slots",
            latency=Cursor.positive,
            slots=self.slot_list,
            source=Cursor.text,
        )

    def tag(self, row: Cursor) -> Tag:
        return row.record(
            Tag,
            "tag latency slots family",
            tag=Cursor.natural,
            latency=Cursor.natural,
            slots=self.slot_list,
            family=Cursor.text,
            source=Cursor.text,
        )

    def encoding(self, name: str, row: Cursor) -> Encoding:
        return row.record(
            partial(_encoding, name),
            "uses latency" if row.has("classes") else "opcodes uses latency",
            needs=each(_need),
            classes=each(one_of(*OF_COST)),
            opcodes=each(Cursor.text),
            uses=each(self.use),
            latency=_cost,
            demands=self.demands,
            tag=Cursor.natural,
            charges=each(Cursor.natural),
            when=_condition,
            source=Cursor.text,
            note=Cursor.text,
        )

    def agent(self, name: str, row: Cursor) -> Agent:
        made = row.record(
            partial(Agent, name),
            "issues warps registers",
            issues=each(one_of(*ISSUERS)),
            warps=Cursor.positive,
            registers=Cursor.positive,
            replicas=Cursor.positive,
            addresses=Cursor.natural,
            crowded=each(Cursor.positive),
            source=Cursor.text,
        )
        for number in range(made.replicas):
            if made.replica(number) not in self._slots:
                hint = "each agent has a slot of its own name, each replica after the first NAME.n"
                raise row.fail(f"has no slot `{made.replica(number)}`", hint)
        return made

    def demands(self, table: Cursor) -> tuple[tuple[str, Formula], ...]:
        demands: list[tuple[str, Formula]] = []
        for pool, units in table.entries():
            if pool not in self._pools:
                expected = "expected one of " + (", ".join(sorted(self._pools)) or "none")
                raise units.fail(f"no pool `{pool}`", expected)
            demands.append((pool, _cost(units)))
        return tuple(demands)

    def use(self, row: Cursor) -> UseCost:
        slot = self._slots[self.slot_name(row.get("slot"))]
        occupancy = row.opt("occupancy", Cursor.positive, 1)
        if slot.capacity is not None and occupancy > slot.capacity:
            hint = f"slot `{slot.name}` has capacity {slot.capacity}"
            raise row.get("occupancy").fail(f"is {occupancy}", hint)
        use = UseCost(
            slot=slot.name,
            duration=_cost(row.get("duration")),
            offset=row.opt("offset", Cursor.natural, 0),
            occupancy=occupancy,
        )
        row.done()
        return use


def _encoding(
    name: str, *, classes: tuple[str, ...] = (), opcodes: tuple[str, ...] = (), **said: Any
) -> Encoding:
    """An encoding of opcodes, and of all that cost as much as others of a class."""
    known = [opcode for one in classes for opcode in OF_COST[one]]
    return Encoding(name, (*known, *opcodes), **said)


def _need(row: Cursor) -> Need:
    return row.record(Need, "condition why", condition=_condition, why=Cursor.text)


# Machines that were read before -----------------------------------------------------------

Stamp = tuple[str | int, ...]
"""What tells a file from what it was before."""

SHIPS: Stamp = ()
"""Of files that never change."""

FRESH = 2_000_000_000
"""Nanoseconds in which a file may be written twice under one time stamp on some systems."""


@dataclass(slots=True)
class _Asked(Mapping[str, str]):
    """An environment that remembers what was asked of it."""

    environment: Mapping[str, str]
    answers: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def __getitem__(self, name: str) -> str:
        self.answers[name] = self.environment.get(name)
        return self.environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.environment)

    def __len__(self) -> int:
        return len(self.environment)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A machine, and what it was read from."""

    machine: Machine
    stamp: Stamp
    answers: Mapping[str, str | None]

    def still(self, stamp: Stamp | None, environment: Mapping[str, str]) -> bool:
        """Whether reading it again would make the same machine."""
        same = all(environment.get(name) == answer for name, answer in self.answers.items())
        return same and self.stamp == stamp


_LOADED: dict[str, _Loaded] = {}
KEPT = 256
"""Machines that are kept; loops that bring theirs along may be any number."""


def stamp(name: str) -> Stamp | None:
    """The stamp of a file; None: nothing tells whether it changed, so it is read every time."""
    try:
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) or time_ns() - found.st_mtime_ns < FRESH:
        return None
    # The name may be relative to another folder by now.
    return os.path.abspath(name), found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def once(
    name: str,
    made: Stamp | None,
    environment: Mapping[str, str],
    read: Callable[[Mapping[str, str]], Machine],
) -> Machine:
    """The machine that was read under this name before, or a new one."""
    known = _LOADED.get(name)
    if known is not None and known.still(made, environment):
        return known.machine
    asked = _Asked(environment)
    machine = read(asked)
    # A file that extends another file changes with that one.
    if made is not None and machine.extends in ("", *machine_names()):
        if len(_LOADED) >= KEPT:
            _LOADED.clear()
        _LOADED[name] = _Loaded(machine, made, asked.answers)
    return machine
