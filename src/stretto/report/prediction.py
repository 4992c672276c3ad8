"""Predictions, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.predict.prediction import LoopTime, Prediction
from stretto.report import columns, cut, notes, wrapped

SCHEMA = "stretto.prediction/1"
SHOWN = 20
"""Configurations of a ranking that are shown; JSON has all."""


def prediction_to_json(found: Prediction) -> dict[str, Any]:
    """One configuration."""
    return {
        "kernel": found.kernel,
        "machine": found.machine,
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
    }


def _loop(loop: LoopTime) -> dict[str, Any]:
    return {
        "name": loop.name,
        "ii": loop.ii,
        "stages": loop.stages,
        "cycles": round(loop.cycles, 1),
        "trips": loop.trips,
        "bound": loop.bound,
        "by_machine_code": loop.coded,
        "units": {name: round(cycles, 1) for name, cycles in loop.units.items()},
        "agents": {
            agent: {what: round(cycles, 1) for what, cycles in by.items()}
            for agent, by in loop.spent.items()
        },
    }


def ranking_to_json(
    found: Sequence[tuple[str, Prediction]], refused: Sequence[str]
) -> dict[str, Any]:
    """Several, the fastest first."""
    return {
        "schema": SCHEMA,
        "success": bool(found),
        "predictions": [{"of": name, **prediction_to_json(one)} for name, one in found],
        "refused": list(refused),
    }  # fmt: skip


def prediction_to_text(name: str, found: Prediction) -> list[str]:
    """One configuration, in full."""
    rings = ", ".join(f"{ring} × {depth}" for ring, depth in found.rings.items())
    who = f"{found.consumers} consumer{'s' if found.consumers > 1 else ''}"
    head = f"{cut(name)} on {found.machine}, {found.mode}, {who}"
    lines = wrapped(f"{head}; {rings}" if rings else head, "", "  ")
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
        coded = " by its machine code" if loop.coded else ""
        pace = f"{loop.cycles:,.0f} cycles an iteration{coded}, bound by {loop.bound}"
        lines += ["", f"  {cut(loop.name)}: {pace}; II {loop.ii:,}, {loop.stages} stages"]
        busy = [
            (name, f"{cycles:,.0f}", f"{cycles / loop.cycles:.0%}")
            for name, cycles in loop.units.items()
            if cycles and loop.cycles
        ]
        lines += columns(busy, "    ", right=(1, 2))
        for agent, by in loop.spent.items():
            spent = sorted(by.items(), key=lambda item: -item[1])
            told = ", ".join(f"{what} {cycles:,.0f}" for what, cycles in spent if cycles >= 1)
            lines += wrapped(f"{agent}: {told}", "    ", "  ")
    waits = {what for loop in found.loops for by in loop.spent.values() for what in by}
    if not found.rings and not waits & {"wait for loads", "wait for memory"}:
        lines += notes(
            ["threads load, and the model takes what they load to be there: at least this"]
        )
    if found.spills:
        lines += notes(["registers are too many by our count: the compiler may spill"])
    return lines


def _time(found: Prediction) -> str:
    tflops = "" if found.tflops is None else f", {found.tflops:,.0f} TFLOPS"
    return f"{_span(found.seconds)}{tflops}, bound by {found.bound}"


def _span(seconds: float) -> str:
    return f"{seconds * 1e3:,.3f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:,.1f} µs"


def ranking_to_text(found: Sequence[tuple[str, Prediction]], refused: Sequence[str]) -> list[str]:
    """Several, as a table, the fastest first."""
    rows = [("", "kernel", "consumers", "rings", "cycles", "time", "TFLOPS", "bound by")]
    for number, (name, one) in enumerate(found[:SHOWN]):
        rings = "/".join(str(depth) for depth in dict.fromkeys(one.rings.values()))
        tflops = "-" if one.tflops is None else f"{one.tflops:,.0f}"
        rows.append(
            (
                str(number + 1), cut(name), str(one.consumers), rings or "-",
                f"{one.iteration:,.0f}", _span(one.seconds), tflops, one.bound,
            )
        )  # fmt: skip
    lines = columns(rows, right=(0, 2, 4, 5, 6))
    if len(found) > SHOWN:
        lines.append(f"and {len(found) - SHOWN} more")
    if refused:
        lines += notes([f"{len(refused)} cannot be: {refused[0]}"])
    return lines
