"""One input, and every answer about it: the front door, asked with changes.

Workshop("attention_forward.mlir")
  .document()                     the page's report
  .knobs(loop)                    what can be changed
  .solve(loop, change)            its entry anew
  .check(loop, change, placed)    what the verifier says of a schedule moved by hand
  .save(loop, change, "machine")  a text that `stretto` reads back
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import stretto
from stretto.api import about, made_ready, with_pins_of
from stretto.api.checking import verify
from stretto.api.read_write import chosen, read_loops
from stretto.api.solving import ScheduleResult, schedule
from stretto.document import Cursor
from stretto.errors import StrettoError
from stretto.frontends import Source, read_input
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.machine.choice import chosen_for_loop
from stretto.machine.settings import settings_toml, with_settings
from stretto.report.formats import with_source
from stretto.resources.prepare import Prepared
from stretto.solution import SCHEMA
from stretto.solution.json import read_schedule
from stretto.view.change import Change
from stretto.view.tiles import extents

if TYPE_CHECKING:
    from stretto.schemas.verification import RuleViolation

PAGE = "<page>"
"""What a page's questions are called in messages."""

KINDS = ("machine", "pins", "schedule", "loop")


@dataclass(frozen=True, slots=True)
class Saved:
    """A text, and what to call it."""

    file: str
    text: str


