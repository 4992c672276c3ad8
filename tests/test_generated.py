"""The generator itself: it must reach what the properties are about."""

from collections.abc import Callable

import pytest
from hypothesis import Phase, find, given, settings

from generated import Problem, problems
from stretto.loop import check


@given(problems())
def test_generated_loops_pass_check(problem: Problem) -> None:
    assert check(problem.loop, problem.machine) == ()


FEATURES: dict[str, Callable[[Problem], bool]] = {
    "fixed storage": lambda p: any(s.fixed for s in p.loop.storages),
    "capped ring": lambda p: any(s.depth for s in p.loop.storages),
    "group": lambda p: bool(p.loop.groups),
    "distance above 1": lambda p: any(d.distance > 1 for d in p.loop.dependences),
    "several uses": lambda p: any(len(op.uses or ()) > 1 for op in p.loop.ops),
    "depth limit": lambda p: any(op.constraint.max_depth == 0 for op in p.loop.ops),
    "pool demand": lambda p: any(op.demands for op in p.loop.ops),
    "fusable slot": lambda p: any(slot.fusion_cap > 1 for slot in p.machine.slots),
}


@pytest.mark.parametrize("feature", FEATURES)
def test_generator_reaches(feature: str) -> None:
    find(
        problems(), FEATURES[feature], settings=settings(max_examples=2000, phases=[Phase.generate])
    )
