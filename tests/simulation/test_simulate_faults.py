"""Faults put in on purpose are caught, each by its name; the sound program beside them is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import faults
from programs import Ready, guarded, placed, ready, two_agents
from stretto import StrettoError, build
from stretto.loop import Use
from stretto.materialization import MODES, Instruction, Mode, Program, materialize, region_faults
from stretto.materialization.program import Direct, Issue, LiveIn, Write
from stretto.simulation import Simulation, simulate_program
from stretto.simulation.needs import Told
from stretto.simulation.signals import Barrier

BOTH = pytest.mark.parametrize("mode", MODES)


def made(loop: Ready, mode: Mode) -> Program:
    return materialize(loop.loop, loop.machine, loop.analysis, mode)


def run(loop: Ready, program: Program, iterations: int = 12) -> Simulation:
    return simulate_program(program, loop.machine, loop.analysis.starts, iterations)


def names(simulation: Simulation) -> set[str]:
    return {violation.name for violation in simulation.violations}


@BOTH
@pytest.mark.parametrize("name", ["four_op", "gemm", "attention_forward", "attention_backward"])
def test_sound_programs_have_no_violation(name: str, mode: Mode) -> None:
    loop = ready(name)
    assert run(loop, made(loop, mode)).violations == ()


@BOTH
@pytest.mark.parametrize(
    ("name", "ring"),
    [("gemm", "a_tile"), ("attention_backward", "q_tile"), ("attention_backward", "do_tile")],
)
def test_a_ring_one_slot_too_small_stalls(name: str, ring: str, mode: Mode) -> None:
    loop = ready(name)
    simulation = run(loop, faults.too_shallow(made(loop, mode), ring))
    assert "stall" in names(simulation) or simulation.deadlock
    assert not simulation.success
    # The waits still keep the data right: it is only late.
    assert "unwritten" not in names(simulation)


@BOTH
def test_a_small_ring_that_nobody_guards_is_overwritten(mode: Mode) -> None:
    loop = ready("gemm")
    small = faults.too_shallow(made(loop, mode), "a_tile")
    simulation = run(loop, faults.without_acquire(small, "Pipe_a_tile"))
    assert "overwritten" in names(simulation)


def test_a_dropped_mutex_is_caught() -> None:
    loop = two_agents()
    program = materialize(loop.loop, loop.machine, loop.analysis, "specialized", agents=loop.agents)
    assert run(loop, program).violations == ()
    (mutex,) = program.mutexes
    simulation = run(loop, faults.without_mutex(program, mutex.name))
    assert names(simulation) == {"unordered"}
    (violation,) = simulation.violations
    assert violation.ops == ("second", "first")
    assert "nothing makes it wait for `first`" in violation.message


@pytest.mark.parametrize(("mutex", "op"), [("Mutex_fill", "clear"), ("Mutex_clear", "fill")])
def test_a_dropped_mutex_of_a_storage_is_caught(mutex: str, op: str) -> None:
    loop = guarded()
    program = loop.program()
    assert run(loop, program).violations == ()
    simulation = run(loop, faults.without_mutex(program, mutex))
    assert names(simulation) == {"overwritten"}
    assert simulation.violations[0].ops[0] == op
    assert "for the sake of `box`" in simulation.violations[0].message


@BOTH
@pytest.mark.parametrize(
    ("name", "pipe"),
    [
        ("gemm", "Pipe_a_tile"),
        ("attention_forward", "Pipe_m"),
        ("attention_backward", "Pipe_dq_acc"),
    ],
)
def test_a_commit_before_its_write_is_caught(name: str, pipe: str, mode: Mode) -> None:
    loop = ready(name)
    program = faults.committed_too_soon(made(loop, mode), pipe)
    assert "unwritten" in names(run(loop, program))
    assert any("before its write" in fault for fault in region_faults(program))


@BOTH
@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(("name", "op"), [("gemm", "mma"), ("attention_forward", "qk")])
def test_a_stage_off_by_one_is_caught(name: str, op: str, by: int, mode: Mode) -> None:
    loop = ready(name)
    program = faults.other_stage(made(loop, mode), op, by)
    simulation = run(loop, program)
    assert names(simulation) & {"early", "stall"}
    assert not simulation.equal
    assert "value" in names(simulation)
    assert any(op in fault for fault in region_faults(program))


@BOTH
@pytest.mark.parametrize(
    ("name", "pipe", "op"),
    [
        ("gemm", "Pipe_a_tile", "mma"),
        ("attention_forward", "Pipe_s_acc", "load_s"),
        ("attention_backward", "Pipe_dq_acc", "load_dq"),
    ],
)
def test_a_missing_wait_is_caught(name: str, pipe: str, op: str, mode: Mode) -> None:
    """The data is there in time, but by luck: nothing makes the consumer wait."""
    loop = ready(name)
    program = faults.without_wait(made(loop, mode), pipe, op)
    simulation = run(loop, program)
    assert "unwritten" in names(simulation)
    assert any("nothing makes it wait" in v.message for v in simulation.violations)
    assert any("without a wait" in fault for fault in region_faults(program))


def test_a_wait_that_another_wait_of_the_agent_implies_may_go() -> None:
    """`kq` waits for the query tile before `dk` does, in the same agent: no race is invented."""
    loop = ready("attention_backward")
    program = faults.without_wait(made(loop, "specialized"), "Pipe_q_tile", "dk")
    assert run(loop, program).violations == ()
    assert any("without a wait" in fault for fault in region_faults(program))


@BOTH
def test_a_consumer_in_the_wrong_phase_waits_for_ever(mode: Mode) -> None:
    """By the time it looks, its slot is full: in the wrong phase it waits for the next filling."""
    loop = ready("gemm")
    simulation = run(loop, faults.other_phase(made(loop, mode), "a_tile.mma.take"))
    assert simulation.deadlock
    assert "mma" in {b.op for b in simulation.blocked}
    assert "deadlock" in names(simulation)


def test_a_wait_passes_when_the_phase_of_its_parity_is_complete() -> None:
    """In the wrong phase a wait for an empty slot passes at once, and one for a full slot not."""
    slot = Barrier("slot", 2, ("a", "b"))
    assert not slot.passes(0)
    assert slot.passes(1)
    assert not slot.arrive(Told({}, {0: 3}))
    assert not slot.passes(0)
    assert slot.arrive(Told({}, {0: 5}))
    assert slot.passes(0)
    assert not slot.passes(1)
    assert slot.tells(0) == Told({}, {0: 5})
    assert slot.tells(1) is None


@BOTH
def test_a_producer_in_the_wrong_phase_deadlocks(mode: Mode) -> None:
    loop = ready("gemm")
    program = faults.other_phase(made(loop, mode), "a_tile.load_a.put")
    simulation = run(loop, program)
    assert simulation.deadlock
    assert "deadlock" in names(simulation)
    assert not simulation.equal
    assert simulation.cycles_per_iteration is None
    if mode == "specialized":
        told = {b.agent: (b.op, b.iteration, b.what, b.agents) for b in simulation.blocked}
        assert told == {
            "tma": ("load_a", 0, "Pipe_a_tile[0] to be free", ("mma",)),
            "mma": ("mma", 0, "Pipe_a_tile[0] to be full", ("tma",)),
        }


# Programs that no rule of the region would let pass ---------------------------------------


def _changed(program: Program, change: Callable[[Instruction], list[Instruction]]) -> Program:
    return faults.rewritten(program, lambda section: [j for i in section for j in change(i)])


@BOTH
def test_an_operation_that_issues_twice_is_caught(mode: Mode) -> None:
    """`offset` holds no slot and writes nothing: only counting shows it."""
    loop = ready("gemm")
    program = _changed(
        made(loop, mode), lambda i: [i, i] if isinstance(i, Issue) and i.op == "offset" else [i]
    )
    simulation = run(loop, program)
    assert not simulation.success
    assert simulation.violations[0].name == "value"
    assert "`offset` of iteration 0 issues at 0 once more" in simulation.violations[0].message


@BOTH
def test_a_write_before_its_operation_is_caught(mode: Mode) -> None:
    loop = ready("gemm")

    def swap(section: list[Instruction]) -> list[Instruction]:
        for n, i in enumerate(section):
            if isinstance(i, Write) and i.op == "load_a":
                section[n - 1], section[n] = i, section[n - 1]
        return section

    simulation = run(loop, faults.rewritten(made(loop, mode), swap))
    assert any(
        "writes Pipe_a_tile[0] at 1, before it has issued" in v.message
        for v in simulation.violations
    )


@BOTH
@pytest.mark.parametrize("by", [-1, 1])
def test_a_write_for_another_iteration_is_caught(by: int, mode: Mode) -> None:
    """Its commit would else be in time for an iteration that is not there yet."""
    loop = ready("gemm")
    program = _changed(
        made(loop, mode),
        lambda i: [
            replace(i, at=replace(i.at, stage=i.at.stage + by))
            if isinstance(i, Write) and i.op == "load_b"
            else i
        ],
    )
    assert "unwritten" in names(run(loop, program))


def test_an_iterator_of_another_agent_is_caught() -> None:
    """It stands at the right slot as long as nobody is late."""
    loop = ready("attention_forward")
    program = _changed(
        made(loop, "specialized"),
        lambda i: [
            replace(i, writes=(replace(i.writes[0], iterator="k_tile.qk.take"),))
            if isinstance(i, Issue) and i.op == "load_k"
            else i
        ],
    )
    simulation = run(loop, program)
    assert any(
        v.name == "unordered" and "`k_tile.qk.take`, which agent mma moves" in v.message
        for v in simulation.violations
    )


@pytest.mark.parametrize("by", [-1, 1])
def test_the_loop_counter_of_another_iteration_is_caught(by: int) -> None:
    """What comes from outside may be another thing in every iteration."""
    loop = ready("gemm")

    def change(i: Instruction) -> list[Instruction]:
        if isinstance(i, Issue) and i.op == "offset":
            (source,) = i.operands
            assert isinstance(source, LiveIn)
            path = replace(source.path, distances=(by,))
            return [replace(i, operands=(replace(source, path=path),))]
        return [i]

    simulation = run(loop, _changed(made(loop, "unspecialized"), change))
    assert "value" in names(simulation)
    assert not simulation.equal


def test_a_direct_operand_of_another_iteration_is_caught() -> None:
    loop = ready("gemm")

    def change(i: Instruction) -> list[Instruction]:
        if isinstance(i, Issue) and i.op == "load_a":
            (source,) = i.operands
            assert isinstance(source, Direct)
            path = replace(source.path, distances=(-1,))
            return [replace(i, operands=(replace(source, path=path),))]
        return [i]

    simulation = run(loop, _changed(made(loop, "unspecialized"), change))
    assert any("of iteration 1 has not issued in this" in v.message for v in simulation.violations)


def test_an_iteration_that_never_ran_is_told_and_nothing_breaks() -> None:
    """A gap in the last iterations."""
    loop = ready("gemm")
    program = made(loop, "unspecialized")
    (agent,) = program.agents
    first = next(n for n, i in enumerate(agent.stream.epilogue) if isinstance(i, Issue))
    left = agent.stream.epilogue[:first] + agent.stream.epilogue[first + 1 :]
    broken = replace(agent, stream=replace(agent.stream, epilogue=left))
    simulation = run(loop, replace(program, agents=(broken,)), 6)
    assert any("`mma` of iteration 4 never issued" in v.message for v in simulation.violations)


def test_what_is_not_declared_cannot_run() -> None:
    loop = ready("gemm")
    program = made(loop, "specialized")
    short = replace(program.pipes[0], depth=3)
    with pytest.raises(StrettoError, match=r"gemm: the program cannot run: .*depth 3; its ring"):
        run(loop, replace(program, pipes=(short, *program.pipes[1:])))


def test_a_write_that_never_happens_is_caught_though_nobody_reads_it() -> None:
    loop = build("dump")
    box = loop.storage("box", "smem", 8)
    loop.op("fill", "x", uses=[Use("a", 2)], latency=2, into=box)
    case = placed(loop.finish(), 4, {"fill": 0})
    program = _changed(
        made(case, "unspecialized"),
        lambda i: [replace(i, writes=())] if isinstance(i, Issue) else [i],
    )
    (violation,) = run(case, program).violations
    assert violation.name == "value"
    assert violation.message == "`fill` of iteration 0 wrote nothing to `box`"
    assert violation.times == 12


def test_a_run_too_short_for_the_steady_state_still_tells_of_a_deadlock() -> None:
    case = ready("gemm")
    broken = faults.other_phase(case.program("specialized"), "a_tile.mma.take")
    found = simulate_program(broken, case.machine, case.analysis.starts, 0)
    assert found.deadlock
    assert not found.success


def test_a_read_that_an_operation_has_not_is_told() -> None:
    case = ready("gemm")
    program = case.program("unspecialized")
    (agent,) = program.agents
    kernel = tuple(
        replace(i, reads=()) if isinstance(i, Issue) and i.op == "mma" else i
        for i in agent.stream.kernel
    )
    stream = replace(agent.stream, kernel=kernel)
    broken = replace(program, agents=(replace(agent, stream=stream),))
    with pytest.raises(StrettoError, match="from a read that it has not"):
        simulate_program(broken, case.machine, case.analysis.starts, 3)
