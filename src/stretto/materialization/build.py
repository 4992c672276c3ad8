"""From an analysis to a program, step by step.

    roster ─► dataflow ─► layout ─► wiring ─► bundles ─► streams ─► verify the region

A bundle is one operation and the pipe and mutex instructions around it:

    wait Pipe_a_tile[i]; wait Pipe_b_tile[j]; read; read     before: everything that may block
    issue mma
    release; release; advance i; advance j                   after: nothing blocks

Bundles become prologue, kernel and epilogue of an agent's stream:

    stage 0  a        step 0   a0                 prologue   a0 only if there is an iteration 0
    stage 1  b        step 1   a1 b0      kernel, as often as there are whole steps
    II 10             ...
                      step N      b(N-1)          epilogue   only if step N was not in the prologue

Every instruction says the least trip count at which it runs, so the same program is right for every
trip count, zero and fewer iterations than stages included.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stretto.errors import MaterializeError
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.materialization.dataflow import Dataflow, Pending
from stretto.materialization.origins import Raw
from stretto.materialization.persistent import Persistent
from stretto.materialization.program import (
    MODES,
    Acquire,
    Advance,
    Agent,
    Arrive,
    Await,
    Commit,
    Consumer,
    Instruction,
    Issue,
    Iterator,
    Mode,
    Mutex,
    Pipe,
    Position,
    Program,
    Read,
    Release,
    RingAccess,
    Side,
    Stream,
    Supply,
    Through,
    Wait,
    Waiter,
    Write,
)
from stretto.materialization.region import require_sound
from stretto.materialization.ring_layout import RingLayout, lay_out
from stretto.materialization.roster import Roster, make_roster
from stretto.materialization.wiring import Wiring, wire
from stretto.solution import ScheduleAnalysis


class BarrierError(MaterializeError):
    """The agents need more named barriers than there are."""

    def __init__(self, loop: str, needed: int, cap: int, takers: Sequence[str]) -> None:
        self.needed = needed
        self.cap = cap
        self.takers = tuple(takers)
        super().__init__(
            f"{needed} named barriers are needed, the machine has {cap}; "
            f"they are taken by {', '.join(self.takers)}",
            loop,
        )

    def __reduce__(self) -> tuple[type[BarrierError], tuple[str, int, int, tuple[str, ...]]]:
        return BarrierError, (self.loop, self.needed, self.cap, self.takers)


def materialize(
    loop: Loop,
    machine: Machine,
    analysis: ScheduleAnalysis,
    mode: Mode = "unspecialized",
    *,
    agents: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    persistent: Persistent | None = None,
    trusted: bool = False,
) -> Program:
    """The program of a finished schedule; loop and machine as `prepare` gives them.

    A schedule that is `trusted` is checked for dependences and storages only.
    `agents` gives operations to agents by name, in a specialized program. The shapes of a
    persistent loop are checked before anything is solved.
    """
    if mode not in MODES:
        raise MaterializeError(f"mode {mode!r}; known: {', '.join(MODES)}")
    if persistent is not None:
        persistent.require(loop.name)
    roster = make_roster(loop, machine, analysis, mode, agents, simt_groups, trusted=trusted)
    program = _build(roster, mode, persistent)
    cap, takers = machine.limit("named_barriers"), program.named_barriers
    if cap is not None and len(takers) > cap:
        raise BarrierError(loop.name, len(takers), cap, takers)
    require_sound(program)
    return program


def _build(roster: Roster, mode: Mode, persistent: Persistent | None) -> Program:
    dataflow = Dataflow(roster)
    layout = lay_out(roster, dataflow.skeletons.values())
    wiring = wire(roster, dataflow, layout)
    bundler = _Bundler(roster, dataflow, layout, wiring)
    bundles = {op.name: bundler.bundle(op.name) for op in roster.loop.ops}
    agents: list[Agent] = []
    for name, role in roster.crew.roles.items():
        ops = tuple(op.name for op in roster.loop.ops if roster.agent_of[op.name] == name)
        order = [op for op in layout.sequence if roster.agent_of[op] == name]
        agents.append(Agent(name, role, ops, _expand(roster, bundles, order)))
    return Program(
        loop=roster.loop,
        machine=roster.machine.name,
        mode=mode,
        ii=roster.ii,
        stage_count=roster.stage_count,
        rings=tuple(layout.rings.values()),
        pipes=wiring.pipes,
        mutexes=wiring.mutexes,
        iterators=tuple(bundler.iterators.values()),
        agents=tuple(agents),
        sequence=layout.sequence,
        fused=roster.schedule.fused,
        persistent=persistent,
    )


# Bundles ----------------------------------------------------------------------------------


@dataclass
class _Bundler:
    """Builds the instructions of every operation, and the iterators they use."""

    roster: Roster
    dataflow: Dataflow
    layout: RingLayout
    wiring: Wiring
    iterators: dict[str, Iterator] = field(default_factory=dict[str, Iterator])

    def __post_init__(self) -> None:
        self._taken: defaultdict[str, list[tuple[Pipe, Consumer]]] = defaultdict(list)
        self._filled: defaultdict[str, list[Pipe]] = defaultdict(list)
        self._awaited: defaultdict[str, list[tuple[Mutex, Waiter]]] = defaultdict(list)
        self._held: defaultdict[str, list[Mutex]] = defaultdict(list)
        for pipe in self.wiring.pipes:
            if not pipe.trivial:
                for consumer in pipe.consumers:
                    self._taken[consumer.op].append((pipe, consumer))
                for op in dict.fromkeys(pipe.producers):
                    self._filled[op].append(pipe)
        for mutex in self.wiring.mutexes:
            for waiter in mutex.waiters:
                self._awaited[waiter.op].append((mutex, waiter))
            self._held[mutex.holder].append(mutex)

    def bundle(self, op: str) -> tuple[Instruction, ...]:
        """An operation and what stands around it, in the kernel."""
        at = Position(0, self.roster.stage[op], self.roster.cycle[op])
        taken, filled = self._taken[op], self._filled[op]
        owned = [p for p in filled if p.owner == op and p.reused]
        before: list[Instruction] = []
        after: list[Instruction] = []
        used: dict[str, None] = {}

        def walk(pipe: Pipe, side: Side, distance: int = 0) -> str:
            name = self._iterator(pipe.ring, op, side, distance)
            used[name] = None
            return name

        for pipe, c in taken:
            before.append(Wait(at, op, pipe.name, walk(pipe, "consumer", c.distance)))
        before += [Await(at, op, mutex.name, w.distance) for mutex, w in self._awaited[op]]
        before += [Acquire(at, op, p.name, walk(p, "producer")) for p in owned]
        before += [Read(at, op, p.name, walk(p, "consumer", c.distance)) for p, c in taken]
        issue = self._issue(op, at, used)
        after += [Write(at, op, p.name, walk(p, "producer")) for p in filled]
        after += [Commit(at, op, p.name, walk(p, "producer")) for p in filled if p.commits == op]
        after += [
            Release(at, op, p.name, walk(p, "consumer", c.distance)) for p, c in taken if p.reused
        ]
        after += [Arrive(at, op, mutex.name) for mutex in self._held[op]]
        return (*before, issue, *after, *(Advance(at, op, name) for name in used))

    def _issue(self, op: str, at: Position, used: dict[str, None]) -> Issue:
        loop = self.roster.loop

        def touch(storage: str, side: Side, distance: int) -> RingAccess:
            ring = self.layout.rings[Raw("storage", storage)]
            if ring.fixed:
                return RingAccess(storage, None, distance)
            name = self._iterator(ring.name, op, side, distance)
            used[name] = None
            return RingAccess(storage, name, distance)

        return Issue(
            at,
            op,
            operands=tuple(self._supply(op, s) for s in self.dataflow.operands[op]),
            reads=tuple(touch(read.storage, "consumer", read.distance) for read in loop.reads[op]),
            writes=tuple(touch(name, "producer", 0) for name in loop.op(op).writes),
            after=self.wiring.tokens.get(op, ()),
        )

    def _supply(self, op: str, source: Supply | Pending) -> Supply:
        if not isinstance(source, Pending):
            return source
        pipe = self.wiring.pipe_of[source.skeleton]
        iterator = self._iterator(pipe.ring, op, "consumer", source.path.distance)
        return Through(source.path, pipe.name, iterator)

    def _iterator(self, ring: str, op: str, side: Side, distance: int) -> str:
        back = f"-{distance}" if distance else ""
        name = f"{ring}.{op}.{'put' if side == 'producer' else 'take'}{back}"
        phase = 1 if side == "producer" else 0
        self.iterators.setdefault(name, Iterator(name, ring, op, side, distance, phase))
        return name


# Streams ----------------------------------------------------------------------------------


def _expand(
    roster: Roster, bundles: Mapping[str, tuple[Instruction, ...]], order: Sequence[str]
) -> Stream:
    """The stream of an agent that issues operations in this order in each step."""
    stages = [roster.stage[op] for op in order]
    first, last = min(stages), max(stages)
    prologue: list[Instruction] = []
    epilogue: list[Instruction] = []
    for step in range(first, last):
        for op, stage in zip(order, stages, strict=True):
            if stage <= step:
                # Iteration step - stage exists.
                prologue += _placed(bundles[op], step, step - stage + 1)
            else:
                # Step N + step comes after those of the prologue.
                epilogue += _placed(bundles[op], step, last - step)
    kernel = [instruction for op in order for instruction in bundles[op]]
    return Stream(first, last, tuple(prologue), tuple(kernel), tuple(epilogue))


def _placed(bundle: Sequence[Instruction], step: int, needs: int) -> list[Instruction]:
    at = replace(bundle[0].at, step=step, needs=needs)
    return [replace(instruction, at=at) for instruction in bundle]
