"""Predictions, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.prediction.prediction import LoopTime, Prediction
from stretto.report import assumption, columns, cut, notes, wrapped
from stretto.solution import counted

if TYPE_CHECKING:
    from stretto.schemas.prediction import (
        PredictedLoop,
        StockPrediction,
    )

SCHEMA = "stretto.prediction/1"
SHORT = 24
"""Columns of a kernel's name in a ranking."""
SHOWN = 20
"""Configurations of a ranking that are shown; JSON has all."""


@dataclass(frozen=True, slots=True)
class Told:
    """A prediction, and what it is called; its place in a ranking is by time and spills."""

    name: str
    prediction: Prediction
    machine_why: str
    setback: float = 1.0
    """What its time is multiplied by in a ranking."""


def _to_json(told: Told) -> dict[str, Any]:
    """One configuration."""
    found = told.prediction
    return {
        "of": told.name,
        "kernel": found.kernel,
        "machine": found.machine,
        "machine_why": told.machine_why,
        "mode": found.mode,
        "consumers": found.consumers,
        "rings": dict(found.rings),
        "grid": list(found.grid),
        "loops": [_loop(loop) for loop in found.loops],
        "block_cycles": round(found.block, 1),
        "fill_and_drain_cycles": round(found.fill, 1),
        "resident_blocks": found.resident,
        "waves": round(found.waves, 3),
        "cycles": round(found.cycles, 1),
        "tail_cycles": round(found.tail, 1),
        "clock_mhz": found.clock,
        "seconds": found.seconds,
        "tflops": None if found.tflops is None else round(found.tflops, 1),
        "bound": found.bound,
        "spills": found.spills,
        "spilled": found.spilled,
        "assembled": found.assembled,
        "setback": told.setback,
    }


def _loop(loop: LoopTime) -> PredictedLoop:
    return {
        "name": loop.name,
        "ii": loop.ii,
        "stages": loop.stages,
        "cycles": round(loop.cycles, 1),
        "trips": loop.trips,
        "bound": loop.bound,
        "by_machine_code": loop.coded,
        "units": {name: round(cycles, 1) for name, cycles in loop.units.items()},
        "agent": loop.agent,
        "kinds": {kind: round(cycles, 1) for kind, cycles in loop.kinds.items()},
        "agents": {
            agent: {what: round(cycles, 1) for what, cycles in by.items()}
            for agent, by in loop.spent.items()
        },
    }


def ranking_to_json(found: Sequence[Told], refused: Sequence[str]) -> dict[str, Any]:
    """Several, the fastest first."""
    return {
        "schema": SCHEMA,
        "success": bool(found),
        "predictions": [_to_json(one) for one in found],
        "refused": list(refused),
    }  # fmt: skip


def prediction_to_text(told: Told) -> list[str]:
    """One configuration, in full."""
    name, found = told.name, told.prediction
    rings = ", ".join(f"{ring} × {depth}" for ring, depth in found.rings.items())
    who = f"{found.consumers} consumer{'s' if found.consumers > 1 else ''}"
    head = f"{cut(name)} on {found.machine}, {found.mode}, {who}"
    lines = wrapped(f"{head}; {rings}" if rings else head, "", "  ")
    on = assumption(found.machine, told.machine_why)
    lines += wrapped(on, "  ", "  ") if on else []
    lines += ["", f"  {_time(found)}"]
    grid = " x ".join(map(str, found.grid))
    rows = [
        ("grid", f"{grid} blocks, {found.resident} at a time on an SM: {found.waves:.2f} waves"),
        ("a block", f"{found.block:,.0f} cycles, {found.fill:,.0f} of them fill and drain"),
        ("all blocks", f"{found.cycles:,.0f} cycles, {found.tail:,.0f} of them a tail"),
        ("clock", f"{found.clock:,.0f} MHz"),
    ]
    lines += columns(rows, "  ")
    for loop in found.loops:
        lines += ["", *_loop_to_text(loop)]
    waits = {what for loop in found.loops for by in loop.spent.values() for what in by}
    if not found.rings and not waits & {"wait for loads", "wait for memory"}:
        lines += notes(
            ["threads load, and the model takes what they load to be there: at least this"]
        )
    if found.spills:
        lines += notes([_spills(found)])
    return lines


def stock_to_text(ours: Prediction, stock: Prediction) -> list[str]:
    """Triton's own kernel beside ours."""
    times = stock.seconds / ours.seconds
    other = (
        f"ours is {times:.2f} times as fast"
        if times >= 1
        else f"ours takes {1 / times:.2f} times as long"
    )
    blocks = counted(stock.resident, "block")
    paces = ", ".join(f"{loop.name} {loop.cycles:,.0f}" for loop in stock.loops)
    told = f"as Triton compiles it: {stock.seconds * 1e6:,.1f} µs, {blocks} at a time on an SM"
    lines = wrapped(f"{told}; cycles an iteration: {paces}; {other}", "  ", "  ")
    if stock.spilled:
        lines += wrapped(f"it spills {stock.spilled:,} bytes of each thread", "  ", "  ")
    return lines


