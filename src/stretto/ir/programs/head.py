"""The head of a program, read back: its loop, rings, pipes, mutexes and iterators.

Each is known by the SSA value that stands for it, so that what uses it can be looked up. A fault
is told at the operation that has it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.scf import ForOp
from xdsl.ir import Operation, SSAValue

from stretto.document import Cursor
from stretto.errors import StrettoError
from stretto.ir.attributes import op_row, plain
from stretto.ir.diagnostics import MlirError
from stretto.ir.dialect.kinds import kind_of, text_of
from stretto.ir.dialect.pipeline import CreateIteratorOp, CreatePipelineOp
from stretto.ir.dialect.programs import CreateMutexOp, CreateRingOp, ProgramOp, TripCountOp
from stretto.ir.dialect.types import PipelineType
from stretto.ir.parsing import Parsed
from stretto.ir.programs import names
from stretto.loop import Loop
from stretto.loop.json import SCHEMA, read_loop
from stretto.materialize.types import (
    Consumer,
    Iterator,
    Mutex,
    Payload,
    Pipe,
    Ring,
    Side,
    Waiter,
)
from stretto.vocabulary.spaces import REGISTERS


@dataclass
class Head:
    """What a program declares."""

    parsed: Parsed
    op: ProgramOp
    loop: Loop
    trips: SSAValue
    rings: dict[SSAValue, Ring] = field(default_factory=dict[SSAValue, Ring])
    pipes: dict[SSAValue, Pipe] = field(default_factory=dict[SSAValue, Pipe])
    mutexes: dict[SSAValue, Mutex] = field(default_factory=dict[SSAValue, Mutex])
    tokens: dict[SSAValue, tuple[str, int]] = field(default_factory=dict[SSAValue, tuple[str, int]])
    """Private mutexes: holder and latency."""
    iterators: dict[SSAValue, Iterator] = field(default_factory=dict[SSAValue, Iterator])

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


def read_head(parsed: Parsed, op: ProgramOp) -> Head:
    """All declarations of a program; MlirError where one is wrong."""
    trips = [one for one in op.body.block.ops if isinstance(one, TripCountOp)]
    if len(trips) != 1:
        told = f"a program with {len(trips)} trip counts; 1 is needed"
        raise MlirError([parsed.diagnose(op, "error", told)])
    head = Head(parsed, op, _loop(parsed, op), trips[0].result)
    for one in op.body.block.ops:
        with head.reading(one):
            match one:
                case CreateRingOp():
                    if one.storage is not None or one.value is not None:
                        head.rings[one.result] = _ring(head, one)
                case CreatePipelineOp():
                    head.pipes[one.result] = _pipe(head, one)
                case CreateMutexOp():
                    _mutex(head, one)
                case CreateIteratorOp():
                    head.iterators[one.result] = _iterator(head, one)
                case _:
                    pass
    return head


def issued(op: Operation) -> str | None:
    """The name of an operation that a program issues; None for anything else."""
    if names.STAGE not in op.attributes or names.CYCLE not in op.attributes:
        return None
    return cast("str", op_row(op)[0]["name"])


def kernels(op: ProgramOp) -> list[ForOp]:
    """The kernels of a program, agent by agent."""
    return [one for one in op.walk() if isinstance(one, ForOp) and names.SECTION in one.attributes]


def _loop(parsed: Parsed, op: ProgramOp) -> Loop:
    rows: dict[str, dict[str, Any]] = {}
    for kernel in kernels(op):
        for one in kernel.walk():
            name = issued(one)
            if name is not None:
                rows[name] = {**op_row(one)[0], "kind": kind_of(one)}
    order: list[Any] = plain(op.ops)
    missing = [name for name in order if name not in rows]
    if missing or len(order) != len(rows):
        who = missing or [name for name in rows if name not in order]
        told = f"`{who[0]}` is issued by no kernel" if missing else f"`{who[0]}` is no operation"
        raise MlirError([parsed.diagnose(op, "error", f"{told} of the program")])
    document = {"schema": SCHEMA, **plain(op.loop), "ops": [rows[name] for name in order]}
    try:
        return read_loop(Cursor("", "$", document))
    except StrettoError as error:
        told = f"the loop of the program cannot be read: {error}"
        raise MlirError([parsed.diagnose(op, "error", told)]) from None


def _number(attribute: Any, default: int = 0) -> int:
    return default if attribute is None else int(plain(attribute))


def _depth(value: SSAValue) -> int:
    assert isinstance(value.type, PipelineType)
    return value.type.stages.data


def _ring(head: Head, op: CreateRingOp) -> Ring:
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


def _pipe(head: Head, op: CreatePipelineOp) -> Pipe:
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


def _mutex(head: Head, op: CreateMutexOp) -> None:
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


def _iterator(head: Head, op: CreateIteratorOp) -> Iterator:
    if op.op is None or op.side is None:
        raise ValueError("it needs `op` and `side`")
    ring = head.rings[op.pipeline]
    name, side = text_of(op.op), text_of(op.side)
    head.loop.op(name)
    if side not in ("producer", "consumer"):
        raise ValueError(f"side {side}; producer or consumer is meant")
    distance = len(op.init)
    title = names.iterator_name(ring.name, name, side, distance)
    known: Side = "producer" if side == "producer" else "consumer"
    return Iterator(title, ring.name, name, known, distance, _number(op.phase))
