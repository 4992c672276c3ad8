"""The lower bounds of a loop: what the II cannot be below, why, and what would lower it.

four_op on blackwell: II >= 15, limited by slot tp_smem_wr
  resource    15  tp_smem_wr (slot 16) is held 15 cycles an iteration, capacity 1: load 8 + write 7
  recurrence   1  no dependence cycle with latency
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.lower_bounds.remedies import Remedy
from stretto.machine import Machine
from stretto.machine.machine import CYCLES
from stretto.report import NO_BREAK, Told, assumed_line, columns, notes, on_machine, wrapped
from stretto.solution import (
    BOUND_NAMES,
    BoundName,
    Bounds,
    Part,
    Witness,
    cause,
    counted,
    limit,
    limited,
)
from stretto.solution.json import bounds_to_json

if TYPE_CHECKING:
    from stretto.schemas import bounds

SCHEMA = "stretto.bounds/1"

SHOWN = 24
"""Parts of a witness that its sentence shows; JSON has them all."""

_NOTHING: dict[BoundName, str] = {
    "resource": "no limited slot is held",
    "recurrence": "no dependence cycle with latency",
    "fine": "no pool is drawn on",
    "dependence": "no depth limit",
    "group": "no group asks for more",
}


@dataclass(frozen=True, slots=True)
class BoundsReport(Told):
    """The bounds of one loop on one machine."""

    loop: str
    machine: Machine
    machine_why: str
    bounds: Bounds
    remedies: tuple[Remedy, ...]
    warnings: tuple[str, ...]
    ties: tuple[Witness, ...] = ()
    """Where no remedy helps: everything that asks for this II on its own."""

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a bounds document."""
        return {
            "name": self.loop,
            **on_machine(self.machine, self.machine_why),
            "success": self.success,
            "bounds": bounds_to_json(self.bounds),
            "remedies": [remedy_to_json(remedy) for remedy in self.remedies],
            "ties": [limit(witness) for witness in self.ties],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        bounds = self.bounds
        head = f"{self.loop} on {self.machine.name}: II >= {bounds.mii}{limited(bounds)}"
        unit = self.machine.unit
        rows = [
            (name, str(bounds[name].bound), sentence(name, bounds[name], unit))
            for name in BOUND_NAMES
        ]
        lines = [*wrapped(head, "", "  "), *assumed_line(self.machine, self.machine_why)]
        lines += columns(rows, "  ", right=(1,))
        if self.remedies:
            lines.append("  to lower it:")
            lines += columns([(f"II >= {r.mii}", r.sentence) for r in self.remedies], "    ")
        elif bounds.mii > 1:
            lines += wrapped(f"to lower it: {self._no_remedy()}", "  ", "  ")
        return lines + notes(self.warnings)

    def _no_remedy(self) -> str:
        if len(self.ties) < 2:
            return "no single change that Stretto tries is enough"
        *others, last = dict.fromkeys(limit(witness) for witness in self.ties)
        who = f"{', '.join(others)} and {last}" if others else "several recurrences"
        return f"no single change would do; {who} each ask for {self.bounds.mii}"


def remedy_to_json(remedy: Remedy) -> bounds.Remedy:
    """A change as data, and in words."""
    return {
        "change": remedy.text,
        "mii": remedy.mii,
        "kind": remedy.kind,
        "effort": remedy.effort,
        "hardware": remedy.hardware,
        "target": remedy.target,
        "before": remedy.before,
        "after": remedy.after,
        "unit": remedy.unit,
        "ops": list(remedy.ops),
        "next": remedy.next,
    }


def sentence(name: BoundName, witness: Witness, unit: str = CYCLES) -> str:
    """The witness of a bound, with its numbers; `unit`: what the machine's figures are."""
    match witness.kind:
        case "slot":
            held = counted(witness.total, unit.removesuffix("s"))
            return (
                f"{witness.limit} (slot {witness.slot_id}) is held {held} an iteration, "
                f"capacity {witness.capacity}: {_sum(witness.parts)}"
            )
        case "pool":
            drawn = counted(witness.total, f"unit-{unit.removesuffix('s')} is", f"unit-{unit} are")
            return (
                f"{drawn} drawn from pool {witness.limit} an iteration, "
                f"cap {witness.capacity}: {_sum(witness.parts)}"
            )
        case "cycle":
            return f"{cause(witness)}: {_way(witness.parts, witness.parts[0].ops[0])}"
        case "depth":
            way = _way(witness.parts[:-1], witness.parts[-1].ops[0])
            return (
                f"{witness.limit} may stand in stage {witness.capacity - 1} at most and cannot "
                f"start before cycle {witness.total - 1}: {way}"
            )
        case "group":
            return _within_stages(witness)
        case "none":
            return _NOTHING[name]


def _within_stages(witness: Witness) -> str:
    """A path between members of a group; or a way around several groups."""
    jumps = [part for part in witness.parts if len(part.ops) > 1]
    room = "one II" if witness.capacity == 1 else f"{witness.capacity} IIs"
    if len(jumps) > 1:
        way = _way(witness.parts, witness.parts[0].ops[0])
        return f"latency {witness.total} around {len(jumps)} groups fits in {room}: {way}"
    last, first = jumps[0].ops
    stages = jumps[0].distance - 1
    behind = counted(abs(stages), "stage")
    share = (
        f"stands {behind} {'behind' if stages > 0 else 'before'}"
        if stages
        else "shares a stage with"
    )
    way = _way(witness.parts[:-1], last)
    return f"{way} takes {witness.total - 1}, less than {room}: {last} {share} {first}"


def _sum(parts: tuple[Part, ...]) -> str:
    """The parts, or of many the largest, with what the others come to."""
    by_size = sorted(range(len(parts)), key=lambda i: -parts[i].amount)
    shown = [parts[i] for i in sorted(by_size[:SHOWN])]
    text = " + ".join(f"{'/'.join(part.ops)}{NO_BREAK}{part.amount}" for part in shown)
    rest = [parts[i].amount for i in by_size[SHOWN:]]
    return f"{text} + ... and {len(rest)} more ({sum(rest)})" if rest else text


def _way(parts: tuple[Part, ...], last: str) -> str:
    steps = [
        f"{part.ops[0]}{NO_BREAK}-{part.amount}{f',+{part.distance}' if part.distance else ''}->"
        for part in parts
    ]
    if len(steps) > SHOWN:  # they stay in their order, so the first are shown
        steps = [*steps[:SHOWN], f"... and {len(steps) - SHOWN} more ->"]
    return " ".join([*steps, last])
