"""Waits as they were measured beside what was predicted of them, for people and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto.prediction.measured import Compared, Measured
from stretto.report import columns, cut, wrapped

if TYPE_CHECKING:
    from stretto.schemas.prediction import ComparedStep, MeasuredTimeline

SHOWN = 12
"""Waits and issues that are shown; JSON has all."""


def measured_to_json(found: Measured) -> MeasuredTimeline:
    """All of them, those that were longer by most first."""
    longest = found.longest
    return {
        "blocks": found.blocks,
        "steps": found.steps,
        "longest": None if longest is None else _one(longest),
        "compared": [_one(one) for one in found.compared],
    }


def timeline_to_json(found: Measured, steady: int) -> dict[str, Any]:
    """Some steps of the first block, from where a loop's steady state begins: for the viewer."""
    events = [
        {
            "op": event.op,
            "agent": event.agent,
            "iteration": event.step,
            "start": steady + event.start,
            "end": steady + event.end,
        }
        for event in found.events
    ]
    return {"unit": "cycles", "events": events}


def _one(one: Compared) -> ComparedStep:
    return {
        "agent": one.agent,
        "what": one.what,
        "op": one.op,
        "thing": one.thing,
        "predicted": round(one.predicted, 1),
        "measured": round(one.measured, 1),
        "longer": round(one.longer, 1),
        "timings": list(one.rows),
    }


def measured_to_text(found: Measured) -> list[str]:
    """The wait that was longer by most, then a table."""
    lines = [f"measured beside predicted, {found.blocks} blocks, {found.steps} steps, medians"]
    one = found.longest
    if one is None:
        lines.append("  no wait was longer than predicted")
    else:
        told = (
            f"{one.agent} waits {one.longer:,.0f} cycles longer for {_thing(one)} ({cut(one.op)})"
        )
        span = f"{one.measured:,.0f}, predicted {one.predicted:,.0f}"
        lines += wrapped(f"{told}: {span}; {' and '.join(one.rows)} of the machine say otherwise")
    rows = [("agent", "", "for", "predicted", "measured", "longer", "timings")]
    for each in found.compared[:SHOWN]:
        rows.append(
            (
                each.agent, each.what, f"{_thing(each)} ({cut(each.op)})",
                f"{each.predicted:,.0f}", f"{each.measured:,.0f}", f"{each.longer:+,.0f}",
                " ".join(each.rows),
            )
        )  # fmt: skip
    lines += columns(rows, "  ", right=(3, 4, 5))
    if len(found.compared) > SHOWN:
        lines.append(f"  and {len(found.compared) - SHOWN} more")
    return lines


def _thing(one: Compared) -> str:
    kind, _, ring = one.thing.partition(" ")
    thing = {"full": cut(ring), "free": f"room in {cut(ring)}"}.get(kind, kind)
    return f"before {thing}" if one.what == "work" else thing
