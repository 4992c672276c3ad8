"""What a program declares at its head: rings, pipes, mutexes and iterators, there and back.

%a_tile = create_ring {storage = "a_tile", ...} : !nv_tileas.pipeline<5, ...>
%Pipe_a_tile = create_pipeline on %a_tile {pipe = {name = "Pipe_a_tile", ...}} : ...
%a_tile.load_a.put = create_iterator %a_tile {op = "load_a", side = "producer", phase = 1} : ...

Who writes knows each by its name, who reads by the SSA value that stands for it. A fault is told at
the operation that has it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from stretto.diagnostics import MlirError
from stretto.ir.attributes import plain, to_attribute
from stretto.ir.dialect import text_of
from stretto.ir.dialect.pipeline import CreateIteratorOp, CreatePipelineOp
from stretto.ir.dialect.pipelined import CreateMutexOp, CreateRingOp, ProgramOp
from stretto.ir.dialect.types import IteratorType, MutexType, PipelineType, TokenType
from stretto.ir.parsing import Parsed
from stretto.ir.programs.original import Counts
from stretto.loop import Loop
from stretto.materialization.program import (
    Consumer,
    Issue,
    Iterator,
    Mutex,
    Payload,
    Pipe,
    Program,
    Ring,
    Side,
    Through,
    Waiter,
)
from stretto.ops.spaces import REGISTERS


@dataclass
class Writing:
    """A program that is being written: what it declares, by name."""

    program: Program
    numbers: Counts
    block: Block
    """The program's own, whose head all agents share."""
    trips: SSAValue
    rings: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    pipes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    mutexes: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])
    tokens: dict[tuple[str, int], SSAValue] = field(default_factory=dict[tuple[str, int], SSAValue])
    """Private mutexes, by holder and latency."""
    iterators: dict[str, SSAValue] = field(default_factory=dict[str, SSAValue])

    def __post_init__(self) -> None:
        self.original = self.numbers.original
        every = (i for agent in self.program.agents for i in agent.stream.kernel)
        self.issues = [i for i in every if isinstance(i, Issue)]
        """What the kernels of all agents issue."""

    def declare(self) -> None:
        """Everything there is, in the program's own order."""
        for ring in self.program.rings:
            self.rings[ring.name] = _write_ring(self, ring)
        for pipe in self.program.pipes:
            self.pipes[pipe.name] = _write_pipe(self, pipe)
        for mutex in self.program.mutexes:
            self.mutexes[mutex.name] = _write_mutex(self, mutex)
        for issue in self.issues:
            for after in issue.after:
                key = (after.op, after.latency)
                if key not in self.tokens:
                    self.tokens[key] = _write_token(self, *key)
        for iterator in self.program.iterators:
            self.iterators[iterator.name] = _write_iterator(self, iterator)

    def add(self, op: Operation, name: str) -> SSAValue:
        """An operation of one result, which shows a name as far as names of values can."""
        self.block.add_op(op)
        plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.$-") else "_" for c in name)
        if SSAValue.is_valid_name(plain):
            op.results[0].name_hint = SSAValue.extract_valid_name(plain)
        return op.results[0]


