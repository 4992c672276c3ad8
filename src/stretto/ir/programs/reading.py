"""Programs, read back from their text alone.

    program { ... }   ──►   Program, equal to the one that was written

What a hand has changed is read as it is, wrong or not, as long as it is a program at all: the
simulator runs it and sees.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

from stretto.ir.attributes import plain
from stretto.ir.diagnostics import MlirError
from stretto.ir.dialect.kinds import text_of
from stretto.ir.dialect.pipeline import AgentSwitchOp
from stretto.ir.dialect.programs import ProgramOp
from stretto.ir.parsing import Parsed
from stretto.ir.programs import names
from stretto.ir.programs.head import Head, issued, kernels, read_head
from stretto.ir.programs.issues import Issues
from stretto.ir.programs.persistent import persistent_around
from stretto.ir.programs.streams import StreamReader
from stretto.materialize import MODES, Agent, Mode, Program
from stretto.materialize.instructions import Issue
from stretto.materialize.types import Role


def read_programs(parsed: Parsed) -> tuple[Program, ...]:
    """Every program of a module; MlirError where one cannot be read."""
    return tuple(_read(parsed, op) for op in parsed.module.walk() if isinstance(op, ProgramOp))


def read_program(parsed: Parsed) -> Program:
    """The one program of a module."""
    found = read_programs(parsed)
    if len(found) != 1:
        told = f"{len(found)} programs in the module; 1 is expected"
        raise MlirError([parsed.diagnose(parsed.module, "error", told)])
    return found[0]


def _read(parsed: Parsed, op: ProgramOp) -> Program:
    head = read_head(parsed, op)
    mode = _mode(head)
    versions: dict[SSAValue, str] = {v: i.name for v, i in head.iterators.items()}
    issues = Issues(head, versions)
    for kernel in kernels(op):
        for one in kernel.walk():
            name = issued(one)
            if name is not None:
                issues.stages[name] = issues.place(one)[0]
    agents: list[Agent] = []
    for name, role, block in _agents(head, mode):
        stream = StreamReader(head, versions, issues).read(block)
        mine = {i.op for i in stream.kernel if isinstance(i, Issue)}
        ops = tuple(one.name for one in head.loop.ops if one.name in mine)
        agents.append(Agent(name, role, ops, stream))
    return Program(
        loop=head.loop,
        machine=text_of(op.machine),
        mode=mode,
        ii=op.ii.value.data,
        stage_count=op.stage_count.value.data,
        rings=tuple(head.rings.values()),
        pipes=tuple(head.pipes.values()),
        mutexes=tuple(head.mutexes.values()),
        iterators=tuple(head.iterators.values()),
        agents=tuple(agents),
        sequence=_sequence(head, agents),
        fused=tuple(tuple(group) for group in _list(op.fused)),
        persistent=persistent_around(op),
    )


def _list(attribute: Any) -> list[Any]:
    return [] if attribute is None else plain(attribute)


def _mode(head: Head) -> Mode:
    said = text_of(head.op.mode)
    for mode in MODES:
        if mode == said:
            return mode
    raise head.refuse(head.op, f"mode {said}; known: {', '.join(MODES)}")


def _agents(head: Head, mode: Mode) -> list[tuple[str, Role, Block]]:
    block = head.op.body.block
    if mode == "unspecialized":
        return [("all", "all", block)]
    switches = [op for op in block.ops if isinstance(op, AgentSwitchOp)]
    if len(switches) != 1:
        raise head.refuse(head.op, f"{len(switches)} switches between agents; 1 is needed")
    said = _list(switches[0].attributes.get(names.AGENTS))
    if len(said) != len(switches[0].regions):
        told = f"{len(said)} agents are named; there are {len(switches[0].regions)}"
        raise head.refuse(switches[0], told)
    with head.reading(switches[0]):
        return [
            (one["name"], cast("Role", one["role"]), region.block)
            for one, region in zip(said, switches[0].regions, strict=True)
        ]


def _sequence(head: Head, agents: list[Agent]) -> tuple[str, ...]:
    said = tuple(_list(head.op.sequence))
    if said:
        return said
    return tuple(i.op for agent in agents for i in agent.stream.kernel if isinstance(i, Issue))


def enclosing_loop(op: Operation) -> ForOp | None:
    """The loop around an operation."""
    at = op.parent_op()
    while at is not None and not isinstance(at, ForOp):
        at = at.parent_op()
    return at
