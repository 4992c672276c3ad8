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
from stretto.generate.problem import IMPROVE, RETRIES, TIES, Options, make_problem
from stretto.generate.seating.evaluators import BANK_CAPS, bank_pressure, seating
from stretto.generate.seating.partial import Partial
from stretto.machine import load_machine
from stretto.machine.settings import Setting, with_settings
from stretto.resources.prepare import resolve
from stretto.solve import PARTS

LOOPS = Path(__file__).parent / "loops"
EXAMPLES = LOOPS.parents[1] / "examples"
WAYS = {
    "press": "stretto.generate.search._Hunt.press",
    "sweep": "stretto.generate.search._Hunt.sweep",
    "shorten": "stretto.generate.ladder.rau.Refiner._shortened",
}
"""Methods of the search, none of which a user can leave out."""


SHIPPED = {"rau": "attention_forward.json", "improve": "attention_forward.json"}
"""Parts that decide in a loop of examples/."""
SHARED = {"cost-based": "arm-cost-based.json"}
"""Parts that decide in the loop of another."""


def load(part: str) -> Loop:
    name = SHARED.get(part, f"{part.replace(':', '-')}.json")
    path = EXAMPLES / SHIPPED[part] if part in SHIPPED else LOOPS / name
    return parse_loop(path.name, path.read_text(encoding="utf-8"))


def names(analysis: ScheduleAnalysis, part: str) -> bool:
    """Whether the analysis says that the part seated something."""
    if part.startswith(("cost:", "gate:")):  # of arms, whichever
        return any(placed.arm for placed in analysis.placements)
    if part.startswith("arm:"):
        return part.removeprefix("arm:") in {placed.arm for placed in analysis.placements}
    if part == RETRIES:
        return "improves on" in analysis.rule
    if part == TIES:
        return any(placed.rung == "rau" for placed in analysis.placements)
    return part in {placed.rung for placed in analysis.placements}


ALONE = ("cost:pipe-slot",)
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


# Caps of banks and barriers -----------------------------------------------------------------

LIFTED = 99
"""More than any loop claims."""


def capped(loop: Loop, *lifted: str) -> tuple[ScheduleAnalysis, tuple[int, int]]:
    """What arms find on blackwell with some of its caps lifted, and its claims."""
    caps: dict[str, Setting] = {f"limits.{name}.value": LIFTED for name in lifted}
    found = stretto.schedule(
        loop, with_settings("blackwell", caps, {}), strict=True, without=[RETRIES]
    )
    assert found.ii is not None
    machine = load_machine("blackwell", {})
    problem = make_problem(resolve(loop, machine).loop, machine, Options())
    return found, bank_pressure(seating(problem, found.ii, starts_of(found)))


def starts_of(found: ScheduleAnalysis) -> dict[str, int]:
    return {placed.op: placed.start for placed in found.placements}


@pytest.mark.parametrize(("half", "cap"), [(0, 4), (1, 3)])
def test_either_cap_of_banks_and_barriers_vetoes(half: int, cap: int) -> None:
    """Two products an iteration, nine buffers and pipes: without a cap, one more is claimed."""
    loop = load("arm:cost-based")
    assert BANK_CAPS == ("bank_claims_in_iteration", "bank_claims_carried")
    with_both, claims = capped(loop)
    assert claims[half] == cap
    assert "cost-based" in {placed.arm for placed in with_both.placements}
    without_one, more = capped(loop, BANK_CAPS[half])
    assert more[half] == cap + 1
    assert starts_of(without_one) != starts_of(with_both)


def test_a_cap_may_cost_cycles() -> None:
    """A product whose left factor is rewritten would carry four claims at II 23."""
    loop = load("bank-cap")
    assert capped(loop)[0].ii == 25
    assert capped(loop, BANK_CAPS[0])[0].ii == 25
    found, claims = capped(loop, BANK_CAPS[1])
    assert (found.ii, claims[1]) == (23, 4)


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
    own = {part for part in (*PARTS, *WAYS, "bank-cap") if part not in SHIPPED | SHARED}
    expected = {f"{part.replace(':', '-')}.json" for part in own}
    assert {path.name for path in LOOPS.iterdir()} == expected
