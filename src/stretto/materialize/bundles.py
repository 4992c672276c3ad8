"""One operation and the pipe and mutex instructions around it.

    wait Pipe_a_tile[i]; wait Pipe_b_tile[j]; read; read     before: everything that may block
    issue mma
    release; release; advance i; advance j                   after: nothing blocks

Places are filled in by the expansion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stretto.materialize.instructions import (
    Acquire,
    Advance,
    Arrive,
    Await,
    Commit,
    Instruction,
    Issue,
    Place,
    Read,
    Release,
    Slot,
    Source,
    Through,
    Wait,
    Write,
)
from stretto.materialize.origins import Raw
from stretto.materialize.pipes import Wiring
from stretto.materialize.plan import Plan
from stretto.materialize.rings import Layout
from stretto.materialize.solve import Piped, Solution
from stretto.materialize.types import Iterator, Pipe, Side


@dataclass
class Bundles:
    """Builds the instructions of every operation, and the iterators they use."""

    plan: Plan
    solution: Solution
    layout: Layout
    wiring: Wiring
    iterators: dict[str, Iterator] = field(default_factory=dict[str, Iterator])

    def all(self) -> Mapping[str, tuple[Instruction, ...]]:
        """Operation to its bundle, in program order."""
        return {op.name: self._bundle(op.name) for op in self.plan.loop.ops}

    def _bundle(self, op: str) -> tuple[Instruction, ...]:
        at = Place(0, self.plan.stage[op], self.plan.cycle[op])
        real = [pipe for pipe in self.wiring.pipes if not pipe.trivial]
        taken = [(p, c) for p in real for c in p.consumers if c.op == op]
        owned = [p for p in real if p.owner == op and p.reused]
        filled = [p for p in real if op in p.producers]
        before: list[Instruction] = []
        after: list[Instruction] = []
        used: dict[str, None] = {}

        def walk(pipe: Pipe, side: Side, distance: int = 0) -> str:
            name = self._iterator(pipe.ring, op, side, distance)
            used[name] = None
            return name

        for pipe, c in taken:
            before.append(Wait(at, op, pipe.name, walk(pipe, "consumer", c.distance)))
        for mutex in self.wiring.mutexes:
            distances = [w.distance for w in mutex.waiters if w.op == op]
            before += [Await(at, op, mutex.name, distance) for distance in distances]
        before += [Acquire(at, op, p.name, walk(p, "producer")) for p in owned]
        before += [Read(at, op, p.name, walk(p, "consumer", c.distance)) for p, c in taken]
        issue = self._issue(op, at, used)
        after += [Write(at, op, p.name, walk(p, "producer")) for p in filled]
        after += [Commit(at, op, p.name, walk(p, "producer")) for p in filled if p.commits == op]
        after += [
            Release(at, op, p.name, walk(p, "consumer", c.distance)) for p, c in taken if p.reused
        ]
        after += [Arrive(at, op, mutex.name) for mutex in self.wiring.mutexes if mutex.holder == op]
        return (*before, issue, *after, *(Advance(at, op, name) for name in used))

    def _issue(self, op: str, at: Place, used: dict[str, None]) -> Issue:
        operation = self.plan.ops[op]
        return Issue(
            at,
            op,
            operands=tuple(self._source(op, s) for s in self.solution.operands[op]),
            reads=tuple(
                self._slot(op, read.storage, "consumer", read.distance, used)
                for read in self.plan.loop.reads[op]
            ),
            writes=tuple(self._slot(op, name, "producer", 0, used) for name in operation.writes),
            after=self.wiring.tokens.get(op, ()),
        )

    def _source(self, op: str, source: Source | Piped) -> Source:
        if not isinstance(source, Piped):
            return source
        pipe = self.wiring.pipe_of[source.skeleton]
        iterator = self._iterator(pipe.ring, op, "consumer", source.path.distance)
        return Through(source.path, pipe.name, iterator)

    def _slot(
        self, op: str, storage: str, side: Side, distance: int, used: dict[str, None]
    ) -> Slot:
        ring = self.layout.rings[Raw("storage", storage)]
        if ring.fixed:
            return Slot(storage, None, distance)
        name = self._iterator(ring.name, op, side, distance)
        used[name] = None
        return Slot(storage, name, distance)

    def _iterator(self, ring: str, op: str, side: Side, distance: int) -> str:
        back = f"-{distance}" if distance else ""
        name = f"{ring}.{op}.{'put' if side == 'producer' else 'take'}{back}"
        phase = 1 if side == "producer" else 0
        self.iterators.setdefault(name, Iterator(name, ring, op, side, distance, phase))
        return name
