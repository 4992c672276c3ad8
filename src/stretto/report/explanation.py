"""Why not a smaller II, for people.

four_op on blackwell: II 15 is optimal. Why not 14?
  impossible for one reason:
    slot tp_smem_wr   holds 8 (load) + 7 (write) = 15 cycles an iteration, capacity 1: 14 at II 14
  what would change that:
    II 8              a second unit of tp_smem_wr (capacity 1 -> 2), on other hardware
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stretto.exact.case import Case
from stretto.exact.explanation import Explanation, Relaxation
from stretto.exact.reasons import Reason, paths
from stretto.loop import Dependence
from stretto.machine import Machine
from stretto.problem import Hold
from stretto.report import (
    NO_BREAK,
    Told,
    assumed_line,
    columns,
    cut,
    notes,
    on_machine,
    wrapped,
)
from stretto.solution import counted, no_schedule
from stretto.solve.explaining import Explained

if TYPE_CHECKING:
    from stretto.schemas import explanation
    from stretto.schemas.explanation import ExplainedLoop

SCHEMA = "stretto.explanation/1"

SHOWN = 24
"""Holders of a slot that its line shows."""


@dataclass(frozen=True, slots=True)
class ExplanationReport(Told):
    """The explanation of one loop."""

    explained: Explained
    machine: Machine
    machine_why: str
    warnings: tuple[str, ...] = ()

    # JSON -----------------------------------------------------------------------------------------

    def to_json(self) -> ExplainedLoop:
        """As an entry of `loops` in an explanation document."""
        best, told = self.explained.best, self.explained.explanation
        proof = best.proof
        return {
            "name": best.loop,
            **on_machine(self.machine, self.machine_why),
            "success": self.success,
            "best": {
                "ii": best.ii,
                "optimal": proof is not None and proof.optimal,
                "lower_bound": None if proof is None else proof.lower_bound,
            },
            "ii": None if told is None else told.ii,
            "verdict": "none" if told is None else told.verdict,
            "minimal": told is not None and told.minimal,
            "reasons": [] if told is None else [self._reason(r, told.ii) for r in told.reasons],
            "relaxations": [] if told is None else [_relaxation(r) for r in told.relaxations],
            "complete": told is None or told.complete,
            "warnings": list(self.warnings),
            "seconds": self.explained.seconds,
        }

    def _reason(self, reason: Reason, ii: int) -> explanation.Reason:
        case = self.explained.case
        entry: explanation.Reason = {"kind": reason.kind, "text": sentence(case, reason, ii)}
        if reason.kind == "dependence":
            d = case.edges[reason.number][2]
            entry["src"], entry["dst"] = d.src, d.dst
            entry["latency"], entry["distance"] = d.latency, d.distance
            entry["dependence"], entry["via"] = d.kind, d.via
        elif reason.kind == "group":
            ops = list(case.loop.groups[reason.number])
            entry["ops"] = ops
            entry["offsets"] = [case.loop.op(op).constraint.stage_offset for op in ops]
        elif reason.name:
            entry["name"] = reason.name
        if reason.kind == "slot":
            entry["slot_id"] = case.machine.slot(reason.name).id
        return entry

    # Text -----------------------------------------------------------------------------------------

    def to_text(self) -> list[str]:
        """For people."""
        best, told = self.explained.best, self.explained.explanation
        head = f"{best.loop} on {best.machine}: {self._best()}"
        if told is None:
            lines = wrapped(f"{head}, and no II is smaller than 1", "", "  ")
            return lines + assumed_line(self.machine, self.machine_why) + notes(self.warnings)
        lines = wrapped(f"{head}. Why not {told.ii}?", "", "  ")
        lines += assumed_line(self.machine, self.machine_why)
        if told.verdict == "possible":
            lines += wrapped(f"II {told.ii} is possible: nothing stands against it", "  ", "  ")
        elif told.verdict == "undecided":
            lines += wrapped(
                f"whether II {told.ii} is possible was not decided in time", "  ", "  "
            )
        else:
            lines += self._reasons(told) + self._relaxations(told)
        return lines + notes(self.warnings)

    def _best(self) -> str:
        best = self.explained.best
        if best.ii is None:
            return no_schedule()
        proof = best.proof
        if proof is not None and proof.optimal:
            return f"II {best.ii} is optimal"
        bound = "" if proof is None else f"; none is below {proof.lower_bound}"
        return f"II {best.ii} is the best found{bound}"

    def _reasons(self, told: Explanation) -> list[str]:
        count = len(told.reasons)
        if told.minimal:
            together = "one reason" if count == 1 else f"{count} reasons together, each needed"
        else:
            together = f"{count} reasons together (not proved minimal)"
        rows = [
            (_subject(self.explained.case, r), sentence(self.explained.case, r, told.ii))
            for r in in_chains(self.explained.case, told.reasons)
        ]
        lines = [f"  impossible for {together}:", *columns(rows, "    ")]
        steps = [self.explained.case.edges[r.number][2] for r in told.reasons if _is_step(r)]
        if len(steps) == count and _is_cycle(steps):
            lines += wrapped(_around(steps, told.ii, self.machine.unit), "    ", "  ")
        return lines

    def _relaxations(self, told: Explanation) -> list[str]:
        rows = [(_result(r), r.text) for r in told.relaxations]
        if rows:
            lines = ["  what would change that:", *columns(rows, "    ")]
        elif told.complete:
            text = "no single change that Stretto tries would make it possible"
            lines = wrapped(text, "  ", "  ")
        else:
            lines = []
        if not told.complete:
            lines += wrapped("a limit was reached before every change was tried", "  ", "  ")
        return lines


def _result(relaxation: Relaxation) -> str:
    return f"II {relaxation.ii}" + ("" if relaxation.optimal else " or less")


def _relaxation(relaxation: Relaxation) -> explanation.Relaxation:
    return {
        "kind": relaxation.reason.kind,
        "change": relaxation.text,
        "ii": relaxation.ii,
        "optimal": relaxation.optimal,
        "hardware": relaxation.hardware,
    }


# Reasons ------------------------------------------------------------------------------------------


def _is_step(reason: Reason) -> bool:
    return reason.kind == "dependence"


def in_chains(case: Case, reasons: tuple[Reason, ...]) -> list[Reason]:
    """The reasons with dependences in the order in which they follow one another."""
    steps = [r for r in reasons if _is_step(r)]
    ways = paths([case.edges[r.number][2] for r in steps])
    return [r for r in reasons if not _is_step(r)] + [steps[k] for way in ways for k in way]


def _is_cycle(steps: list[Dependence]) -> bool:
    sources, targets = [d.src for d in steps], [d.dst for d in steps]
    return sorted(sources) == sorted(targets) and len(set(sources)) == len(sources)


def _around(steps: list[Dependence], ii: int, unit: str) -> str:
    latency, distance = sum(d.latency for d in steps), sum(d.distance for d in steps)
    over = counted(distance, "iteration")
    return f"a recurrence: {latency} {unit} over {over}, {distance * ii} at II {ii}"


def _subject(case: Case, reason: Reason) -> str:
    match reason.kind:
        case "dependence":
            d = case.edges[reason.number][2]
            return f"{cut(d.src)} -> {cut(d.dst)}".replace(" ", NO_BREAK)
        case "storage":
            return reason.name
        case "stages":
            return "stage count"
        case "group":
            return "group"
        case "depth":
            return f"depth of {cut(reason.name)}"
        case "pin":
            return f"pin of {cut(reason.name)}"
        case "registers":
            return f"registers of {reason.name}"
        case "ring":
            return f"ring of {cut(reason.name)}"
        case "slot" | "pool":
            return f"{reason.kind} {reason.name}"


def sentence(case: Case, reason: Reason, ii: int) -> str:
    """A reason with its numbers."""
    match reason.kind:
        case "dependence":
            d = case.edges[reason.number][2]
            late = f", {counted(d.distance, 'iteration')} later"
            via = f" ({d.kind} of {d.via})" if d.via else f" ({d.kind})"
            return f"latency {d.latency}{late if d.distance else ''}{via}"
        case "slot":
            return _slot(case, reason.name, ii)
        case "pool":
            cap, holds = case.pools[reason.name]
            return (
                f"{_held(case, holds)}; cap {cap}, {cap * ii} unit-{case.machine.unit} at II {ii}"
            )
        case "storage":
            return _storage(case, reason.name)
        case "depth":
            depth = case.loop.op(reason.name).constraint.max_depth
            return f"{reason.name} may stand in stage {depth} at most"
        case "pin":
            return _pin(case, reason.name)
        case "registers":
            return _registers(case, reason.name)
        case "ring":
            return _ring(case, reason.name)
        case "stages":
            return f"at most {counted(case.max_stages or 0, 'stage')}"
        case "group":
            return _group(case, reason.number)


def _registers(case: Case, name: str) -> str:
    """``scores 32,768 + o 32,768 + ...; 110,592 bytes for each compute``."""
    registers = case.problem.registers
    owners = [owner for owner, (agent, _) in registers.owners.items() if agent.name == name]
    lives = [f"{life.name} {life.bytes:,}" for life in registers.lives if life.owner == owners[0]]
    always = registers.always[owners[0]]
    lives += [f"{always:,} all the time"] if always else []
    return f"{' + '.join(lives)}; at most {registers.limits[owners[0]]:,} bytes at once"


def _group(case: Case, number: int) -> str:
    """``rescale_o and pv share a stage`` or ``..., pv 1 later``."""
    names = case.loop.groups[number]
    offsets = {name: case.loop.op(name).constraint.stage_offset for name in names}
    first = min(offsets.values())
    later = [
        f", {name} {offset - first} later" for name, offset in offsets.items() if offset > first
    ]
    return f"{', '.join(names)} share a stage{''.join(later)}"


def _pin(case: Case, name: str) -> str:
    """``qk must have start 12 and stage 0``."""
    asked = case.loop.op(name).constraint
    pins = (("start", asked.start), ("stage", asked.stage), ("cycle", asked.cycle))
    told = " and ".join(f"{what} {number}" for what, number in pins if number is not None)
    return f"{name} must have {told}"


def _ring(case: Case, name: str) -> str:
    """``2 copies at most, each from w0 until w0, w1 and read are done``."""
    ring = next(ring for ring in case.bound_rings if ring.name == name)
    ops = case.loop.ops
    first = ops[ring.writers[0]].name
    users = list(dict.fromkeys(ops[i].name for i, _ in ring.accessors))
    last = users.pop()
    until = f"{', '.join(users)} and {last}" if users else last
    copies = counted(ring.cap or 0, "copy", "copies")
    return f"{copies} at most, each from the start of {first} until {until} are done with it"


def _slot(case: Case, slot: str, ii: int) -> str:
    capacity = case.machine.slot(slot).capacity or 0
    holds = [
        Hold(i, use.offset, use.duration, use.occupancy)
        for i, op in enumerate(case.loop.ops)
        for use in op.vector.uses
        if use.slot == slot and use.duration
    ]
    fused = any(h.op in c.members for h in holds for c in case.classes)
    shared = "; some may fuse" if fused else ""
    return f"{_held(case, holds)}; capacity {capacity}, {capacity * ii} at II {ii}{shared}"


def _held(case: Case, holds: tuple[Hold, ...] | list[Hold]) -> str:
    """``load 8 + write 7 = 15 cycles``."""
    parts = [
        f"{case.loop.ops[h.op].name} {h.duration}" + (f" × {h.amount}" if h.amount != 1 else "")
        for h in holds[:SHOWN]
    ]
    if len(holds) > SHOWN:
        parts.append(f"{len(holds) - SHOWN} more")
    total = sum(h.duration * h.amount for h in holds)
    summed = f" = {total}" if len(holds) > 1 else ""
    return (
        " + ".join(p.replace(" ", NO_BREAK) for p in parts)
        + f"{summed} {case.machine.unit} an iteration"
    )


def _storage(case: Case, space: str) -> str:
    parts = [f"{r.name} {r.bytes:,} × its ring" for r in case.problem.rotating if r.space == space]
    once = case.problem.rooms.single_bytes.get(space, 0)
    if once:
        parts.append(f"{once:,} once")
    return f"{case.problem.rooms.budgets[space]:,} bytes for {', '.join(parts)}"
