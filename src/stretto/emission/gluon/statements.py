"""Instructions as Gluon writes them: one row a kind.

Wait(Barrier("k_tile_full", "k_tile_slot"), Name("k_tile_phase"))
    mbarrier.wait(k_tile_full.index(k_tile_slot), k_tile_phase)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stretto.emission.gluon.atomics import atomic
from stretto.emission.gluon.expressions import dtype
from stretto.emission.gluon.spelling import barrier, counted, slot, spelled
from stretto.emission.gluon.text import Lines
from stretto.kernel.types import Scalar
from stretto.program.expressions import Expression, Iteration, Literal, Slot
from stretto.program.instructions import (
    Advance,
    Arrive,
    Assign,
    Atomic,
    Commit,
    CommitGroup,
    CopyIn,
    CopyOut,
    Expect,
    Fence,
    Flip,
    For,
    If,
    Instruction,
    Load,
    NamedArrive,
    NamedSync,
    Pipelined,
    Print,
    Product,
    ProductInit,
    Put,
    Read,
    ReadClock,
    Remark,
    Settle,
    Step,
    Store,
    StoreWait,
    TensorProduct,
    ThreadBarrier,
    ThreadCopy,
    TraceBegin,
    TraceEnd,
    TraceMark,
    TraceSteps,
    Wait,
    WaitGroup,
    While,
)
from stretto.program.traces import BLOCKS, MARKS, RECORD, STEPS, size


def write(lines: Lines, body: Iterable[Instruction]) -> None:
    """Instructions, line by line; a line says where the schedule has its operation."""
    for instruction in body:
        begins = len(lines.lines)
        _write(lines, instruction)
        at = instruction.origin.at
        if instruction.opens and at is not None:
            lines.lines[begins] += f"  # stage {at[0]}, cycle {at[1]}"


def _write(lines: Lines, instruction: Instruction) -> None:
    match instruction:
        case For():
            with lines.block(_for(instruction)):
                write(lines, instruction.body)
        case While():
            with lines.block(f"while {instruction.condition}:"):
                write(lines, instruction.body)
        case If():
            with lines.block(f"if {spelled(instruction.condition)}:"):
                write(lines, instruction.body)
            if instruction.otherwise is not None:
                with lines.block("else:"):
                    write(lines, instruction.otherwise)
        case Step() | Pipelined():
            write(lines, instruction.body)
        case _:
            for line in LINES[type(instruction)](instruction):
                lines.say(line)


def _for(loop: For) -> str:
    bounds = [spelled(one) for one in (loop.lower, loop.upper, loop.step) if one is not None]
    return f"for {loop.variable} in range({', '.join(bounds)}):"


def _listed(values: Sequence[Expression]) -> str:
    return ", ".join(map(spelled, values))


def _factor(value: Expression | Slot) -> str:
    return slot(value) if isinstance(value, Slot) else spelled(value)


_NOT_INFERRED = [Scalar(element) for element in ("i8", "i16", "i64", "f16", "bf16", "f64")]
"""Types of numbers that Triton does not take a bare number for, which is `i1`, `i32` or `f32`."""


def _assign(one: Assign) -> list[str]:
    return [f"{', '.join(one.targets)} = {', '.join(map(_assigned, one.values))}"]


def _assigned(value: Expression) -> str:
    """What a variable becomes: a number has the type that the variable has throughout."""
    text = spelled(value)
    if isinstance(value, Literal) and value.type in _NOT_INFERRED:
        return f"gl.to_tensor({text}).to({dtype(value.type)})"
    return text


def _advance(one: Advance) -> list[str]:
    return [f"{one.slot}, {one.phase} = next_slot({one.slot}, {one.phase}, {one.depth})"]


def _copy_in(one: CopyIn) -> list[str]:
    told = f"[{_listed(one.coordinates)}], {barrier(one.barrier)}, {slot(one.target)}"
    return [f"tma_load({one.descriptor}, {told})"]


def _copy_out(one: CopyOut) -> list[str]:
    return [f"tma_store({one.descriptor}, [{_listed(one.coordinates)}], {slot(one.source)})"]


def _thread_copy(one: ThreadCopy) -> list[str]:
    return [f"async_copy.async_copy_global_to_shared({slot(one.target)}, {_listed(one.operands)})"]


def _read(one: Read) -> list[str]:
    text = f"{slot(one.source)}.load({one.layout})"
    if one.added is not None:
        text = f"gl.where({spelled(one.added)} > 0, {text}, 0.0)"
    return [f"{one.target} = {text}"]


def _atomic(one: Atomic) -> list[str]:
    text = atomic(one.operation, [spelled(value) for value in one.operands])
    if one.home is not None:
        text = f"gl.convert_layout({text}, {one.home})"
    return [text if one.target is None else f"{one.target} = {text}"]


def _product(one: Product) -> list[str]:
    total = spelled(one.total) + ("" if one.adds else ", use_acc=False")
    told = f"{_factor(one.left)}, {slot(one.right)}, {total}"
    later = ", is_async=True" if one.asynchronous else ""
    return [f"{one.target} = warpgroup_mma({told}{later})"]


def _settle(one: Settle) -> list[str]:
    if not one.names:
        return []
    names = ", ".join(kept.name for kept in one.names)
    return [f"{names} = warpgroup_mma_wait({one.left}, deps=({names},))"]


def _tensor_product(one: TensorProduct) -> list[str]:
    told = ", ".join(map(slot, (one.left, one.right, one.total)))
    if isinstance(one.adds, Iteration):
        told += f", use_acc={counted(one.adds)} > {one.adds.behind}"
    elif not one.adds:
        told += ", use_acc=False"
    return [f"tcgen05_mma({told})"]


def _trace_begin(one: TraceBegin) -> list[str]:
    each = size("marks" if one.marks else "loops")
    found = [
        f"trace_at = trace + (block() * {one.agents} + {one.agent}) * {each}",
        "gl.store(trace_at, clock())",
        "gl.store(trace_at + 2, nanoseconds())",
    ]
    return [*found, f"trace_on = block() < {BLOCKS}"] if one.marks else found


def _trace_end(_: TraceEnd) -> list[str]:
    return ["gl.store(trace_at + 1, clock())", "gl.store(trace_at + 3, nanoseconds())"]


def _trace_steps(one: TraceSteps) -> list[str]:
    n = 4 + 2 * one.loop
    added = {n: "trace_out - trace_in", n + 1: spelled(one.steps)}
    if one.once:
        return [f"gl.store(trace_at + {at}, {what})" for at, what in added.items()]
    return [
        f"gl.store(trace_at + {at}, gl.load(trace_at + {at}) + ({what}))"
        for at, what in added.items()
    ]


def _trace_mark(one: TraceMark) -> list[str]:
    at = f"{RECORD} + trace_step * {MARKS} + {one.number}"
    return [f"gl.store(trace_at + ({at}), clock(), mask=trace_on & (trace_step < {STEPS}))"]


LINES: dict[type[Any], Callable[[Any], list[str]]] = {
    Assign: _assign,
    Advance: _advance,
    Flip: lambda one: [f"{one.phase} ^= 1"],
    Wait: lambda one: [f"mbarrier.wait({barrier(one.barrier)}, {spelled(one.phase)})"],
    Arrive: lambda one: [f"mbarrier.arrive({barrier(one.barrier)}, count=1)"],
    Expect: lambda one: [f"mbarrier.expect({barrier(one.barrier)}, {one.bytes})"],
    Commit: lambda one: [f"tcgen05_commit({barrier(one.barrier)})"],
    NamedSync: lambda one: [f"sync_{one.barrier}()"],
    NamedArrive: lambda one: [f"arrive_{one.barrier}()"],
    CopyIn: _copy_in,
    CopyOut: _copy_out,
    StoreWait: lambda one: [f"tma.store_wait({one.left})"],
    ThreadCopy: _thread_copy,
    CommitGroup: lambda _: ["async_copy.commit_group()"],
    WaitGroup: lambda one: [f"async_copy.wait_group({one.left})"],
    Fence: lambda _: ["fence_async_shared()"],
    Read: _read,
    Put: lambda one: [f"{slot(one.target)}.store({spelled(one.value)})"],
    Load: lambda one: [f"{one.target} = gl.load({_listed(one.operands)})"],
    Store: lambda one: [f"gl.store({_listed(one.operands)})"],
    Atomic: _atomic,
    Product: _product,
    Settle: _settle,
    ProductInit: lambda one: [f"{one.target} = warpgroup_mma_init({one.target})"],
    TensorProduct: _tensor_product,
    Print: lambda v: [f"gl.device_print({', '.join([repr(v.prefix), *map(spelled, v.values)])})"],
    ThreadBarrier: lambda _: ["gl.thread_barrier()"],
    TraceBegin: _trace_begin,
    TraceEnd: _trace_end,
    ReadClock: lambda one: [f"{one.target} = clock()"],
    TraceSteps: _trace_steps,
    TraceMark: _trace_mark,
    Remark: lambda one: [f"# {one.text}"],
}
"""The lines of each kind."""
