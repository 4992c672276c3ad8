"""Large loops: what a simulation costs grows with what it executes, not with its square."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stretto
from generated import Problem, problems
from programs import placed
from stretto import build
from stretto.loop import Loop, Op, Operand, Storage, Use, Value
from stretto.materialization import region_faults
from stretto.materialization.program import Instruction, Stream
from stretto.simulation.needs import Known, Requirement, Told, requirements

LARGE = 2000
SECONDS = 15.0
"""Of one core; each takes two or three, and took up to 80 where something was quadratic."""


def one_storage(fixed: bool) -> Loop:
    """Everybody writes the same buffer."""
    uses = (Use("s", 1),)
    ops = [Op(f"o{i}", "x", uses=uses, latency=2, writes=("m",)) for i in range(LARGE)]
    return Loop("writers", tuple(ops), (), (Storage("m", "smem", 4, fixed),), slots=("s",))


def one_source() -> Loop:
    """Everybody reads the same value."""
    first = Op("first", "x", results=("v",), uses=(Use("s", 1),), latency=2)
    reader = replace(first, operands=(Operand("v"),), results=())
    ops = [replace(reader, name=f"o{i}") for i in range(LARGE - 1)]
    return Loop("readers", (first, *ops), (Value("v"),), slots=("s",))


@pytest.mark.parametrize("loop", [one_storage(fixed=True), one_storage(fixed=False), one_source()])
def test_a_loop_of_2000_operations_is_simulated_in_seconds(loop: Loop) -> None:
    schedule = stretto.schedule(loop, generator="cost-based")
    began = time.process_time()
    assert stretto.simulate(loop, schedule).success
    assert time.process_time() - began < SECONDS


def test_a_regular_program_is_gone_through_once_however_many_stages_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, last, starts = build("deep"), None, dict[str, int]()
    for i in range(20):
        given = () if last is None else (last,)
        last = loop.op(f"o{i}", "x", *given, type="4xf32", uses=[Use("a", 1)], latency=20)
        starts[f"o{i}"] = 21 * i
    program = placed(loop.finish(), 20, starts).program("unspecialized")
    trip_counts: list[int] = []
    run = Stream.run

    def counted(stream: Stream, trip_count: int) -> Iterator[tuple[int, Instruction]]:
        trip_counts.append(trip_count)
        return run(stream, trip_count)

    monkeypatch.setattr(Stream, "run", counted)
    assert region_faults(program) == ()
    assert (program.stage_count, trip_counts) == (20, [21])


# What stands for what ---------------------------------------------------------------------


def every_pair(loop: Loop) -> list[Requirement]:
    """Of all who touch a storage, every two of which one writes, whatever lies between."""
    found: list[Requirement] = []
    for storage in loop.storages:
        rows: list[tuple[int, int, Op, bool]] = []
        for i, op in enumerate(loop.ops):
            back = {r.distance for r in loop.reads[op.name] if r.storage == storage.name}
            writes = storage.name in op.writes
            if storage.fixed and (back or writes):
                rows += [(turn, i, op, writes) for turn in range(3)]
            elif not storage.fixed:
                rows += [(turn, i, op, False) for turn in back if turn or not writes]
                rows += [(0, i, op, True)] if writes else []
        rows.sort(key=lambda row: row[:2])
        for n, (turn, _, b, writes) in enumerate(rows):
            for before, _, a, wrote in rows[:n]:
                both = {storage.name} <= {r.storage for r in loop.reads[a.name]} & {*a.writes}
                own = storage.fixed and a is b and both
                if (wrote or writes) and not own:
                    lack = "overwritten" if writes else "unwritten"
                    found.append(Requirement(a.name, 0, turn - before, lack, b.name))
    return found


@given(problems())
def test_whoever_waits_for_a_write_waits_for_all_before_it(problem: Problem) -> None:
    loop = problem.loop
    needs = requirements(loop)
    reached = {(n.src, op, n.distance) for op, found in needs.items() for n in found}
    while True:
        more = {
            (a, c, d + e) for a, b, d in reached for b2, c, e in reached if b == b2 and d + e <= 4
        }
        if more <= reached:
            break
        reached |= more
    for pair in every_pair(loop):
        near = [(pair.src, pair.via, d) for d in range(pair.distance + 1)]
        assert any(one in reached for one in near), pair


@given(st.randoms(use_true_random=False))
def test_whoever_is_told_knows_what_was_known_when_it_was_sent(rng: random.Random) -> None:
    """Signals take their time, so that a later one may be there first."""
    levels, agents = 4, [Known(4) for _ in range(3)]
    plain = [[-1] * levels for _ in agents]
    sent: list[tuple[Told, list[int]]] = []
    for _ in range(rng.randint(1, 60)):
        at = rng.randrange(3)
        if rng.random() < 0.4:
            level, iteration = rng.randrange(levels), rng.randrange(9)
            agents[at].learn(level, iteration)
            plain[at][level] = max(plain[at][level], iteration)
        elif rng.random() < 0.5 or not sent:
            fact = {rng.randrange(levels): rng.randrange(9)}
            whole = [max(n, fact.get(i, -1)) for i, n in enumerate(plain[at])]
            sent.append((agents[at].tells(fact), whole))
        else:
            told, pending = sent[rng.randrange(len(sent))]
            also, other = sent[rng.randrange(len(sent))]
            both = told.copy()
            both.add(also)
            agents[at].hear(both)
            plain[at] = [max(three) for three in zip(plain[at], pending, other, strict=True)]
        assert [agent.last for agent in agents] == plain


# Regular programs -------------------------------------------------------------------------


def again(found: Instruction, **other: int) -> Instruction:
    """The same in another place."""
    return replace(found, at=replace(found.at, **other))


@pytest.mark.parametrize("part", ["prologue", "epilogue"])
@pytest.mark.parametrize("how", ["one less", "one twice", "one later", "one guarded"])
def test_what_one_trip_count_cannot_show_is_found(how: str, part: str) -> None:
    loop = build("three")
    a = loop.op("a", "x", type="4xf32", uses=[Use("a", 1)], latency=10)
    b = loop.op("b", "x", a, type="4xf32", uses=[Use("b", 1)], latency=10)
    loop.op("c", "x", b, uses=[Use("b", 1)], latency=10)
    program = placed(loop.finish(), 10, {"a": 0, "b": 13, "c": 26}).program("unspecialized")
    assert region_faults(program) == ()
    (agent,) = program.agents
    found: tuple[Instruction, ...] = getattr(agent.stream, part)
    (at,) = {i.at for i in found if i.op == found[0].op and i.at == found[0].at}
    bundle = [i for i in found if (i.op, i.at) == (found[0].op, at)]
    rest = found[len(bundle) :]
    changed = {
        "one less": rest,
        "one twice": (*bundle, *bundle, *rest),
        "one later": (*(again(i, step=at.step + 1) for i in bundle), *rest),
        "one guarded": (*(again(i, needs=at.needs + 1) for i in bundle), *rest),
    }[how]
    stream = replace(agent.stream, **{part: changed})
    faults = region_faults(replace(program, agents=(replace(agent, stream=stream),)))
    assert any(" runs " in fault or " issued " in fault for fault in faults), faults
