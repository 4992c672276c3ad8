"""Steps of one agent in a pipelined loop: operations between their waits and releases.

x__1, x__2        what x was one step ago, two steps ago
k_tile_slot       where the agent stands in a ring; k_tile_phase: the parity of its barriers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stretto.kernel import Operation
from stretto.kernel.tree import kind_of
from stretto.materialization.program import Direct, Issue, Through
from stretto.ops.opcodes import opcode
from stretto.program.builder.loop_operations import LoopOperations
from stretto.program.builder.loop_view import Way
from stretto.program.builder.plan import SMEM_READ, SMEM_WRITE
from stretto.program.builder.rings import Ring
from stretto.program.builder.sums import on_its_own
from stretto.program.builder.turns import Turn
from stretto.program.expressions import Arithmetic, Barrier, Name, number
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Commit,
    Fence,
    Origin,
    Step,
    StepKind,
    StoreWait,
    Wait,
)


class LoopSteps(LoopOperations):
    """Builds steps of a loop."""

    def _begin(self, way: Way, order: Sequence[Issue]) -> None:
        """Where the agent stands in each ring, once for each stage that stands elsewhere."""
        way.pending, way.defined, way.order = [], set(), order
        self._copies.begin()
        self._positions: dict[tuple[str, int], tuple[str, str]] = {}
        self._last: dict[tuple[str, int], str] = {}
        stages: dict[str, list[int]] = {}
        rings: dict[str, Ring] = {}
        for i in order:
            for ring, _ in self._touched(i):
                rings[ring.name] = ring
                here = stages.setdefault(ring.name, [])
                if way.stages[i.op] not in here:
                    here.append(way.stages[i.op])
                self._last[ring.name, way.stages[i.op]] = i.op
        for name, here in stages.items():
            for n, stage in enumerate(sorted(here)):
                if n == 0:
                    self._positions[name, stage] = (f"{name}_slot", f"{name}_phase")
                    continue
                slot, phase = (
                    self._a.names.give(f"{name}_{what}_{stage}") for what in ("slot", "phase")
                )
                here_too = Name(f"{name}_slot"), Name(f"{name}_phase")
                self._a.say(Assign((slot, phase), here_too))
                self._positions[name, stage] = (slot, phase)
        self._rings = rings
        self._set_back(way, order)

    def _set_back(self, way: Way, order: Sequence[Issue]) -> None:
        """How many steps back each value is read, and what it was before the first."""
        self._back: dict[str, int] = {}
        for i in order:
            row = opcode(kind_of(self._wiring.operations[i.op]))
            if not row.awaits and not row.view:  # a product in flight is known by its variable
                self._reach_back(way, i)
        for name, most in self._back.items():
            first = self._wiring.initial.get((name, -1))
            if first is None:
                continue
            variable = self._variable_named(name)
            for b in range(1, most + 1):
                self._a.say(Assign((f"{variable}__{b}",), (Name(variable),)))
                way.defined.add(f"{variable}__{b}")

    def _reach_back(self, way: Way, i: Issue) -> None:
        """Of what one operation reads, through views too."""
        for source in i.operands:
            if not isinstance(source, Through | Direct):
                continue
            name = source.path.origin
            below = self._below(way, i, source.path)
            if below is not None:
                self._reach_back(*below)
            elif not self._is_scalar(name):
                back = self._steps_back(way, i, source.path)
                if back:
                    self._back[name] = max(self._back.get(name, 0), back)

    def _step(
        self,
        way: Way,
        issues: Sequence[Issue],
        kind: StepKind,
        number: int,
        every: Sequence[Issue] = (),
    ) -> None:
        """One step; of `every`, copies by threads that have not begun yet count as well."""
        with self._a.block() as body:
            self._run(way, issues, every or issues, opens=kind != "iteration")
        self._a.say(Step(kind, number, way.iteration(0), tuple(body)))

    def _run(
        self, way: Way, issues: Sequence[Issue], every: Sequence[Issue], *, opens: bool
    ) -> None:
        """What happens in a step; `opens`: and where each operation of the schedule begins."""
        made: set[str] = set()
        here = {i.op for i in issues}
        for i in every:
            if i.op not in here:
                self._commit(i)
                continue
            before = self._a.length
            operation = self._wiring.operations[i.op]
            at = (i.at.stage, i.at.cycle)
            with self._a.of(Origin(i.op, way.stages[i.op], operation, at)):
                made |= self._operation(way, i, operation)
            if opens:
                self._a.open_at(before)
            touched = self._touched(i)
            for ring, stage in dict.fromkeys((r, way.stages[i.op]) for r, _ in _hashable(touched)):
                if self._last[ring, stage] == i.op:
                    self._advance(self._rings[ring], stage)
        for name, most in self._back.items():
            variable = self._variable_named(name)
            for b in range(most, 1, -1):
                if f"{variable}__{b - 1}" in way.defined:
                    self._move(f"{variable}__{b}", f"{variable}__{b - 1}", way)
            if name in made:
                self._move(f"{variable}__1", variable, way)
        way.pending = [replace(f, age=f.age + 1) for f in way.pending]
        self._copies.later(max(way.stages.values(), default=0))

    def _move(self, target: str, source: str, way: Way) -> None:
        """A step later, a variable of a step before has what another had."""
        self._a.say(Assign((target,), (Name(source),)))
        way.defined.add(target)

    def _operation(self, way: Way, i: Issue, operation: Operation) -> frozenset[str]:
        """One operation of a step, with its waits and releases: names of what it made."""
        kind = kind_of(operation)
        touched, made = self._touched(i), frozenset[str]()
        quiet = opcode(kind).view or self._pure(i.op)
        if not quiet:
            self._waits(way, i, touched)
        self._await_turns(i)
        if not quiet:
            self._issue(way, i, operation, kind)
            self._releases(way, i, touched)
            made = frozenset(self._program.loop.op(i.op).results)
        self._hand_on(i, kind)
        return made

    # Rings ---------------------------------------------------------------------------------------

    def _advance(self, ring: Ring, stage: int) -> None:
        slot, phase = self._positions[ring.name, stage]
        self._a.say(Advance(slot, phase, ring.depth))

    def _waits(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for instruction in self._copies.wait(i, way.stages, way.order):
            a.say(instruction)
        for ring, reads in touched:
            slot, phase = self._positions[ring.name, way.stages[i.op]]
            if reads and ring.full and self._first_and_last(ring)[0] == i.op:
                self._mark("before", i, f"full {ring.name}")
                a.say(Wait(Barrier(a.take(f"{ring.name}_full"), slot), Name(phase)))
                self._mark("behind", i, f"full {ring.name}")
            if not reads and ring.free:
                self._mark("before", i, f"free {ring.name}")
                # An agent that also reads the ring counts its phases as readers do.
                parity = Arithmetic("^", Name(phase), number(1)) if ring.own else Name(phase)
                a.say(Wait(Barrier(a.take(f"{ring.name}_free"), slot), parity))
                self._mark("behind", i, f"free {ring.name}")

    def _releases(self, way: Way, i: Issue, touched: Sequence[tuple[Ring, bool]]) -> None:
        a = self._a
        for ring, reads in touched:
            if reads and ring.free and self._first_and_last(ring)[1] == i.op:
                slot, _ = self._positions[ring.name, way.stages[i.op]]
                free = Barrier(a.take(f"{ring.name}_free"), slot)
                operation = self._wiring.operations[i.op]
                if on_its_own(operation):
                    a.say(Commit(free))
                    continue
                if kind_of(operation) == SMEM_READ:
                    a.say(Fence())
                if self._stored_from(ring):
                    a.say(StoreWait(0))
                a.say(Arrive(free))

    # Turns ---------------------------------------------------------------------------------------

    def _await_turns(self, i: Issue) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.waiter == i.op:
                self._mark("before", i, f"free {turn.name}")
                a.take(turn.name)
                a.say(Wait(turn.barrier, Name(f"{turn.name}_phase")))
                self._mark("behind", i, f"free {turn.name}")
                self._next_turn(turn)

    def _hand_on(self, i: Issue, kind: str) -> None:
        a = self._a
        for turn in a.plan.turns[self._loop.operation]:
            if turn.holder == i.op:
                a.take(turn.name)
                if turn.committed:
                    a.say(Commit(turn.barrier))
                else:
                    if kind in (SMEM_READ, SMEM_WRITE):
                        a.say(Fence())
                    a.say(Arrive(turn.barrier))
                self._next_turn(turn)

    def _next_turn(self, turn: Turn) -> None:
        for instruction in turn.next(self._a.worker.name):
            self._a.say(instruction)


def _hashable(touched: Sequence[tuple[Ring, bool]]) -> list[tuple[str, bool]]:
    return [(ring.name, reads) for ring, reads in touched]