@dataclass
class Reading:
    """A program that is being read: what it declares, by the values that stand for it."""

    parsed: Parsed
    op: ProgramOp
    loop: Loop
    trips: SSAValue
    issued: dict[Operation, str]
    """The operations that issue, and which of the loop they are."""
    rings: dict[SSAValue, Ring] = field(default_factory=dict[SSAValue, Ring])
    pipes: dict[SSAValue, Pipe] = field(default_factory=dict[SSAValue, Pipe])
    mutexes: dict[SSAValue, Mutex] = field(default_factory=dict[SSAValue, Mutex])
    tokens: dict[SSAValue, tuple[str, int]] = field(default_factory=dict[SSAValue, tuple[str, int]])
    """Private mutexes: holder and latency."""
    iterators: dict[SSAValue, Iterator] = field(default_factory=dict[SSAValue, Iterator])
    versions: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """Every value that stands for an iterator, there or further on."""

    def declare(self) -> None:
        """All declarations; MlirError where one is wrong."""
        for one in self.op.body.block.ops:
            with self.reading(one):
                match one:
                    case CreateRingOp() if one.storage is not None or one.value is not None:
                        self.rings[one.result] = _read_ring(self, one)
                    case CreatePipelineOp():
                        self.pipes[one.result] = _read_pipe(self, one)
                    case CreateMutexOp():
                        _read_mutex(self, one)
                    case CreateIteratorOp():
                        self.iterators[one.result] = _read_iterator(self, one)
                    case _:
                        pass
        self.versions = {value: iterator.name for value, iterator in self.iterators.items()}

    @cached_property
    def ring_of(self) -> dict[str, Ring]:
        """Rings by their storage."""
        return {r.storage: r for r in self.rings.values() if r.storage is not None}

    @cached_property
    def iterator_of(self) -> dict[str, Iterator]:
        """Iterators by name."""
        return {iterator.name: iterator for iterator in self.iterators.values()}

    def refuse(self, op: Operation, message: str) -> MlirError:
        """An error at an operation."""
        return MlirError([self.parsed.diagnose(op, "error", message)])

    @contextmanager
    def reading(self, op: Operation) -> Generator[None]:
        """Tell anything that attributes lack or have wrong at their operation."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            told = f"`{op.name}` is not what a program declares: {type(error).__name__} {error}"
            raise self.refuse(op, told) from None


def to_attributes(said: dict[str, Any]) -> dict[str, Attribute]:
    """What is said, each as an attribute."""
    return {key: to_attribute(value) for key, value in said.items()}


def _number(attribute: Attribute | None) -> int:
    return 0 if attribute is None else int(plain(attribute))


def _depth(value: SSAValue) -> int:
    assert isinstance(value.type, PipelineType)
    return value.type.stages.data


def slot_of(ring: SSAValue) -> Attribute:
    """What a slot of a ring or pipe is."""
    assert isinstance(ring.type, PipelineType)
    return ring.type.slot


# Rings ------------------------------------------------------------------------------------


def _write_ring(to: Writing, ring: Ring) -> SSAValue:
    buffer = None
    if ring.storage is not None:
        said = {"storage": to_attribute(ring.storage)}
        slot = to.original.slot_type(to.program.loop.storage(ring.storage))
        if ring.fixed and ring.depth == 1:
            buffer = to.original.buffer_of(ring.storage)
    else:
        said = {"value": to_attribute(ring.value)}
        result = to.original.results.get(ring.value or "")
        slot = TokenType() if result is None else result.type
    if ring.name != (ring.storage or ring.value):
        said["called"] = to_attribute(ring.name)
    if ring.fixed:
        said["fixed"] = UnitAttr()
    made = CreateRingOp.create(
        operands=[] if buffer is None else [buffer],
        result_types=[PipelineType(ring.depth, slot)],
        properties={**said, "lifetime": to_attribute(ring.lifetime)},
    )
    return to.add(made, f"{ring.name}.ring")


def _read_ring(head: Reading, op: CreateRingOp) -> Ring:
    storage = None if op.storage is None else text_of(op.storage)
    value = None if op.value is None else text_of(op.value)
    if storage is not None:
        kept = head.loop.storage(storage)
        space, size = cast("str", kept.space), kept.bytes
    else:
        type = next(v.type for v in head.loop.values if v.name == value)
        space, size = REGISTERS, type.bytes if type is not None else 0
    own = storage if storage is not None else value
    return Ring(
        name=text_of(op.called) if op.called is not None else own or "",
        depth=_depth(op.result),
        space=space,
        bytes=size,
        storage=storage,
        value=value,
        fixed=op.fixed is not None,
        lifetime=_number(op.lifetime),
    )


# Pipes ------------------------------------------------------------------------------------


def _write_pipe(to: Writing, pipe: Pipe) -> SSAValue:
    said: dict[str, Any] = {
        "name": pipe.name,
        "flavour": pipe.flavour,
        "producers": list(pipe.producers),
        "consumers": [
            {"op": c.op, **({"distance": c.distance} if c.distance else {})} for c in pipe.consumers
        ],
        "latency": pipe.latency,
    }
    said |= {} if pipe.owner is None else {"owner": pipe.owner}
    said |= {"aliases": list(pipe.aliases)} if pipe.aliases else {}
    said |= {} if pipe.reused else {"reused": False}
    said |= {"trivial": True} if pipe.trivial else {}
    ring = to.rings[pipe.ring]
    made = CreatePipelineOp.create(
        operands=[ring], result_types=[ring.type], properties=to_attributes({"pipe": said})
    )
    return to.add(made, pipe.name)


def _read_pipe(head: Reading, op: CreatePipelineOp) -> Pipe:
    if op.ring is None or op.pipe is None:
        raise ValueError("it needs a ring and `pipe`")
    said: dict[str, Any] = plain(op.pipe)
    ring = head.rings[op.ring]
    return Pipe(
        name=said["name"],
        ring=ring.name,
        producers=tuple(said["producers"]),
        consumers=tuple(Consumer(c["op"], c.get("distance", 0)) for c in said["consumers"]),
        payload=_payload(head.loop, ring),
        depth=_depth(op.result),
        flavour=said["flavour"],
        owner=said.get("owner"),
        aliases=tuple(said.get("aliases", ())),
        latency=said["latency"],
        reused=said.get("reused", True),
        trivial=said.get("trivial", False),
    )


def _payload(loop: Loop, ring: Ring) -> Payload:
    """What a slot carries: the first tile that lives in the storage, or the value."""
    name = ring.storage if ring.storage is not None else ring.value or ""
    kept = [v for v in loop.values if name == (v.storage if ring.storage is not None else v.name)]
    type = next((v.type for v in kept if v.type is not None), None)
    return Payload(name, type, ring.bytes, ring.space)


# Mutexes ----------------------------------------------------------------------------------


def _write_mutex(to: Writing, mutex: Mutex) -> SSAValue:
    said = {
        "called": mutex.name,
        "holder": mutex.holder,
        "latency": mutex.latency,
        "waiters": [{"op": w.op, "distance": w.distance} for w in mutex.waiters],
        "excludes": list(mutex.excludes),
    }
    made = CreateMutexOp.create(result_types=[MutexType()], properties=to_attributes(said))
    return to.add(made, mutex.name)


def _write_token(to: Writing, holder: str, latency: int) -> SSAValue:
    said = to_attributes({"holder": holder, "latency": latency})
    said["private"] = UnitAttr()
    made = CreateMutexOp.create(result_types=[MutexType()], properties=said)
    return to.add(made, f"Order_{holder}")


def _read_mutex(head: Reading, op: CreateMutexOp) -> None:
    holder, latency = text_of(op.holder), _number(op.latency)
    head.loop.op(holder)
    if op.private is not None:
        head.tokens[op.result] = (holder, latency)
        return
    waiters: list[dict[str, Any]] = plain(op.waiters) if op.waiters is not None else []
    excludes: list[str] = plain(op.excludes) if op.excludes is not None else []
    head.mutexes[op.result] = Mutex(
        name="" if op.called is None else text_of(op.called),
        holder=holder,
        latency=latency,
        waiters=tuple(Waiter(w["op"], w["distance"]) for w in waiters),
        excludes=tuple(excludes),
    )


# Iterators --------------------------------------------------------------------------------


def _iterator_name(ring: str, op: str, side: str, distance: int) -> str:
    """The text does not say it: a program names its iterators after their place."""
    back = f"-{distance}" if distance else ""
    return f"{ring}.{op}.{'put' if side == 'producer' else 'take'}{back}"


def _write_iterator(to: Writing, iterator: Iterator) -> SSAValue:
    place = (iterator.ring, iterator.op, iterator.side, iterator.distance)
    assert iterator.name == _iterator_name(*place)
    said = {"op": iterator.op, "side": iterator.side, "phase": iterator.phase}
    ring = to.rings[iterator.ring]
    made = CreateIteratorOp.create(
        operands=[ring, *_before(to, iterator, slot_of(ring))],
        result_types=[IteratorType()],
        properties=to_attributes(said),
    )
    return to.add(made, iterator.name)


def _read_iterator(head: Reading, op: CreateIteratorOp) -> Iterator:
    if op.op is None or op.side is None:
        raise ValueError("it needs `op` and `side`")
    ring = head.rings[op.pipeline]
    name, side = text_of(op.op), text_of(op.side)
    head.loop.op(name)
    if side not in ("producer", "consumer"):
        raise ValueError(f"side {side}; producer or consumer is meant")
    distance = len(op.init)
    title = _iterator_name(ring.name, name, side, distance)
    known: Side = "producer" if side == "producer" else "consumer"
    return Iterator(title, ring.name, name, known, distance, _number(op.phase))


def _before(to: Writing, iterator: Iterator, slot: Attribute) -> list[SSAValue]:
    """What the first iterations see, the earliest first; poison where nobody says."""
    if not iterator.distance:
        return []
    known = [value for value in _carried(to, iterator) if value.type == slot]
    missing = [to.numbers.poison(slot) for _ in range(iterator.distance - len(known))]
    return [*missing, *known][: iterator.distance]


def _carried(to: Writing, iterator: Iterator) -> list[SSAValue]:
    original, ring = to.original, to.program.ring_of[iterator.ring]
    if ring.fixed and ring.storage is not None:
        buffer = original.buffer_of(ring.storage)
        return [] if buffer is None else [buffer] * iterator.distance
    issue = next(i for i in to.issues if i.op == iterator.op)
    for number, source in enumerate(issue.operands):
        if isinstance(source, Through) and source.iterator == iterator.name:
            views = source.path.views
            reader = (views[-1], 0) if views else (iterator.op, number)
            return original.before(original.operand(*reader))
    for value in original.ops[iterator.op].operands:
        home = original.homes.of(value)
        mine = home is not None and original.roots.get(home.root) == ring.storage
        if mine and home is not None and home.distance == iterator.distance:
            return original.before(value)
    return []
