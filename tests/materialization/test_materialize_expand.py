"""Streams: which instruction runs when, for every trip count, and the contract of a region."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import faults
import stretto
from generated import Problem, problems
from programs import placed, ready
from stretto import build
from stretto.loop import Use
from stretto.materialization import (
    MODES,
    Instruction,
    Mode,
    Pipe,
    Program,
    RegionError,
    materialize,
    region_faults,
)
from stretto.materialization.program import (
    Advance,
    Commit,
    Issue,
    Position,
    Release,
    Wait,
    Write,
)
from stretto.materialization.region import require_sound


def three_stages() -> Program:
    """a, b and c in three stages of ten cycles."""
    loop = build("three")
    a = loop.op("a", "x", type="4xf32", uses=[Use("a", 1)], latency=10)
    b = loop.op("b", "x", a, type="4xf32", uses=[Use("b", 1)], latency=10)
    loop.op("c", "x", b, uses=[Use("b", 1)], latency=10)
    return placed(loop.finish(), 10, {"a": 0, "b": 13, "c": 26}).program("unspecialized")


def issues(program: Program, trip_count: int) -> list[str]:
    """Operation and iteration, in the order of one agent's stream."""
    (agent,) = program.agents
    return [
        f"{i.op}{step - i.at.stage}"
        for step, i in agent.stream.run(trip_count)
        if isinstance(i, Issue)
    ]


@pytest.mark.parametrize(
    ("trip_count", "wanted"),
    [
        (0, ""),
        (1, "a0 b0 c0"),
        (2, "a0 a1 b0 b1 c0 c1"),
        (3, "a0 a1 b0 a2 b1 c0 b2 c1 c2"),
        (4, "a0 a1 b0 a2 b1 c0 a3 b2 c1 b3 c2 c3"),
    ],
)
def test_every_trip_count_runs_each_iteration_once_in_time_order(
    trip_count: int, wanted: str
) -> None:
    assert issues(three_stages(), trip_count) == wanted.split()


def test_guards_say_the_least_trip_count() -> None:
    (agent,) = three_stages().agents
    stream = agent.stream
    assert (stream.first, stream.last) == (0, 2)

    def places(section: tuple[Instruction, ...]) -> list[tuple[str, Position]]:
        return [(i.op, i.at) for i in section if isinstance(i, Issue)]

    assert places(stream.prologue) == [
        ("a", Position(0, 0, 0, needs=1)),
        ("a", Position(1, 0, 0, needs=2)),
        ("b", Position(1, 1, 3, needs=1)),
    ]
    assert places(stream.kernel) == [
        ("a", Position(0, 0, 0)),
        ("b", Position(0, 1, 3)),
        ("c", Position(0, 2, 6)),
    ]
    assert places(stream.epilogue) == [
        ("b", Position(0, 1, 3, needs=2)),
        ("c", Position(0, 2, 6, needs=2)),
        ("c", Position(1, 2, 6, needs=1)),
    ]


def test_an_agent_pipelines_only_over_its_own_stages() -> None:
    program = ready("gemm").program("specialized")
    streams = {agent.name: agent.stream for agent in program.agents}
    for name, stage in (("tma", 0), ("mma", 2)):
        stream = streams[name]
        assert (stream.first, stream.last) == (stage, stage)
        assert stream.prologue == stream.epilogue == ()
        steps = {step for step, _ in stream.run(4)}
        assert steps == set(range(stage, stage + 4))


def test_older_iterations_come_first_and_zero_latency_is_respected() -> None:
    """In one cycle: `late` of the iteration before, then `early`, which it does not wait for."""
    loop = build("ties")
    early = loop.op("early", "x", type="4xf32", uses=[], latency=0)
    loop.op("same", "x", early, uses=[], latency=0)
    loop.op("late", "x", uses=[], latency=0)
    case = placed(loop.finish(), 5, {"early": 0, "same": 0, "late": 5})
    assert case.program("unspecialized").sequence == ("late", "early", "same")


@given(problem=problems(), mode=st.sampled_from(MODES))
def test_bundles_follow_the_protocol(problem: Problem, mode: Mode) -> None:
    """Waits and acquires before, commits and releases after, each iterator one step on."""
    analysis = stretto.schedule(problem.loop, problem.machine)
    assume(analysis.success)
    program = materialize(problem.loop, problem.machine, analysis, mode)
    assert region_faults(program) == ()
    for agent in program.agents:
        for trip_count in range(2 * program.stage_count + 2):
            seen = Counter(
                (i.op, step - i.at.stage)
                for step, i in agent.stream.run(trip_count)
                if isinstance(i, Issue)
            )
            wanted = {(op, i) for op in agent.ops for i in range(trip_count)}
            assert set(seen) == wanted
            assert set(seen.values()) <= {1}


# The contract of a region -----------------------------------------------------------------


def _without(program: Program, kind: type[Instruction]) -> Program:
    return faults.rewritten(
        program, lambda section: [i for i in section if not isinstance(i, kind)]
    )


