"""The verifier against brute force: legal for one exactly when legal for the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from brute_force import Group, legal_schedules
from generated import Problem, problems
from stretto.loop import Loop
from stretto.machine import Budget, Machine
from stretto.machine.machine import Agent
from stretto.solution import Schedule
from stretto.solution.views import analyse
from stretto.verification import RULES, Violation, verify

MOST = 2000
"""Legal schedules looked at; a problem with more is left alone, so that the set is complete."""


@dataclass(frozen=True)
class Trial:
    """A problem, an II, a horizon, and every legal schedule inside it."""

    loop: Loop
    machine: Machine
    ii: int
    horizon: int
    legal: tuple[Schedule, ...]
    max_stages: int | None = None

    def verify(
        self, starts: Mapping[str, int], fused: tuple[Group, ...] = ()
    ) -> tuple[Violation, ...]:
        analysis = analyse(self.loop, self.machine, Schedule(self.ii, starts, fused))
        return verify(self.loop, self.machine, analysis, max_stages=self.max_stages)

    def is_legal(self, starts: Mapping[str, int], fused: tuple[Group, ...] = ()) -> bool:
        return any(s.starts == starts and set(s.fused) == set(fused) for s in self.legal)


def _sorted_uses(loop: Loop) -> Loop:
    """The order in which an operation states its uses says nothing; brute force compares it."""
    ops = [replace(op, uses=tuple(sorted(op.uses or (), key=lambda u: u.slot))) for op in loop.ops]
    return replace(loop, ops=tuple(ops))


def _tight(draw: st.DrawFn, loop: Loop, machine: Machine) -> Machine:
    """Budgets with room for little more than one copy of everything."""
    spaces = dict.fromkeys(s.space for s in loop.storages)
    least = {space: sum(s.bytes for s in loop.storages if s.space == space) for space in spaces}
    budgets = tuple(Budget(space, least[space] + draw(st.integers(0, 4))) for space in spaces)
    return replace(machine, budgets=budgets)


@st.composite
def trials(draw: st.DrawFn, fuse: bool = False) -> Trial:
    problem: Problem = draw(problems(max_ops=4, max_duration=3, fusion=fuse))
    loop = _sorted_uses(problem.loop)
    machine = _tight(draw, loop, problem.machine)
    ii = draw(st.integers(1, 4))
    horizon = 3 * ii
    max_stages = draw(st.sampled_from([None, None, 1, 2]))
    found = legal_schedules(loop, machine, ii, horizon=horizon, fuse=fuse, max_stages=max_stages)
    legal = tuple(islice(found, MOST + 1))
    assume(len(legal) <= MOST)
    return Trial(loop, machine, ii, horizon, legal, max_stages)


def _random_starts(data: st.DataObject, trial: Trial) -> dict[str, int]:
    """Any starts; or legal ones with some operation moved, which is nearer to the edge."""
    anywhere = st.integers(0, trial.horizon - 1)
    if not trial.legal or data.draw(st.booleans()):
        return {op.name: data.draw(anywhere) for op in trial.loop.ops}
    starts = dict(data.draw(st.sampled_from(trial.legal)).starts)
    starts[data.draw(st.sampled_from(sorted(starts)))] = data.draw(anywhere)
    return starts


@given(trials(), st.data())
def test_legal_exactly_when_brute_force_says_so(trial: Trial, data: st.DataObject) -> None:
    for schedule in trial.legal[:: max(1, len(trial.legal) // 20)]:
        assert trial.verify(schedule.starts) == ()
    for _ in range(20):
        starts = _random_starts(data, trial)
        violations = trial.verify(starts)
        assert (violations == ()) == trial.is_legal(starts), (starts, violations)


def _random_groups(data: st.DataObject, trial: Trial) -> tuple[Group, ...]:
    number = {op.name: data.draw(st.integers(0, 2)) for op in trial.loop.ops}
    groups = [tuple(name for name in number if number[name] == n) for n in (1, 2)]
    return tuple(group for group in groups if len(group) > 1)


@given(trials(fuse=True), st.data())
def test_fused_legal_exactly_when_brute_force_says_so(trial: Trial, data: st.DataObject) -> None:
    for schedule in trial.legal[:: max(1, len(trial.legal) // 20)]:
        assert trial.verify(schedule.starts, schedule.fused) == ()
    for _ in range(20):
        starts = _random_starts(data, trial)
        fused = _random_groups(data, trial)
        if data.draw(st.booleans()):
            for group in fused:
                starts |= dict.fromkeys(group, starts[group[0]])
        violations = trial.verify(starts, fused)
        assert (violations == ()) == trial.is_legal(starts, fused), (starts, fused, violations)


@pytest.mark.parametrize("rule", RULES)
def test_random_schedules_break_each_rule_alone(rule: str) -> None:
    """The property above is about every rule: each is at times the only one broken."""

    @st.composite
    def broken(draw: st.DrawFn) -> set[str]:
        problem: Problem = draw(problems(max_ops=3))
        loop, machine = problem.loop, _tight(draw, problem.loop, problem.machine)
        names = [op.name for op in loop.ops]
        if rule == "pin":  # no loop of theirs has any
            told = replace(loop.ops[0].constraint, stage=draw(st.integers(0, 2)))
            loop = replace(loop, ops=(replace(loop.ops[0], constraint=told), *loop.ops[1:]))
        if rule == "registers":  # no machine of theirs counts any
            agent = Agent("g", ("tma", "mma", "simt"), 1, draw(st.integers(4, 12)))
            machine = replace(machine, agents=(agent,))
        starts = {name: draw(st.integers(0, 20)) for name in names}
        fused: tuple[Group, ...] = ()
        if rule == "fusion" and len(names) > 1:
            fused = ((names[0], names[1]),)
        analysis = analyse(loop, machine, Schedule(draw(st.integers(5, 9)), starts, fused))
        return {v.rule for v in verify(loop, machine, analysis)}

    find(
        broken(),
        lambda rules: rules == {rule},
        settings=settings(max_examples=4000, phases=[Phase.generate]),
    )


@given(problems(max_ops=4), st.data())
def test_a_whole_interval_later_changes_nothing_but_the_origin(
    problem: Problem, data: st.DataObject
) -> None:
    ii = data.draw(st.integers(1, 9))
    starts = {op.name: data.draw(st.integers(0, 20)) for op in problem.loop.ops}
    later = {name: start + ii for name, start in starts.items()}

    def broken(starts: Mapping[str, int]) -> list[tuple[str, tuple[str, ...]]]:
        analysis = analyse(problem.loop, problem.machine, Schedule(ii, starts))
        found = verify(problem.loop, problem.machine, analysis)
        return [(v.rule, v.ops) for v in found if v.rule not in ("order", "depth")]

    assert broken(starts) == broken(later)
    assert any(
        v.rule == "order"
        for v in verify(
            problem.loop,
            problem.machine,
            analyse(problem.loop, problem.machine, Schedule(ii, later)),
        )
    )
