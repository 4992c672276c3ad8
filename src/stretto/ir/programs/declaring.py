"""The head of a program: its rings, pipes, mutexes and iterators, in the program's own order.

%a_tile = create_ring {storage = "a_tile", ...} : !nv_tileas.pipeline<5, ...>
%Pipe_a_tile = create_pipeline on %a_tile {pipe = {name = "Pipe_a_tile", ...}} : ...
%a_tile.load_a.put = create_iterator %a_tile {op = "load_a", side = "producer", phase = 1} : ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stretto.ir.attributes import to_attribute
from stretto.ir.dialect.pipeline import CreateIteratorOp, CreatePipelineOp
from stretto.ir.dialect.programs import CreateMutexOp, CreateRingOp
from stretto.ir.dialect.types import IteratorType, MutexType, PipelineType, TokenType
from stretto.ir.programs.names import iterator_name
from stretto.ir.programs.original import Original
from stretto.materialize.instructions import Issue, Through
from stretto.materialize.types import Iterator, Mutex, Pipe, Program, Ring


@dataclass
class Declared:
    """What the head declares, by name."""

    rings: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    pipes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    mutexes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    tokens: dict[tuple[str, int], SSAValue] = field(default_factory=dict[tuple[str, int], SSAValue])
    """Private mutexes, by holder and latency."""
    iterators: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])


def hinted(value: SSAValue, name: str) -> SSAValue:
    """A value that shows a name, as far as names of values can."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.$-") else "_" for c in name)
    if SSAValue.is_valid_name(plain):
        value.name_hint = SSAValue.extract_valid_name(plain)
    return value


def issues_of(program: Program) -> list[Issue]:
    """What the kernels of all agents issue."""
    every = (i for agent in program.agents for i in agent.stream.kernel)
    return [i for i in every if isinstance(i, Issue)]


@dataclass
class Declaring:
    """Writes the head into a block."""

    program: Program
    original: Original
    block: Block
    poison: Callable[[Attribute], SSAValue]

    def declare(self) -> Declared:
        """Everything there is."""
        found = Declared()
        for ring in self.program.rings:
            found.rings[ring.name] = self._ring(ring)
        for pipe in self.program.pipes:
            found.pipes[pipe.name] = self._pipe(pipe, found.rings[pipe.ring])
        for mutex in self.program.mutexes:
            found.mutexes[mutex.name] = self._mutex(mutex)
        for issue in issues_of(self.program):
            for after in issue.after:
                key = (after.op, after.latency)
                if key not in found.tokens:
                    found.tokens[key] = self._token(*key)
        for iterator in self.program.iterators:
            found.iterators[iterator.name] = self._iterator(iterator, found.rings[iterator.ring])
        return found

    def add(self, op: Operation, name: str) -> SSAValue:
        """An operation of one result, under a name."""
        self.block.add_op(op)
        return hinted(op.results[0], name)

    def _ring(self, ring: Ring) -> SSAValue:
        stated: dict[str, Any] = {"lifetime": ring.lifetime}
        own = ring.storage or ring.value
        stated |= {"storage": ring.storage} if ring.storage is not None else {"value": ring.value}
        if ring.name != own:
            stated["called"] = ring.name
        buffer = None
        if ring.storage is not None:
            slot = self.original.slot_type(self.program.loop.storage(ring.storage))
            buffer = self.original.buffer_of(ring.storage) if ring.fixed else None
        else:
            result = self.original.results.get(ring.value or "")
            slot = TokenType() if result is None else result.type
        properties = {key: to_attribute(value) for key, value in stated.items()}
        if ring.fixed:
            properties["fixed"] = UnitAttr()
        if ring.depth != 1:
            buffer = None
        made = CreateRingOp.create(
            operands=[] if buffer is None else [buffer],
            result_types=[PipelineType(ring.depth, slot)],
            properties=dict(sorted(properties.items(), key=lambda item: item[0] == "lifetime")),
        )
        return self.add(made, f"{ring.name}.ring")

    def _pipe(self, pipe: Pipe, ring: SSAValue) -> SSAValue:
        said: dict[str, Any] = {
            "name": pipe.name,
            "flavour": pipe.flavour,
            "producers": list(pipe.producers),
            "consumers": [
                {"op": c.op, **({"distance": c.distance} if c.distance else {})}
                for c in pipe.consumers
            ],
            "latency": pipe.latency,
        }
        said |= {} if pipe.owner is None else {"owner": pipe.owner}
        said |= {"aliases": list(pipe.aliases)} if pipe.aliases else {}
        said |= {} if pipe.reused else {"reused": False}
        said |= {"trivial": True} if pipe.trivial else {}
        made = CreatePipelineOp.create(
            operands=[ring], result_types=[ring.type], properties={"pipe": to_attribute(said)}
        )
        return self.add(made, pipe.name)

    def _mutex(self, mutex: Mutex) -> SSAValue:
        said: dict[str, Any] = {
            "called": mutex.name,
            "holder": mutex.holder,
            "latency": mutex.latency,
            "waiters": [{"op": w.op, "distance": w.distance} for w in mutex.waiters],
            "excludes": list(mutex.excludes),
        }
        properties = {key: to_attribute(value) for key, value in said.items()}
        made = CreateMutexOp.create(result_types=[MutexType()], properties=properties)
        return self.add(made, mutex.name)

    def _token(self, holder: str, latency: int) -> SSAValue:
        said = {"holder": to_attribute(holder), "latency": to_attribute(latency)}
        made = CreateMutexOp.create(
            result_types=[MutexType()], properties={**said, "private": UnitAttr()}
        )
        return self.add(made, f"Order_{holder}")

    # Iterators --------------------------------------------------------------------------------

    def _iterator(self, iterator: Iterator, ring: SSAValue) -> SSAValue:
        type = ring.type
        assert isinstance(type, PipelineType)
        before = self._before(iterator, type.slot)
        usual = iterator_name(iterator.ring, iterator.op, iterator.side, iterator.distance)
        assert iterator.name == usual, "a program names its iterators after their place"
        made = CreateIteratorOp.create(
            operands=[ring, *before],
            result_types=[IteratorType()],
            properties={
                "op": to_attribute(iterator.op),
                "side": to_attribute(iterator.side),
                "phase": to_attribute(iterator.phase),
            },
        )
        return self.add(made, iterator.name)

    def _before(self, iterator: Iterator, slot: Attribute) -> list[SSAValue]:
        """What the first iterations see, the earliest first; poison where nobody says."""
        if not iterator.distance:
            return []
        known = self._carried(iterator)
        known = [value for value in known if value.type == slot]
        missing = [self.poison(slot) for _ in range(iterator.distance - len(known))]
        return [*missing, *known][: iterator.distance]

    def _carried(self, iterator: Iterator) -> list[SSAValue]:
        ring = self.program.ring_of[iterator.ring]
        if ring.fixed and ring.storage is not None:
            buffer = self.original.buffer_of(ring.storage)
            return [] if buffer is None else [buffer] * iterator.distance
        op = self.program.loop.op(iterator.op)
        issue = next(i for i in issues_of(self.program) if i.op == iterator.op)
        for number, source in enumerate(issue.operands):
            value = self.original.operand(op.name, number)
            if isinstance(source, Through) and source.iterator == iterator.name:
                if source.path.views:
                    value = self.original.operand(source.path.views[-1], 0)
                return self.original.before(value)
        for value in self.original.ops[op.name].operands:
            home = self.original.homes.of(value)
            mine = home is not None and self.original.roots.get(home.root) == ring.storage
            if mine and home is not None and home.distance == iterator.distance:
                return self.original.before(value)
        return []
