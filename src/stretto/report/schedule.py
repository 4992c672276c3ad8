"""A schedule for people: how fast, what limits it, where everything stands and what it takes.

four_op on blackwell: II 15 is the MII, limited by slot tp_smem_wr: optimal
  1 stage, pipeline depth 2; cost-based (worth pipelining: it holds tma, tc_and_mma)
  n iterations take 15 × n + 4 cycles
  slot          busy              cycles 0 to 14
  tma            53%  █████▎      ████████·······    held in every cycle, all iterations in flight
  tp_smem_wr *  100%  ██████████  ███████████████    * sets the MII
  op    stage  cycle  start  slots held, cycles    cycles 0 to 18
  load      0      0      0  tma 8, tp_smem_wr 8   ████████                held
  write     0      8      8  tp_smem_wr 7                  ███████────     and not yet done
  storage  space  bytes  ring  in all  lifetime, cycles
  a_tile   smem   8,192   × 2  16,384  17          two iterations keep a copy at once
  to go faster:
    II >= 8  a second unit of tp_smem_wr (capacity 1 -> 2), on other hardware; then slot tc_and_mma
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stretto.loop import Loop, Op, Use, texts
from stretto.machine import Machine
from stretto.machine.choice import ASKED
from stretto.ops.spaces import REGISTERS
from stretto.report import NO_BREAK, assumed_line, columns, cut, notes, width, wrapped
from stretto.resources.prepare import resolve
from stretto.solution import (
    Objective,
    Placement,
    Refusal,
    ScheduleAnalysis,
    at_the_mii,
    counted,
    limited,
    no_schedule,
    sought,
    spilling,
    the_mii,
)
from stretto.solution.views import pool_loads, prediction, slot_loads

if TYPE_CHECKING:
    from stretto.lower_bounds.remedies import Remedy

SHOWN = 5
"""Refusals that a failure shows unless asked for all."""

TIMELINE = 24
"""Columns that a timeline needs beside its operations; with less it stands below them."""

MARK = f"{NO_BREAK}*"
"""Behind what sets the MII."""
SHADES = "·▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True)
class Report:
    """The schedule of one loop on one machine, or why there is none; all views are made of it."""

    analysis: ScheduleAnalysis
    loop: Loop
    """As it was scheduled, or not yet classified: what its operations hold is then looked up."""
    machine: Machine
    notes: Sequence[str] = ()
    """What the front end noted of the loop."""
    verbose: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What was asked for, by the names that `stretto.schedule` has for it."""
    machine_why: str = ASKED

    @property
    def success(self) -> bool:
        """Whether there is a schedule."""
        return self.analysis.success

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a schedule document."""
        from stretto.report.schedule_document import entry  # noqa: PLC0415 - text needs none

        return entry(self)

    def to_text(self) -> list[str]:
        """For people."""
        analysis = self.analysis
        head = f"{analysis.loop} on {analysis.machine}: "
        if analysis.success:
            told = [self._verdict(), self._spills()]
            told = told[::-1] if analysis.spilled else told
            lines = wrapped(head + "; ".join(filter(None, told)), "", "  ")
            lines += assumed_line(self.machine, self.machine_why)
            tables = [*self._slots(), *self._ops()]
            marked = ["  * sets the MII"] if any(" *" in line for line in tables) else []
            lines += [*self._shape(), *tables, *marked]
            lines += [*self._storages(), *self._memory(), *self._faster()]
            lines += self._refused() if self.verbose else []
        else:
            lines = wrapped(head + self.failure(), "", "  ")
            lines += assumed_line(self.machine, self.machine_why)
            lines += wrapped(f"{analysis.generator} ({analysis.rule})", "  ", "  ")
            lines += self._refused()
        return lines + notes((*texts(analysis.warnings), *self.notes))

    # A schedule -------------------------------------------------------------------------------

    def _verdict(self) -> str:
        ii, bounds, proof = self.analysis.ii, self.analysis.bounds, self.analysis.proof
        assert ii is not None
        if bounds is None:
            return f"II {ii}"
        if ii == bounds.mii:
            return at_the_mii(bounds) if self.analysis.spilled else f"{at_the_mii(bounds)}: optimal"
        gap = f"II {ii}, {ii - bounds.mii} above the MII {bounds.mii}{limited(bounds)}"
        if proof is not None and proof.method == "memory":
            return f"II {ii}: optimal, no smaller II has the memory (MII {bounds.mii})"
        if proof is not None and proof.optimal:
            return f"II {ii}: optimal, every smaller II is proved impossible (MII {bounds.mii})"
        if proof is not None and proof.lower_bound > bounds.mii:
            return f"{gap}: not proved optimal; no II below {proof.lower_bound} is possible"
        return f"{gap}: not proved optimal"

    def _spills(self) -> str:
        """That it spills, and what would help: to look longer, or to let less be alive at once."""
        told, a = spilling(self.analysis), self.analysis
        if not told:
            return ""
        asked = {row.name for row in a.proof.objectives} if a.proof is not None else set[str]()
        if "registers" in asked:
            return f"{told} (a larger II keeps fewer alive: --ii {a.ii} and up)"
        if a.spilled or self.options.get("effort") == "thorough":
            return f"{told} (smaller tiles, or more consumers, keep fewer alive)"
        return f"{told} (--effort thorough looks longer for one that does not)"

    def _shape(self) -> list[str]:
        a = self.analysis
        stages = counted(a.stage_count, "stage")
        text = f"{stages}, pipeline depth {a.pipeline_depth}; {a.generator} ({a.rule})"
        rows = a.proof.objectives if a.proof is not None else ()
        lines = wrapped(text, "  ", "  ")
        if len(rows) > 1:
            told = ", ".join(_objective(row) for row in rows[1:])
            lines += wrapped(f"at this II: {told}", "  ", "  ")
        time = prediction(self.resolved(), a)
        sign = "-" if time.fixed < 0 else "+"
        each = f"{time.per_iteration:,} × n {sign} {abs(time.fixed):,} {self.machine.unit}"
        return [*lines, f"  n iterations take {each}"]

    def _slots(self) -> list[str]:
        """How busy slots and pools are, and in which cycles of the interval."""
        table, ii = self.analysis.table, self.analysis.ii or 1
        slots = slot_loads(self.analysis, self.machine)
        pools = pool_loads(self.analysis, self.machine)
        if not slots and not pools:
            return []
        taken = [(load, [(t.cycle, t.cycles, dict(t.held)) for t in table]) for load in slots]
        taken += [(load, [(t.cycle, t.cycles, dict(t.drawn)) for t in table]) for load in pools]
        kinds = [""] * len(slots) + ["pool "] * len(pools)
        names = [
            kind + cut(load.name) + MARK * load.limiting
            for kind, (load, _) in zip(kinds, taken, strict=True)
        ]
        space = max(10, width() - 2 - max(map(len, ["slot", *names])) - 20)
        room = min(ii, space)
        rows = [["slot", "busy", "", _span(ii, room, space, self.machine.unit)]]
        for name, (load, cycles) in zip(names, taken, strict=True):
            steps = [(first, count, held.get(load.name, 0)) for first, count, held in cycles]
            shade = "".join(map(_shade, _columns(steps, ii, room, load.capacity)))
            rows.append([name, f"{load.utilization:.0%}", _bar(load.utilization), shade])
        return columns(rows, "  ", right=(1,))

    def _ops(self) -> list[str]:
        names = ["op", "stage", "cycle", "start"] + (["rung", "arm"] if self.verbose else [])
        loop = self.resolved()
        rows = [[*names, f"slots held, {self.machine.unit}"]]
        rows += [self._op(placed, loop.op(placed.op)) for placed in self.analysis.placements]
        used = 2 + sum(max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0])))
        if width() - used >= TIMELINE:
            lines = self._timeline(loop, width() - used)
            rows = [[*row, line] for row, line in zip(rows, lines, strict=True)]
            return columns(rows, "  ", right=(1, 2, 3))
        widest = max(len(row[0]) for row in rows)
        lines = self._timeline(loop, width() - widest - 4)
        own = [[row[0], line] for row, line in zip(rows, lines, strict=True)]
        return [*columns(rows, "  ", right=(1, 2, 3)), *columns(own, "  ")]

    def _timeline(self, loop: Loop, space: int) -> list[str]:
        """One iteration from its first start to its last completion, an operation a line."""
        starts = self.analysis.starts
        last = max(1, *(starts[op.name] + op.completion for op in loop.ops))
        room = min(space, last)
        return [_span(last, room, space, self.machine.unit)] + [
            _flight(loop.op(placed.op), placed.start, last, room)
            for placed in self.analysis.placements
        ]

    def resolved(self) -> Loop:
        """The loop with its costs; LoopError where the machine does not know an operation."""
        return self.loop if self.loop.resolved else resolve(self.loop, self.machine).loop

    def _op(self, placed: Placement, op: Op) -> list[str]:
        name = cut(placed.op) + MARK * self._critical(placed.op)
        row = [name, str(placed.stage), str(placed.cycle), str(placed.start)]
        if self.verbose:
            row += [placed.rung, placed.arm]
        held = [_hold(use) for use in op.vector.uses if use.duration]
        group = next((g for g in self.analysis.fused if placed.op in g), ())
        others = [cut(name) for name in group if name != placed.op]
        fused = f"; fused with {', '.join(others)}" if others else ""
        return [*row, (", ".join(held) or "none") + fused]

    def _critical(self, op: str) -> bool:
        """Whether it stands on the recurrence that limits the II."""
        bounds = self.analysis.bounds
        if bounds is None or bounds.witness.kind != "cycle":
            return False
        return any(op in part.ops for part in bounds.witness.parts)

    def _storages(self) -> list[str]:
        if not self.analysis.storages:
            return []
        rows = [["storage", "space", "bytes", "ring", "in all", f"lifetime, {self.machine.unit}"]]
        for s in self.analysis.storages:
            total = f"{s.bytes * s.ring_depth:,}"
            cells = [f"{s.bytes:,}", f"× {s.ring_depth}", total, str(s.lifetime)]
            rows.append([cut(s.name), s.space, *cells])
        return columns(rows, "  ", right=(2, 3, 4))

    def _memory(self) -> list[str]:
        """Bytes of every space against its budget, and registers."""
        told: list[str] = []
        for space in self.analysis.memory:
            if space.budget is not None:
                told.append(f"{space.space} {space.used:,} of {space.budget:,} bytes")
            elif space.used:
                told.append(f"{space.space} {space.used:,} bytes, no limit")
        pressure = self.analysis.pressure
        if pressure is not None:
            of = f" of {pressure.budget}" if pressure.budget is not None else ""
            told.append(f"register pressure {pressure.peak}{of} at cycle {pressure.cycle}")
        lines = wrapped("; ".join(told), "  ", "  ") if told else []
        return lines + self._spilled()

    def _spilled(self) -> list[str]:
        """By how much registers are too many, and what the compiler does with that."""
        if not spilling(self.analysis):
            return []
        if self.analysis.spilled:
            told = f"{counted(self.analysis.spilled, 'register')} of a thread too many"
        else:
            pressure, room = self.analysis.pressure, self.machine.budget(REGISTERS)
            assert pressure is not None
            over = pressure.peak - (pressure.budget or 0)
            size = over * (1 if room is None else room.unit)
            told = f"{counted(over, 'register')} too many, {size:,} bytes of all threads"
        what = "the compiler stores that much to local memory and loads it again in each iteration"
        return wrapped(f"{told}: {what}, unless it finds an order that needs fewer", "  ", "  ")

    def advice(self) -> tuple[Remedy, ...]:
        """What would make it faster, the easiest first."""
        from stretto.lower_bounds.remedies import advice  # noqa: PLC0415 - where there is a schedule

        return advice(self.resolved(), self.machine, self.analysis, self.options)

    def _faster(self) -> list[str]:
        rows = [(f"II >= {remedy.mii}", remedy.sentence) for remedy in self.advice()]
        return ["  to go faster:", *columns(rows, "    ")] if rows else []

    # None -------------------------------------------------------------------------------------

    def failure(self) -> str:
        """Why there is no schedule."""
        bounds, refused = self.analysis.bounds, self.analysis.refused
        text = no_schedule(refused, "found")
        if self.analysis.generator == "serial" and refused:
            text = f"no serial schedule: {refused[-1].reason}"
        return text if bounds is None else f"{text}; {the_mii(bounds)}"

    def _refused(self) -> list[str]:
        refused = self.analysis.refused
        shown = refused if self.verbose else refused[-SHOWN:]
        left = len(refused) - len(shown)
        rows: list[tuple[str, str]] = []
        for refusal in shown:
            rows.append((f"II {_tried(refusal)}", _why(refusal)))
            if refusal.op:
                rows.append(("", _sought(refusal)))
        lines = columns(rows, "  ")
        return [f"  {left} more before these (-v shows all)", *lines] if left else lines


def _objective(row: Objective) -> str:
    """A value and what is known of it."""
    from stretto.exact.objectives import goal_of  # noqa: PLC0415 - where something is proved

    count = goal_of(row.name).count(row.value)
    if row.optimal:
        return f"{count} proved fewest"
    return f"{count}, no fewer than {row.lower_bound:,}"


def tried(what: Refusal | int) -> str:
    """One line about an II that was tried: why it was refused, or that a schedule was found."""
    if isinstance(what, int):
        return f"II {what}: a schedule"
    return f"II {_tried(what)}: {_why(what)}"


def _tried(refusal: Refusal) -> str:
    if refusal.through is None or refusal.through == refusal.ii:
        return str(refusal.ii)
    return f"{refusal.ii} to {refusal.through}"


def _why(refusal: Refusal) -> str:
    proved = "proved impossible: " if refusal.proved else ""
    rung = f"{refusal.rung}: " if refusal.rung else ""
    return proved + rung + refusal.reason


def _sought(refusal: Refusal) -> str:
    """Where the operation was sought, and what stood there; which it is, the reason says."""
    told = [f"{name} {text}" for name, text in sought(refusal) if name != "operation"]
    return "; ".join(told)


# Pictures ---------------------------------------------------------------------------------


def _span(last: int, room: int, space: int, unit: str) -> str:
    """What the columns of a picture are, in no more than so many."""
    each = f", a column is {last / room:.3g}" if room < last else ""
    told = f"{unit} 0 to {last - 1:,}{each}"
    return (told if len(told) <= space else f"{last:,} {unit}").replace(" ", NO_BREAK)


def _columns(
    steps: Sequence[tuple[int, int, int]], ii: int, room: int, capacity: int
) -> list[float]:
    """The part that is held in each column; steps are (first cycle, cycles, amount)."""
    found = [0.0] * room
    for first, count, amount in steps:
        for k in range(first * room // ii, -(-(first + count) * room // ii)):
            begin, end = max(first, k * ii / room), min(first + count, (k + 1) * ii / room)
            found[k] += amount * max(0.0, end - begin)
    return [held * room / ii / capacity for held in found]


def _shade(part: float) -> str:
    """A column: a dot where nothing is held."""
    return SHADES[-(-int(part * 1000) * (len(SHADES) - 1) // 1000)] if part > 0 else SHADES[0]


def _bar(part: float) -> str:
    """Ten cells for the whole."""
    eighths = round(part * 80)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (EIGHTHS[rest] if rest else "")).ljust(10)


def _flight(op: Op, start: int, last: int, room: int) -> str:
    """A line of the timeline: what is held, and then until it is done."""

    def span(begin: int, end: int) -> range:
        return range(begin * room // last, max(-(-end * room // last), begin * room // last + 1))

    cells = [NO_BREAK] * room
    for k in span(start, start + op.completion):
        if k < room:
            cells[k] = "─"
    for use in op.vector.uses:
        for k in span(start + use.offset, start + use.end) if use.duration else ():
            if k < room:
                cells[k] = "█"
    return "".join(cells).rstrip(NO_BREAK)


def _hold(use: Use) -> str:
    """A slot, how long, and where it differs from the common case how much and when."""
    text = f"{use.slot} {use.duration}"
    if use.occupancy != 1:
        text += f" × {use.occupancy}"
    if use.offset:
        text += f" from +{use.offset}"
    return text.replace(" ", NO_BREAK)