@dataclass(frozen=True)
class Workshop:
    """What was read, and how it is to be scheduled."""

    file: str
    text: str | bytes
    machine: str | None = None
    loop: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further arguments of `stretto.schedule`."""

    @staticmethod
    def opened(
        name: str,
        machine: str | None = None,
        loop: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Workshop:
        """The workshop of a file, or of stdin; read once."""
        file, text = read_input(name)
        made = Workshop(file, text, machine, loop, options or {})
        _ = made.source
        return made

    @cached_property
    def source(self) -> Source:
        """The loops as they were read."""
        return chosen(read_loops(self.file, self.text, self.machine), self.loop)

    # Answers ----------------------------------------------------------------------------------

    def document(self) -> dict[str, Any]:
        """The report of all loops, as a page shows it."""
        entries = [self._first(loop.name) for loop in self.source.loops]
        found = {
            "schema": SCHEMA,
            "success": all(entry["success"] for entry in entries),
            "version": stretto.__version__,
            "source": {"file": self.file},
            "loops": entries,
        }
        return with_source(found, self.text if isinstance(self.text, str) else "")

    def solve(self, name: str, change: Change) -> dict[str, Any]:
        """The entry of a loop with changes; StrettoError where such a change cannot be."""
        return {"entry": self._solved(name, change).to_json()}

    def _first(self, name: str) -> dict[str, Any]:
        """The entry of a loop as it was read, or why there is none."""
        try:
            return self._solved(name, Change()).to_json()
        except StrettoError as error:
            told = list(error.lines(self.file))
            return {"name": name, "machine": "", "success": False, "errors": told}

    def check(
        self, name: str, change: Change, ii: int, placed: list[dict[str, Any]]
    ) -> list[RuleViolation]:
        """What the verifier holds against a schedule: rule, words and operations of each."""
        ready = self._ready(name, change)
        row = {"name": name, "success": True, "ii": ii, "ops": placed}
        analysis = read_schedule(Cursor(PAGE, "$.schedule", row), {name: ready.loop})
        stages = self.options.get("max_stages")
        return [v.to_json() for v in verify(ready, analysis, max_stages=stages).violations]

    def save(self, name: str, change: Change, kind: str) -> Saved:
        """What was changed, or what came of it, as a file."""
        if kind == "machine":
            base = self._machine_name(name)
            called = _changed(base)
            return Saved(f"{called}.toml", settings_toml(base, change.settings, called))
        if kind == "pins":
            return Saved(f"{name}.pins", "".join(f"{pin}\n" for pin in self._pins(change)))
        if kind == "loop":
            from stretto.loop.json import dump_loop  # noqa: PLC0415 - where it is asked for
            from stretto.loop.pins import with_pins  # noqa: PLC0415 - likewise

            loop = with_pins(self._loop(name, change), self._pins(change))
            return Saved(f"{name}.json", dump_loop(loop))
        found = self._solved(name, change).to_document()
        text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
        return Saved(f"{name}.schedule.json", text)

    # Steps ------------------------------------------------------------------------------------

    def _pins(self, change: Change) -> tuple[str, ...]:
        return (*self.options.get("pins", ()), *change.pins)

    def _solved(self, name: str, change: Change) -> ScheduleResult:
        options: dict[str, Any] = {**self.options, "pins": self._pins(change)}
        found = schedule(self._ready(name, change, pinned=False), **options)
        return replace(found, notes=about(self.source, name))

    def _ready(self, name: str, change: Change, pinned: bool = True) -> Prepared:
        own = self.machine is None and not change.settings
        ready = made_ready(self._loop(name, change), None if own else self._machine(name, change))
        return with_pins_of(ready, self._pins(change)) if pinned else ready

    def _loop(self, name: str, change: Change) -> Loop:
        """The loop, read for the machine as it is now: what an inner loop costs depends on it."""
        if not change.settings:
            return change.of(self.source[name])
        machine = self._machine(name, change)
        return change.of(chosen(read_loops(self.file, self.text, machine), name)[name])

    def _machine_name(self, name: str) -> str:
        return self.machine or chosen_for_loop(self.source[name].machine).name

    def _machine(self, name: str, change: Change) -> Machine:
        base = self._machine_name(name)
        if not change.settings:
            return load_machine(base)
        return with_settings(base, {**change.settings, "machine.name": _changed(base)})

    # What can be changed ----------------------------------------------------------------------

    def knobs(self, name: str) -> list[dict[str, Any]]:
        """Everything of a loop and its machine that a page may change, as it was read."""
        try:
            ready = self._ready(name, Change(), pinned=False)
        except StrettoError:
            return []
        loop = self.source[name]
        return [*_machine_knobs(ready), *_cost_knobs(loop, ready), *_tile_knobs(loop)]


def _changed(base: str) -> str:
    """What a machine is called that is another with changes."""
    return f"{load_machine(base).name}-changed"


def _knob(
    kind: str, path: str, label: str, value: object, unit: str, ops: list[str]
) -> dict[str, Any]:
    return {
        "kind": kind,
        "path": path,
        "label": label,
        "value": value,
        "unit": unit,
        "ops": ops,
    }


def _machine_knobs(ready: Prepared) -> list[dict[str, Any]]:
    machine, ops = ready.machine, ready.loop.ops
    found: list[dict[str, Any]] = []
    for slot in machine.slots:
        holders = [op.name for op in ops if any(u.slot == slot.name for u in op.vector.uses)]
        if holders and slot.name not in ready.loop.slots:
            path = f"slots.{slot.name}.capacity"
            value = "unlimited" if slot.capacity is None else slot.capacity
            found.append(_knob("capacity", path, slot.name, value, "units", holders))
    for budget in machine.budgets:
        value = "unlimited" if budget.bytes is None else budget.bytes
        path = f"budgets.{budget.space}.bytes"
        found.append(_knob("budget", path, budget.space, value, "bytes", []))
    for pool in machine.pools:
        drawers = [op.name for op in ops if any(d.pool == pool.name for d in op.demands)]
        if drawers:
            path = f"pools.{pool.name}.cap"
            found.append(_knob("pool", path, pool.name, pool.cap, "units", drawers))
    return found


def _cost_knobs(loop: Loop, ready: Prepared) -> list[dict[str, Any]]:
    """Costs: of the machine's row where that gave them, of the operation where it states them."""
    found: list[dict[str, Any]] = []
    stated = {op.name for op in loop.ops if op.latency is not None}
    rows: dict[str, list[str]] = {}
    for op in ready.loop.ops:
        if op.name in stated:
            found.append(_knob("stated", op.name, op.name, op.ready, "cycles", [op.name]))
        elif op.encoding is not None:
            rows.setdefault(op.encoding, []).append(op.name)
    for name, ops in rows.items():
        row, place = ready.machine.encoding(name), f"encodings.{name}"
        text = row.latency.text
        found.append(_knob("latency", f"{place}.latency", name, text, "cycles", ops))
        for i, use in enumerate(row.uses):
            path = f"{place}.uses[{i}].duration"
            label = f"{name} on {use.slot}"
            found.append(_knob("duration", path, label, use.duration.text, "cycles", ops))
    return found


def _tile_knobs(loop: Loop) -> list[dict[str, Any]]:
    made = {name: op.name for op in loop.ops for name in op.results}
    return [
        _knob(
            "tile",
            extent.name,
            extent.name,
            extent.size,
            "elements",
            [made[value] for value in extent.values if value in made],
        )
        for extent in extents(loop)
    ]