def stock_to_json(stock: Prediction) -> StockPrediction:
    """The same for programs."""
    return {
        "seconds": stock.seconds,
        "resident_blocks": stock.resident,
        "spilled": stock.spilled,
        "loops": [{"name": one.name, "cycles": round(one.cycles, 1)} for one in stock.loops],
    }


BELOW = (
    "less than the II: a schedule reserves a unit for the whole of each step, while here each "
    "instruction is timed by itself and agents wait only for what they need"
)
"""Why a predicted iteration can be shorter than the schedule's."""


def _loop_to_text(loop: LoopTime) -> list[str]:
    """A loop: units that are busy, and what each agent's iteration is made of."""
    coded = " by its machine code" if loop.coded else ""
    pace = f"{loop.cycles:,.0f} cycles an iteration{coded}, bound by {loop.bound}"
    if not loop.spent:
        pace = f"{counted(loop.trips, 'trip')}, too few for steps that are steady"
    stages = counted(loop.stages, "stage")
    lines = wrapped(f"{cut(loop.name)}: {pace}; II {loop.ii:,}, {stages}", "  ", "  ")
    if loop.spent and round(loop.cycles) < loop.ii:
        lines += wrapped(BELOW, "    ", "    ")
    parts = [(name, cycles, "busy") for name, cycles in loop.units.items()]
    parts += [(kind, cycles, f"of {loop.agent}") for kind, cycles in loop.kinds.items()]
    rows = [
        (name, f"{cycles:,.0f}", f"{cycles / loop.cycles:.0%}", what)
        for name, cycles, what in parts
        if loop.spent and (round(cycles) or name == loop.bound)
    ]
    lines += columns(rows, "    ", right=(1, 2))
    for agent, by in loop.spent.items():
        spent = sorted(by.items(), key=lambda item: -item[1])
        told = ", ".join(f"{what} {cycles:,.0f}" for what, cycles in spent if round(cycles))
        lines += wrapped(f"{agent}: {told}", "    ", "  ")
    return lines


def _spills(found: Prediction) -> str:
    """By how much registers are too many, and what becomes of it."""
    if found.assembled:
        told = f"the assembler spills {found.spilled:,} bytes of each thread"
        return f"{told}: it stores them to local memory and loads them again where they are used"
    told = f"{found.spilled:,} registers of each thread are too many by our count"
    what = "the compiler stores what has none to local memory and loads it again, or orders"
    return f"{told}: {what} instructions anew so that fewer are needed (--assembled asks it)"


def _end(name: str) -> str:
    """The end of a name, which tells files of one folder apart."""
    return name if len(name) <= SHORT else "…" + name[1 - SHORT :]


def _of_what(found: Prediction) -> str:
    return "bytes" if found.assembled else "registers"


def _time(found: Prediction) -> str:
    tflops = "" if found.tflops is None else f", {found.tflops:,.0f} TFLOPS"
    return f"{_span(found.seconds)}{tflops}, bound by {found.bound}"


def _span(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"


def ranking_to_text(found: Sequence[Told], refused: Sequence[str]) -> list[str]:
    """Several, as a table, the fastest first."""
    head = ("", "kernel", "consumers", "rings", "II", "stages", "cycles", "time", "TFLOPS")
    rows: list[tuple[str, ...]] = [(*head, "bound by")]
    for number, told in enumerate(found[:SHOWN]):
        one = told.prediction
        rings = "/".join(str(depth) for depth in dict.fromkeys(one.rings.values()))
        tflops = "-" if one.tflops is None else f"{one.tflops:,.0f}"
        ii = "/".join(f"{loop.ii:,}" for loop in one.loops)
        stages = "/".join(str(loop.stages) for loop in one.loops)
        spills = f"; spills {one.spilled:,} {_of_what(one)}" if one.spills else ""
        rows.append(
            (
                str(number + 1), _end(told.name), str(one.consumers), rings or "-", ii or "-",
                stages or "-", f"{one.iteration:,.0f}", _span(one.seconds), tflops,
                one.bound + spills,
            )
        )  # fmt: skip
    lines = columns(rows, right=(0, 2, 6, 7, 8))
    back = max((told.setback for told in found), default=1.0)
    if back > 1:
        told = f"what spills, of each thread, is ranked as if it took {back:g} times as long"
        lines += notes([told])
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more")
    if refused:
        lines += notes([f"{len(refused)} cannot be: {refused[0]}"])
    return lines
