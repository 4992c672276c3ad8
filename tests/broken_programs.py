"""Programs with a fault in them, and sound ones beside: what the simulator must tell apart.

    random loop ──► program ──► one instruction dropped, doubled, moved, changed ──► Broken
    random loop ──► derivation that forgets something, verifier off ──► program  ──► Broken
    an example  ──► a fault of faults.py                                         ──► Broken

Whether a fault does harm is the simulator's to say: harmless ones are kept as well.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

import faults
import stretto
from mutants_derive import MUTANTS as FORGETFUL
from mutants_verify import without_rules
from programs import Ready, guarded, placed, ready, two_agents
from rich_loops import rich_problem
from stretto import build
from stretto.errors import StrettoError
from stretto.loop import Use
from stretto.machine import Machine
from stretto.materialization import (
    MODES,
    Agent,
    Instruction,
    MaterializeError,
    Mode,
    Program,
    materialize,
)
from stretto.materialization.program import Direct, Issue, LiveIn, RingAccess, Wait
from stretto.solution import ScheduleAnalysis
from stretto.verification import VALIDATORS

AGENTS = ("tma", "mma", "simt")
SHARED = {"implied reads", "views", "carried views"}
"""What the simulator asks the loop for, as the derivation does: it cannot judge that."""


@dataclass(frozen=True)
class Broken:
    """A program to be run, and what it is to be held against."""

    program: Program
    machine: Machine
    starts: dict[str, int]
    iterations: int


DERIVED = "derivation without "


@cache
def faulty_programs(seed: int, mode: Mode) -> dict[str, Broken]:
    """Programs of a random loop by what was done to them; nothing may be removed meanwhile."""
    found: dict[str, Broken] = {}
    for name, program in _Faults(seed, mode).all():
        found.setdefault(name, program)
    return found


@cache
def forgetful_programs(seed: int, forgotten: str) -> dict[Mode, Broken]:
    """Programs of a random loop whose derivation lacks something, by the name of that mutant."""
    (patch,) = (mutant.patch for mutant in FORGETFUL if mutant.name == forgotten)
    return dict(_forgetful(seed, patch))


def broken_program(seed: int, mode: Mode, name: str) -> Broken:
    """One of them."""
    if name.startswith(DERIVED):
        return forgetful_programs(seed, name.removeprefix(DERIVED))[mode]
    return faulty_programs(seed, mode)[name]


def broken_programs(seed: int) -> Iterator[tuple[Mode, str]]:
    """The names of all of them."""
    for mode in MODES:
        for name in faulty_programs(seed, mode):
            yield mode, name
    for mutant in FORGETFUL:
        if mutant.name not in SHARED:
            for mode in forgetful_programs(seed, mutant.name):
                yield mode, f"{DERIVED}{mutant.name}"


def _crew(seed: int, ops: tuple[Any, ...]) -> dict[str, str]:
    rng = random.Random(f"crew {seed}")
    return {op.name: rng.choice(AGENTS) for op in ops}


def _programs(seed: int) -> Iterator[tuple[Mode, Program, Machine, ScheduleAnalysis]]:
    rich = rich_problem(seed)
    machine = rich.machine.with_slots(rich.loop.slots)
    try:
        analysis = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages
        )
        for mode in MODES if analysis.success else ():
            agents = _crew(seed, rich.loop.ops) if mode == "specialized" else None
            program = materialize(rich.loop, machine, analysis, mode, agents=agents)
            yield mode, program, machine, analysis
    except (StrettoError, MaterializeError):
        return


def _steady(program: Program) -> int:
    return program.stage_count + max((ring.depth for ring in program.rings), default=1) + 4


def _forgetful(
    seed: int, forget: Callable[[pytest.MonkeyPatch], None]
) -> Iterator[tuple[Mode, Broken]]:
    with pytest.MonkeyPatch.context() as patch:
        forget(patch)
        without_rules(*(validator.__name__ for validator in VALIDATORS))(patch)
        made = list(_programs(seed))
    for mode, program, machine, analysis in made:
        yield mode, Broken(program, machine, analysis.starts, _steady(program))


# One instruction ----------------------------------------------------------------------------


class _Faults:
    """Faults of one program, drawn at random."""

    def __init__(self, seed: int, mode: Mode) -> None:
        self.rng = random.Random(f"faults {seed} {mode}")
        self.made = [found for found in _programs(seed) if found[0] == mode]

    def all(self) -> Iterator[tuple[str, Broken]]:
        for _, program, machine, analysis in self.made:
            self.program, self.machine, self.starts = program, machine, analysis.starts
            self.issues = [i for i in self._instructions() if isinstance(i, Issue)]
            yield "sound", self._broken(program)
            yield "sound, short", self._broken(program, self.rng.choice([0, 1, 2]))
            for name, change in (*self._moved(), *self._declared()):
                try:
                    other = change(program)
                except AssertionError:
                    continue  # it changes nothing
                yield name, self._broken(other)
                yield f"{name}, 1 iteration", self._broken(other, 1)
            yield from self._otherwise()

    def _broken(self, program: Program, iterations: int | None = None) -> Broken:
        steps = _steady(program) if iterations is None else iterations
        return Broken(program, self.machine, self.starts, steps)

    def _instructions(self) -> list[Instruction]:
        return [
            i
            for agent in self.program.agents
            for i in (*agent.stream.prologue, *agent.stream.kernel, *agent.stream.epilogue)
        ]

    def _moved(self) -> Iterator[tuple[str, Callable[[Program], Program]]]:
        """Instructions dropped, doubled and exchanged; operations in other steps and cycles."""
        rng = self.rng
        kinds = sorted({type(i).__name__ for i in self._instructions()})
        for kind in kinds:
            ops = sorted({i.op for i in self._instructions() if type(i).__name__ == kind})
            op = rng.choice(ops)
            yield f"no {kind} of {op}", _sections(lambda s, k=kind, o=op: _no(s, k, o))
            op = rng.choice(ops)
            yield f"{kind} of {op} twice", _sections(lambda s, k=kind, o=op: _twice(s, k, o))
        names = [op.name for op in self.program.loop.ops]
        for by in (-1, 1):
            op = rng.choice(names)
            yield f"{op} in stage {by:+}", lambda p, o=op, by=by: faults.other_stage(p, o, by)
            op = rng.choice(names)
            yield f"{op} in cycle {by:+}", _sections(lambda s, o=op, by=by: _later(s, o, by))
        for op in rng.sample(names, min(3, len(names))):
            yield f"around {op}, exchanged", _sections(lambda s, o=op: _exchanged(s, o))
            yield f"{op} without tokens", _issues(op, lambda i: replace(i, after=()))
            yield f"{op} without writes", _issues(op, lambda i: replace(i, writes=()))
            yield f"{op} with operands of other iterations", _issues(op, _other_operands)
            for storage in self.program.loop.storages:
                if storage.fixed and storage.name not in self.program.loop.op(op).writes:
                    more = RingAccess(storage.name, None)
                    yield (
                        f"{op} writes {storage.name} as well",
                        _issues(op, lambda i, m=more: replace(i, writes=(*i.writes, m))),
                    )
        yield "the epilogue ends early", _last_of_the_epilogue

    def _declared(self) -> Iterator[tuple[str, Callable[[Program], Program]]]:
        """Rings, pipes, mutexes and iterators of other numbers."""
        program = self.program
        for ring in program.rings:
            if ring.depth > 1:
                yield f"{ring.name} shallow", lambda p, r=ring.name: faults.too_shallow(p, r)
            if not ring.fixed:
                yield f"{ring.name} deep", lambda p, r=ring.name: _deeper(p, r)
        for pipe in program.pipes:
            if pipe.latency:
                yield f"{pipe.name} full at once", lambda p, n=pipe.name: _at_once(p, "pipes", n)
        for mutex in program.mutexes:
            if mutex.latency:
                told = f"{mutex.name} free at once"
                yield told, lambda p, n=mutex.name: _at_once(p, "mutexes", n)
        for iterator in self.rng.sample(program.iterators, min(2, len(program.iterators))):
            name = iterator.name
            yield f"{name} in the other phase", lambda p, n=name: faults.other_phase(p, n)
        if program.fused:
            yield "not fused", lambda p: replace(p, fused=())

    def _otherwise(self) -> Iterator[tuple[str, Broken]]:
        """Another machine, other starts, another II."""
        good = self._broken(self.program)
        for slot in self.machine.slots:
            if slot.capacity is not None and slot.capacity > 1:
                slots = tuple(
                    replace(s, capacity=slot.capacity - 1) if s == slot else s
                    for s in self.machine.slots
                )
                small = replace(self.machine, slots=slots)
                yield f"slot {slot.name} smaller", replace(good, machine=small)
        for pool in self.machine.pools:
            pools = tuple(replace(p, cap=p.cap - 1) if p == pool else p for p in self.machine.pools)
            yield (
                f"pool {pool.name} smaller",
                replace(good, machine=replace(self.machine, pools=pools)),
            )
        yield "II + 1", replace(good, program=replace(self.program, ii=self.program.ii + 1))
        for count in (1, good.iterations):
            op = self.rng.choice(list(self.starts))
            starts = self.starts | {op: self.starts[op] + self.program.ii}
            yield (
                f"{op} promised a stage later, {count}",
                replace(good, starts=starts, iterations=count),
            )


def _sections(rewrite: faults.Rewrite) -> Callable[[Program], Program]:
    return lambda program: faults.rewritten(program, rewrite)


def _issues(op: str, change: Callable[[Issue], Issue]) -> Callable[[Program], Program]:
    return _sections(
        lambda section: [change(i) if isinstance(i, Issue) and i.op == op else i for i in section]
    )


def _is(i: Instruction, kind: str, op: str) -> bool:
    return type(i).__name__ == kind and i.op == op


def _no(section: list[Instruction], kind: str, op: str) -> list[Instruction]:
    return [i for i in section if not _is(i, kind, op)]


def _twice(section: list[Instruction], kind: str, op: str) -> list[Instruction]:
    return [j for i in section for j in ([i, i] if _is(i, kind, op) else [i])]


def _later(section: list[Instruction], op: str, by: int) -> list[Instruction]:
    return [
        replace(i, at=replace(i.at, cycle=i.at.cycle + by)) if i.op == op else i for i in section
    ]


def _exchanged(section: list[Instruction], op: str) -> list[Instruction]:
    """An operation and what comes right after it."""
    found = list(section)
    for n, i in enumerate(section[:-1]):
        if isinstance(i, Issue) and i.op == op:
            found[n], found[n + 1] = found[n + 1], found[n]
    return found


def _one_more(program: Program, op: str) -> Program:
    """An operation of stage 0 begins another iteration where the last one ended."""

    def more(agent: Agent) -> Agent:
        stream = agent.stream
        begun = [i for i in stream.kernel if isinstance(i, Issue) and i.op == op]
        return replace(agent, stream=replace(stream, epilogue=(*begun, *stream.epilogue)))

    return replace(program, agents=tuple(map(more, program.agents)))


def _waits_on(program: Program, op: str) -> Program:
    """When everything is done, somebody waits for a slot that nobody will fill."""

    def more(agent: Agent) -> Agent:
        waits = [i for i in agent.stream.kernel if isinstance(i, Wait) and i.op == op]
        stream = agent.stream
        ends = tuple(replace(i, at=replace(i.at, step=i.at.stage)) for i in waits)
        return replace(agent, stream=replace(stream, epilogue=(*stream.epilogue, *ends)))

    return replace(program, agents=tuple(map(more, program.agents)))


def _other_operands(issue: Issue, by: int = 1) -> Issue:
    def other(source: Any) -> Any:
        if not isinstance(source, LiveIn | Direct):
            return source
        distances = (source.path.distances[0] + by, *source.path.distances[1:])
        return replace(source, path=replace(source.path, distances=distances))

    return replace(issue, operands=tuple(map(other, issue.operands)))


def _last_of_the_epilogue(program: Program) -> Program:
    agents = [
        replace(a, stream=replace(a.stream, epilogue=a.stream.epilogue[:-1]))
        for a in program.agents
    ]
    changed = replace(program, agents=tuple(agents))
    assert changed != program
    return changed


def _deeper(program: Program, ring: str, by: int = 1) -> Program:
    rings = [replace(r, depth=r.depth + by) if r.name == ring else r for r in program.rings]
    pipes = [replace(p, depth=p.depth + by) if p.ring == ring else p for p in program.pipes]
    return replace(program, rings=tuple(rings), pipes=tuple(pipes))


def _at_once(program: Program, what: str, name: str) -> Program:
    """What a pipe or a mutex tells, it tells when its operation starts."""
    rows = [replace(r, latency=0) if r.name == name else r for r in getattr(program, what)]
    return replace(program, **{what: tuple(rows)})


# By hand ------------------------------------------------------------------------------------


@cache
def known_faults() -> dict[str, Broken]:
    """Faults of faults.py in the examples."""
    found: dict[str, Broken] = {}

    def add(name: str, of: Ready, program: Program, iterations: int = 12) -> None:
        found[name] = Broken(program, of.machine, of.analysis.starts, iterations)

    gemm, pair, box = ready("gemm"), two_agents(), guarded()
    for mode in MODES:
        program = materialize(gemm.loop, gemm.machine, gemm.analysis, mode)
        small = faults.too_shallow(program, "a_tile")
        add(f"gemm, {mode}", gemm, program)
        add(f"a shallow ring, {mode}", gemm, small)
        add(f"a shallow ring unguarded, {mode}", gemm, faults.without_acquire(small, "Pipe_a_tile"))
        add(f"a commit too soon, {mode}", gemm, faults.committed_too_soon(program, "Pipe_a_tile"))
        add(f"another stage, {mode}", gemm, faults.other_stage(program, "mma", 1))
        add(f"no wait, {mode}", gemm, faults.without_wait(program, "Pipe_a_tile", "mma"))
        add(f"another phase, {mode}", gemm, faults.other_phase(program, "a_tile.mma.take"))
        again = faults.rewritten(program, lambda s: _twice(s, "Issue", "offset"))
        add(f"issued twice, {mode}", gemm, again)
        add(f"an iteration too many, {mode}", gemm, _one_more(program, "offset"))
        add(f"a wait after the end, {mode}", gemm, _waits_on(program, "mma"))
        soon = _sections(lambda s: _exchanged(s, "load_a"))
        add(f"a write too soon, {mode}", gemm, soon(program))
    ahead = _issues("load_a", lambda i: _other_operands(i, -1))
    program = materialize(gemm.loop, gemm.machine, gemm.analysis, "unspecialized")
    add("an operand of the next iteration", gemm, ahead(program))
    add("a mutex of an order", pair, faults.without_mutex(pair.program(), "Mutex_first"))
    for mutex in ("Mutex_fill", "Mutex_clear"):
        add(f"{mutex} of a storage", box, faults.without_mutex(box.program(), mutex))
    forward = ready("attention_forward")
    program = materialize(forward.loop, forward.machine, forward.analysis, "specialized")
    strange = _issues(
        "load_k", lambda i: replace(i, writes=(replace(i.writes[0], iterator="k_tile.qk.take"),))
    )
    add("another's iterator", forward, strange(program))
    loop = build("dump")
    loop.op("fill", "x", uses=[Use("a", 2)], latency=2, into=loop.storage("box", "smem", 8))
    dump = placed(loop.finish(), 4, {"fill": 0})
    nothing = _issues("fill", lambda i: replace(i, writes=()))
    program = dump.program("unspecialized")
    add("a write that nobody reads", dump, nothing(program))
    add("more copies than there is room for", dump, _deeper(program, "box", 8))
    return found
