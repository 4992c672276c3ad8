"""The speed benchmark measures what it says: valid loops, a fair scheduler to compare with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stretto
from ims_process import Flat, ImsResult, NoCompilerError, build, check_ims, flat, run_ims
from ims_twin import run_twin
from speed_loops import KINDS, loop_of
from speed_measure import Outcome, Row, demand_legal, outcome, read_row
from speed_page import joined, measured, plot
from speed_summary import MIXED, cells, goals, quality_row, ratio_row, text_table, time_row
from stretto.loop import check

SMALL = [(kind, ops, seed) for kind in KINDS for ops in (10, 30) for seed in (0, 1)]


@pytest.fixture
def compiled() -> None:
    try:
        build()
    except NoCompilerError as error:
        pytest.skip(str(error))


def problem_of(kind: str, ops: int, seed: int) -> Flat:
    loop, machine = loop_of(kind, ops, seed)
    return flat(loop, machine, stretto.bounds(loop, machine, fuse=False).mii)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ops", [10, 30, 201])
def test_loops_are_valid_and_of_the_size_asked_for(kind: str, ops: int) -> None:
    for seed in (0, 1, 2):
        loop, machine = loop_of(kind, ops, seed)
        assert len(loop.ops) == ops
        assert not check(stretto.prepare(loop, machine).loop)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_loop(kind: str) -> None:
    assert loop_of(kind, 30, 3) == loop_of(kind, 30, 3)
    assert loop_of(kind, 30, 3)[0] != loop_of(kind, 30, 4)[0]


def test_few_operations_of_a_chain_hold_anything() -> None:
    for seed in range(3):
        loop, _ = loop_of("chain", 1000, seed)
        assert 20 <= sum(bool(op.uses) for op in loop.ops) <= 140


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("kind", "ops", "seed"), SMALL)
def test_the_compiled_scheduler_and_its_twin_agree(kind: str, ops: int, seed: int) -> None:
    problem = problem_of(kind, ops, seed)
    (compiled,) = run_ims(problem, [6])
    twin = run_twin(problem, 6, seconds=0.2)
    if twin.finished:
        assert (twin.ii, twin.stages, twin.starts) == (
            compiled.ii,
            compiled.stages,
            compiled.starts,
        )
    else:
        assert compiled.ii >= twin.ii - 1


@st.composite
def problems(draw: st.DrawFn) -> Flat:
    """A few operations with whatever uses: long ones, repeated ones, of any capacity."""
    ops = draw(st.integers(1, 6))
    capacities = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))
    uses: list[tuple[int, int, int, int, int]] = []
    for op in range(ops):
        for _ in range(draw(st.integers(0, 3))):
            resource = draw(st.integers(0, len(capacities) - 1))
            amount = draw(st.integers(1, capacities[resource]))
            uses.append((op, resource, draw(st.integers(0, 9)), draw(st.integers(1, 90)), amount))
    edges: list[tuple[int, int, int, int]] = []
    for _ in range(draw(st.integers(0, 8))):
        source, target = draw(st.integers(0, ops - 1)), draw(st.integers(0, ops - 1))
        distance = draw(st.integers(0 if source < target else 1, 2))
        edges.append((source, target, draw(st.integers(0, 20)), distance))
    return Flat(ops, capacities, tuple(uses), tuple(edges), sum(edge[2] for edge in edges) + 1)


def broken(problem: Flat, found: ImsResult) -> Iterator[str]:
    """What a schedule breaks, counted cycle by cycle."""
    load: dict[tuple[int, int], int] = {}
    for op, resource, offset, duration, amount in problem.uses:
        for k in range(offset, offset + duration):
            cell = (resource, (found.starts[op] + k) % found.ii)
            load[cell] = load.get(cell, 0) + amount
    yield from (f"full: {c}" for c, n in load.items() if n > problem.capacities[c[0]])
    for source, target, latency, distance in problem.dependences:
        if found.starts[target] < found.starts[source] + latency - found.ii * distance:
            yield f"too soon: {source} {target}"


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ops", [10, 30, 100, 201])
def test_its_own_mii_is_the_one_that_it_is_given(kind: str, ops: int) -> None:
    for seed in range(3):
        problem = problem_of(kind, ops, seed)
        (found,) = run_ims(problem, [1], seconds=0.01)
        assert found.mii == problem.mii


def gains(problem: Flat, ii: int) -> bool:
    """Whether a cycle of dependences gains: some longest path of any length grows for ever."""
    value = [0] * problem.operations
    before = list(value)
    for _ in range(problem.operations + 1):
        before = list(value)
        for source, target, latency, distance in problem.dependences:
            value[target] = max(value[target], value[source] + latency - ii * distance)
    return value != before


def naive_mii(problem: Flat) -> int:
    """The first II that no resource and no cycle forbids."""
    filled = [0] * len(problem.capacities)
    for _, resource, _, duration, amount in problem.uses:
        filled[resource] += duration * amount
    ii = 1
    while gains(problem, ii) or any(
        n > c * ii for n, c in zip(filled, problem.capacities, strict=True)
    ):
        ii += 1
    return ii


@pytest.mark.usefixtures("compiled")
@given(problem=problems())
def test_its_own_mii_is_the_first_that_nothing_forbids(problem: Flat) -> None:
    (found,) = run_ims(problem, [1])
    assert found.mii == naive_mii(problem)


@pytest.mark.usefixtures("compiled")
@given(problem=problems(), drawn=st.data())
def test_its_own_check_passes_what_is_legal_and_nothing_else(
    problem: Flat, drawn: st.DataObject
) -> None:
    (found,) = run_ims(problem, [6])
    assume(found.finished)
    assert check_ims(problem, found.ii, found.starts)
    moved = [s + drawn.draw(st.sampled_from((0, 0, 1, 40, found.ii))) for s in found.starts]
    near = replace(found, starts=tuple(moved), ii=max(1, found.ii - drawn.draw(st.integers(0, 2))))
    assert check_ims(problem, near.ii, near.starts) == (not list(broken(problem, near)))


def test_a_ratio_is_that_of_an_ims_which_starts_from_the_graph() -> None:
    result = ImsResult(60, True, 100, 2, 0.001, (), mii=100, whole=0.004)
    (cell,) = cells([row("tile", 0, 100, outcome(result))])
    assert (cell.ratio("ims6"), cell.ratio("whole6")) == (20.0, 5.0)
    told = {goal.says: goal.value for goal in goals([cell], {})}
    assert told["tile 30: median CPU time over IMS 6"] == 5.0


@pytest.mark.usefixtures("compiled")
@given(problem=problems())
def test_both_are_legal_whatever_is_held(problem: Flat) -> None:
    (compiled,) = run_ims(problem, [6])
    twin = run_twin(problem, 6)
    assert compiled.finished == twin.finished  # not where an operation is in its own way at any II
    for found in (compiled, twin):
        assert not found.finished or min(found.starts) == 0
        assert not found.finished or not list(broken(problem, found))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(("kind", "ops", "seed"), SMALL)
def test_the_verifier_passes_what_it_is_compared_with(kind: str, ops: int, seed: int) -> None:
    loop, machine = loop_of(kind, ops, seed)
    for result in run_ims(problem_of(kind, ops, seed), (6, 60)):
        assert result.finished
        demand_legal(loop, machine, result)


def test_a_compiler_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ims_process.PROGRAM", build.__globals__["SOURCE"] / "build" / "none")
    with pytest.raises(NoCompilerError, match="`no-such-compiler` is not there"):
        build("no-such-compiler -O3")


def row(kind: str, seed: int, ii: int, ims: Outcome) -> Row:
    mine = Outcome(ii, 3, 0.02, True, ii)
    return Row(kind, 30, seed, 100, mine, 0.005, ims, ims, None)


def test_loops_above_ims_are_counted_and_named() -> None:
    done = outcome(ImsResult(60, True, 110, 2, 0.001, ()))
    stopped = outcome(ImsResult(60, False, 105, 0, 15.0, ()))
    rows = [row("tile", 0, 120, done), row("tile", 1, 100, done), row("tile", 2, 106, stopped)]
    (cell,) = cells(rows)
    assert (cell.above, cell.unknown, cell.below) == (("tile30_0",), ("tile30_2",), 1)
    assert cell.who["ims60"].finished == 2
    assert [goal.value for goal in goals([cell], {}) if "above" in goal.says] == [1]


def test_the_page_is_made_of_the_rows_of_a_result() -> None:
    done = outcome(ImsResult(60, True, 110, 2, 0.001, ()))
    rows = [row(kind, 0, 100, done) for kind in ("tile", "random", "chain")]
    found = cells(rows)
    assert [cell.kind for cell in found] == [MIXED, "tile", "random", "chain"]
    for line in (quality_row, time_row, ratio_row):
        assert len({len(line(cell)) for cell in found}) == 1
    document = {
        "commit": "abc",
        "date": "2026-01-01",
        "processor": "one",
        "python": "3.11",
        "minutes": 1,
        "limits": {"stretto": 60, "ims": 15},
        "peaks": {"tile 30": {"before": 20.0, "peak": 21.0}},
        "rows": [asdict(each) for each in rows],
    }
    assert "| tile 30: median CPU time over IMS 6 | 20.00 | 20 |" not in measured(document, found)
    assert joined([document, document])["rows"] == document["rows"]
    slow = [replace(each, stretto=replace(each.stretto, seconds=0.03)) for each in rows]
    assert "| tile 30: median CPU time over IMS 6 | 30.00 | 20 |" in measured(document, cells(slow))
    assert plot(found).count("<circle") == 2 * 3 * len(found)
    assert text_table(("a", "b"), [("1", "22")]) == "a   b\n1  22"


def test_rows_read_back_as_they_were_written() -> None:
    done = outcome(ImsResult(60, True, 110, 2, 0.001, ()))
    before = row("tile", 0, 100, done)
    assert read_row(asdict(before)) == before
