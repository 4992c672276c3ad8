"""The lower bounds of a loop: what the II cannot be below, why, and what would lower it.

four_op on blackwell: II >= 15, limited by slot tp_smem_wr
  resource    15  tp_smem_wr (slot 16) holds 15 cycles an iteration: load 8 + write 7
  recurrence   1  no dependence cycle
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stretto.bounds import Remedy
from stretto.report.text import NO_BREAK, columns, notes, wrapped
from stretto.schedule import BOUND_NAMES, BoundName, Bounds, Part, Witness
from stretto.schedule.json import bounds_to_json

SCHEMA = "stretto.bounds/1"

_NOTHING: dict[BoundName, str] = {
    "resource": "no limited slot is held",
    "recurrence": "no dependence cycle with latency",
    "fine": "no pool is drawn on",
    "dependence": "no depth limit",
}


@dataclass(frozen=True, slots=True)
class BoundsReport:
    """The bounds of one loop on one machine."""

    loop: str
    machine: str
    bounds: Bounds
    remedies: tuple[Remedy, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a bounds document."""
        return {
            "name": self.loop,
            "machine": self.machine,
            "success": True,
            "bounds": bounds_to_json(self.bounds),
            "remedies": [{"change": r.text, "mii": r.mii} for r in self.remedies],
            "warnings": list(self.warnings),
        }

    def to_text(self) -> list[str]:
        """For people."""
        bounds = self.bounds
        head = f"{self.loop} on {self.machine}: II >= {bounds.mii}"
        if bounds.witness.kind != "none":
            head += f", limited by {limiter(bounds)}"
        rows = [
            (name, str(bounds[name].bound), sentence(name, bounds[name])) for name in BOUND_NAMES
        ]
        lines = [*wrapped(head, "", "  "), *columns(rows, "  ", right=(1,))]
        if self.remedies:
            lines.append("  to lower it:")
            lines += columns([(f"II >= {r.mii}", r.text) for r in self.remedies], "    ")
        elif bounds.mii > 1:
            lines.append("  to lower it: no single change would do; several bounds meet here")
        return lines + notes(self.warnings)


def limiter(bounds: Bounds) -> str:
    """What limits the II, in a few words."""
    witness = bounds.witness
    match witness.kind:
        case "slot":
            return f"slot {witness.limit}"
        case "pool":
            return f"pool {witness.limit}"
        case "cycle":
            return f"the recurrence through {_first_op(witness)}"
        case _:
            return f"the depth limit of {witness.limit}"


def sentence(name: BoundName, witness: Witness) -> str:
    """The witness of a bound, with its numbers."""
    match witness.kind:
        case "slot":
            return (
                f"{witness.limit} (slot {witness.slot_id}) is held {witness.total} cycles an "
                f"iteration, capacity {witness.capacity}: {_sum(witness.parts)}"
            )
        case "pool":
            return (
                f"pool {witness.limit} gives {witness.total} unit-cycles an iteration, "
                f"cap {witness.capacity}: {_sum(witness.parts)}"
            )
        case "cycle":
            return f"latency {witness.total} over distance {witness.capacity}: {_way(witness)}"
        case "depth":
            return (
                f"{witness.limit} may stand in stage {witness.capacity - 1} at most and cannot "
                f"start before cycle {witness.total - 1}: {_path(witness)}"
            )
        case "none":
            return _NOTHING[name]


def _first_op(witness: Witness) -> str:
    return witness.parts[0].ops[0]


def _sum(parts: tuple[Part, ...]) -> str:
    return " + ".join(f"{'/'.join(part.ops)}{NO_BREAK}{part.amount}" for part in parts)


def _way(witness: Witness) -> str:
    steps = [
        f"{part.ops[0]}{NO_BREAK}-{part.amount}{f',+{part.distance}' if part.distance else ''}->"
        for part in witness.parts
    ]
    return " ".join([*steps, _first_op(witness)])


def _path(witness: Witness) -> str:
    *steps, last = witness.parts
    return " ".join([*(f"{part.ops[0]}{NO_BREAK}-{part.amount}->" for part in steps), last.ops[0]])
