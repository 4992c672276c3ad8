"""Every rung and every arm earns its place: a loop for each, worse off without it.

`tests/loops/NAME.json` is named after the part: `initial.json` after a rung, `arm-fuse.json` after
an arm. Only the public function and its options are used.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from documents import parse_loop
from stretto import Loop, ScheduleAnalysis
from stretto.solve import PARTS

LOOPS = Path(__file__).parent / "loops"


def load(part: str) -> Loop:
    path = LOOPS / f"{part.replace(':', '-')}.json"
    return parse_loop(path.name, path.read_text(encoding="utf-8"))


def names(analysis: ScheduleAnalysis, part: str) -> bool:
    """Whether the analysis says that the part seated something.

    `clear` seats nothing itself: what stands after it shows that it was there.
    """
    if part.startswith("arm:"):
        return part.removeprefix("arm:") in {placed.arm for placed in analysis.placements}
    if part == "clear":
        return any(placed.rung.endswith("-again") for placed in analysis.placements)
    return part in {placed.rung for placed in analysis.placements}


@pytest.mark.parametrize("part", PARTS)
def test_every_part_earns_its_place(part: str) -> None:
    loop = load(part)
    whole = stretto.schedule(loop)
    assert whole.success
    assert whole.generator == "cost-based"
    assert names(whole, part), [(p.op, p.rung, p.arm) for p in whole.placements]
    lacking = stretto.schedule(loop, without=[part])
    assert whole.ii is not None
    assert lacking.ii is None or lacking.ii > whole.ii


def test_no_loop_is_left_over() -> None:
    expected = {f"{part.replace(':', '-')}.json" for part in PARTS}
    assert {path.name for path in LOOPS.iterdir()} == expected