def _doubled(program: Program, kind: type[Instruction]) -> Program:
    return faults.rewritten(
        program, lambda section: [i for i in section for _ in range(1 + isinstance(i, kind))]
    )


def _walking(program: Program, kind: type[Wait] | type[Commit], iterator: str) -> Program:
    """With another iterator of the same ring."""
    ring = program.iterator_of[iterator].ring

    def other(i: Instruction) -> Instruction:
        same = isinstance(i, kind) and program.pipe_of[i.pipe].ring == ring
        return replace(i, iterator=iterator) if same else i

    return faults.rewritten(program, lambda section: [other(i) for i in section])


def _first_in_kernel(program: Program, kind: type[Instruction]) -> Program:
    """Instructions of a kind before all others around the same operation."""
    return faults.rewritten(
        program,
        lambda section: [
            i
            for _, bundle in groupby(section, key=lambda i: (i.op, i.at))
            for i in sorted(bundle, key=lambda i: not isinstance(i, kind))
        ],
    )


def _touching(program: Program, **changes: int | None) -> Program:
    """Loads that write another slot of their storage."""

    def other(i: Instruction) -> Instruction:
        if not isinstance(i, Issue) or i.op != "load_a":
            return i
        return replace(i, writes=tuple(replace(slot, **changes) for slot in i.writes))

    return faults.rewritten(program, lambda section: [other(i) for i in section])


def _first(program: Program, pipe: Pipe) -> Program:
    """With another first pipe."""
    return replace(program, pipes=(pipe, *program.pipes[1:]))


FAULTS: dict[str, Callable[[Program], Program]] = {
    "read of `Pipe_a_tile` without": lambda p: faults.without_wait(p, "Pipe_a_tile", "mma"),
    "commit of `Pipe_a_tile` before": lambda p: faults.committed_too_soon(p, "Pipe_a_tile"),
    "write of `Pipe_a_tile` without its": lambda p: faults.without_acquire(p, "Pipe_a_tile"),
    "goes on 0 times": lambda p: _without(p, Advance),
    "release of `Pipe_a_tile` stands there 0 times, 1 are": lambda p: _without(p, Release),
    "write of `Pipe_a_tile` stands there 0 times, 1 are": lambda p: _without(p, Write),
    "wait of `Pipe_a_tile` stands there 2 times, 1 are": lambda p: _doubled(p, Wait),
    "used for `mma`, consumer, `a_tile`": lambda p: _walking(p, Wait, "a_tile.load_a.put"),
    "is used for `load_a`, producer": lambda p: _walking(p, Commit, "a_tile.mma.take"),
    "goes on before `mma` is done": lambda p: _first_in_kernel(p, Advance),
    "`load_a` has no iterator for `a_tile`": lambda p: _touching(p, iterator=None),
    "writes [('a_tile', 1)]; in the loop it writes": lambda p: _touching(p, distance=1),
    "`mma` of iteration": lambda p: faults.other_stage(p, "mma", 1),
    "`mma` is issued 0 times": lambda p: _without(p, Issue),
    "depth 3; its ring has 5": lambda p: _first(p, replace(p.pipes[0], depth=3)),
    "`Pipe_a_tile` is used and not declared": lambda p: replace(p, pipes=p.pipes[1:]),
    "by `mma`, which does not produce": lambda p: _first(p, replace(p.pipes[0], owner="mma")),
    "0 producers, trivial False": lambda p: _first(p, replace(p.pipes[0], producers=())),
    "has no consumer": lambda p: _first(p, replace(p.pipes[0], consumers=())),
    "begins in phase 1; a consumer": lambda p: faults.other_phase(p, "a_tile.mma.take"),
    "begins in phase 0; a producer": lambda p: faults.other_phase(p, "a_tile.load_a.put"),
    "`a_tile.load_a.put` is used and not declared": lambda p: replace(p, iterators=()),
    "the sequence of a step": lambda p: replace(p, sequence=p.sequence[1:]),
    "belongs to 0 agents": lambda p: replace(p, agents=p.agents[:-1]),
    "which is no ring": lambda p: replace(p, rings=p.rings[1:]),
    "is declared 2 times": lambda p: replace(p, rings=(*p.rings, p.rings[0])),
}


@pytest.mark.parametrize("told", FAULTS)
def test_what_breaks_the_contract_is_refused(told: str) -> None:
    sound = ready("gemm").program("specialized")
    require_sound(sound)
    broken = FAULTS[told](sound)
    with pytest.raises(RegionError, match="this is a bug of Stretto") as caught:
        require_sound(broken)
    assert any(told in line for line in caught.value.faults), caught.value.faults
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_every_release_has_its_wait() -> None:
    program = ready("attention_backward").program("unspecialized")
    (agent,) = program.agents
    waits = Counter((i.op, i.pipe) for i in agent.stream.kernel if isinstance(i, Wait))
    releases = Counter((i.op, i.pipe) for i in agent.stream.kernel if isinstance(i, Release))
    assert waits == releases
    assert set(waits.values()) == {1}
