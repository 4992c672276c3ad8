"""Every rung, every arm and every way of the search earns its place: a loop worse off without it.

`tests/loops/NAME.json` is named after the part: `initial.json` after a rung, `arm-fuse.json` after
an arm, which the public function can leave out; `press.json` after a method of the search. A loop
with an operation that is pending is scheduled strictly: then the arms alone seat it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stretto
from documents import parse_loop
from stretto import Loop, ScheduleAnalysis, StrettoError
from stretto.generate.problem import IMPROVE, RETRIES
from stretto.generate.seating.partial import Partial
from stretto.solve import PARTS

LOOPS = Path(__file__).parent / "loops"
WAYS = {
    "press": "stretto.generate.search._Hunt.press",
    "sweep": "stretto.generate.search._Hunt.sweep",
    "shorten": "stretto.generate.ladder.rau.Refiner._shortened",
}
"""Methods of the search, none of which a user can leave out."""


def load(part: str) -> Loop:
    path = LOOPS / f"{part.replace(':', '-')}.json"
    return parse_loop(path.name, path.read_text(encoding="utf-8"))


def names(analysis: ScheduleAnalysis, part: str) -> bool:
    """Whether the analysis says that the part seated something.

    `clear` seats nothing itself: what stands after it shows that it was there.
    """
    if part.startswith(("cost:", "gate:")):  # of arms, whichever
        return any(placed.arm for placed in analysis.placements)
    if part.startswith("arm:"):
        return part.removeprefix("arm:") in {placed.arm for placed in analysis.placements}
    if part == RETRIES:
        return "improves on" in analysis.rule
    if part == "clear":
        return any(placed.rung.endswith("-again") for placed in analysis.placements)
    return part in {placed.rung for placed in analysis.placements}


ALONE = ("cost:feasibility", "cost:pipe-slot")
"""What refinement makes up for on every loop we know: told apart where arms seat alone."""


def beside(part: str) -> tuple[str, ...]:
    """What else is left out, so that a part shows."""
    also = () if part == RETRIES else (RETRIES,)
    return ("rau", IMPROVE, *also) if part in ALONE else also


def strictly(loop: Loop) -> bool:
    """Whether something is pending, so that only arms may seat the loop."""
    return any(op.constraint.pending for op in loop.ops)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_earns_its_place(part: str) -> None:
    loop = load(part)
    strict = strictly(loop)
    whole = stretto.schedule(loop, without=beside(part), strict=strict)
    assert whole.success
    assert whole.generator == ("exact" if part == RETRIES else "cost-based")
    seated = whole
    if part != IMPROVE:
        seated = stretto.schedule(loop, without=[IMPROVE, *beside(part)], strict=strict)
    assert names(seated, part), [(p.op, p.rung, p.arm) for p in seated.placements]
    lacking = lacking_part(loop, part)
    assert lacking is None or worth(lacking) > worth(whole)


def lacking_part(loop: Loop, part: str) -> ScheduleAnalysis | None:
    """What is found without a part; None: nothing."""
    try:
        found = stretto.schedule(loop, without=[part, *beside(part)], strict=strictly(loop))
    except StrettoError:
        return None
    return found if found.success else None


def worth(analysis: ScheduleAnalysis) -> tuple[int, bool, int, int, int]:
    """What a schedule takes, in the order in which it matters."""
    assert analysis.ii is not None
    assert analysis.pressure is not None
    peak, budget = analysis.pressure.peak, analysis.pressure.budget
    spills = budget is not None and peak > budget
    used = sum(space.used for space in analysis.memory)
    return analysis.ii, spills, analysis.stage_count, used, peak


def quality(loop: Loop) -> tuple[int, int]:
    """The II, then the stages, that are found where slots of the loop's own are all it holds."""
    found = stretto.schedule(loop, generator="cost-based", without=[IMPROVE, RETRIES])
    assert found.ii is not None
    return found.ii, found.stage_count


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_the_search_earns_its_place(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = load(way)
    whole = quality(loop)

    def nothing(_: object, *args: object) -> object:
        """What is at hand stays as it is, where there is any."""
        return next((arg for arg in args if isinstance(arg, Partial)), None)

    monkeypatch.setattr(WAYS[way], nothing)
    assert quality(loop) > whole


def test_no_loop_is_left_over() -> None:
    expected = {f"{part.replace(':', '-')}.json" for part in (*PARTS, *WAYS)}
    assert {path.name for path in LOOPS.iterdir()} == expected
