"""Pipelined loops as nv_tileas text, and back: each construct is written and read in one module.

    scf.for { ops }   ──►   program { trip_count; rings, pipes, mutexes, iterators; streams }
                      ──►   Program, equal to the one that was written

    this module    the whole, what it says of itself, agents
    declarations   rings, pipes, mutexes, iterators
    sections       prologue, kernel, epilogue
    pipe_ops       what stands around one operation
    issues         the operation itself, and what the last of them leave behind
    operands       its operands in their new place
    original       the loop that is replaced, and the place where something is written
    work_tiles     the loop over work tiles around a program

One agent: its stream stands in the program itself. Several: a region each of `agent_switch`.
It is read from its text alone. What a hand has changed is read as it is, wrong or not, as long as
it is a program at all: the simulator runs it and sees.
"""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Region

from stretto.diagnostics import MlirError
from stretto.document import Cursor
from stretto.errors import StrettoError
from stretto.ir.attributes import plain
from stretto.ir.dialect import text_of
from stretto.ir.dialect.pipeline import AgentSwitchOp, YieldOp
from stretto.ir.dialect.pipelined import ProgramOp, TripCountOp
from stretto.ir.loops.writer import write_loop
from stretto.ir.parsing import Parsed
from stretto.ir.programs.declarations import Reading, Writing, to_attributes
from stretto.ir.programs.issues import Outlets, name_of_issued, place_of, row_of
from stretto.ir.programs.operands import Sources
from stretto.ir.programs.original import Counts, Original, UnwritableError
from stretto.ir.programs.pipe_ops import BundleWriter
from stretto.ir.programs.sections import StreamReader, StreamWriter, kernels
from stretto.ir.programs.work_tiles import persistent_around
from stretto.loop import Loop
from stretto.loop.json import SCHEMA, loop_to_json, read_loop
from stretto.materialization import MODES, Agent, Mode, Program
from stretto.materialization.program import Issue, Role

_AGENTS = "nv_tile.program.agents"
"""Name and role of each agent, on the switch between them."""


# Into a module ----------------------------------------------------------------------------


def write_program(program: Program) -> ModuleOp:
    """A module with a program alone; its operations are of any kind, as loops are written."""
    written = write_loop(program.loop)
    try:
        replace_loop(Original(written.for_op, written.ops, program.loop), program)
    except UnwritableError as error:
        raise StrettoError(error.reason, program.loop.name) from None
    return written.module


def replace_loop(original: Original, program: Program) -> ProgramOp:
    """Put a program in the place of its loop; UnwritableError where that cannot be."""
    loop = original.for_op
    made, results = _write(original, program)
    block = loop.parent_block()
    assert block is not None
    block.insert_op_before(made, loop)
    for position, (result, first) in enumerate(zip(loop.results, loop.iter_args, strict=True)):
        # A buffer that stays in place is what it was before the loop.
        value = made.results[results.index(position)] if position in results else first
        if position in results:
            value.name_hint = result.name_hint
        result.replace_all_uses_with(value)
    loop.detach()
    loop.erase()
    return made


def _write(original: Original, program: Program) -> tuple[ProgramOp, list[int]]:
    """The program, and which results of the loop its own stand for."""
    loop, block, numbers = original.for_op, Block(), Counts(original)
    bounds = [loop.lb, loop.ub, loop.step]
    trips = TripCountOp.create(operands=bounds, result_types=[numbers.type])
    trips.result.name_hint = "trips"
    block.add_op(trips)
    to = Writing(program, numbers, block, trips.result)
    to.declare()
    outlets = Outlets(to)
    outlets.open()
    _write_agents(to, StreamWriter(to, BundleWriter(to, outlets)))
    results = outlets.results()
    block.add_op(YieldOp.create(operands=list(results.values())))
    block.insert_ops_before(numbers.top, trips)
    made = ProgramOp.create(
        result_types=[value.type for value in results.values()],
        properties=_write_head(program),
        regions=[Region(block)],
    )
    return made, list(results)


# Out of a module --------------------------------------------------------------------------


def read_programs(parsed: Parsed) -> tuple[Program, ...]:
    """Every program of a module; MlirError where one cannot be read."""
    return tuple(_read(parsed, op) for op in parsed.module.walk() if isinstance(op, ProgramOp))


def _read(parsed: Parsed, op: ProgramOp) -> Program:
    trips = [one for one in op.body.block.ops if isinstance(one, TripCountOp)]
    if len(trips) != 1:
        told = f"a program with {len(trips)} trip counts; 1 is needed"
        raise MlirError([parsed.diagnose(op, "error", told)])
    named = ((one, name_of_issued(one)) for one in op.walk())
    issued = {one: name for one, name in named if name is not None}
    inside = (one for kernel in kernels(op) for one in kernel.walk())
    in_kernel = {issued[one]: one for one in inside if one in issued}
    rows = {name: row_of(one) for name, one in in_kernel.items()}
    head = Reading(parsed, op, _read_loop(parsed, op, rows), trips[0].result, issued)
    head.declare()
    mode = _read_mode(head)
    stages = {name: place_of(head, one)[0] for name, one in in_kernel.items()}
    agents = _read_agents(head, mode, Sources(head, stages))
    issues = (i.op for agent in agents for i in agent.stream.kernel if isinstance(i, Issue))
    program = Program(
        loop=head.loop,
        machine=text_of(op.machine),
        mode=mode,
        ii=op.ii.value.data,
        stage_count=op.stage_count.value.data,
        rings=tuple(head.rings.values()),
        pipes=tuple(head.pipes.values()),
        mutexes=tuple(head.mutexes.values()),
        iterators=tuple(head.iterators.values()),
        agents=agents,
        sequence=tuple(_list(op.sequence) or issues),
        fused=tuple(tuple(group) for group in _list(op.fused)),
        persistent=persistent_around(op),
    )
    flags = 0 if op.flags is None else op.flags.value.data
    if flags != program.flags:
        told = f"its flags are {flags}; its pipes make them {program.flags} (4: trivial)"
        raise MlirError([parsed.diagnose(op, "error", told)])
    return program


def _list(attribute: Attribute | None) -> list[Any]:
    return [] if attribute is None else plain(attribute)


# What the program says of itself ----------------------------------------------------------


def _write_head(program: Program) -> dict[str, Attribute]:
    said: dict[str, Any] = {
        "mode": program.mode,
        "machine": program.machine,
        "ii": program.ii,
        "stage_count": program.stage_count,
        "ops": [op.name for op in program.loop.ops],
    }
    if program.mode == "specialized":
        said["sequence"] = list(program.sequence)
    if program.fused:
        said["fused"] = [list(group) for group in program.fused]
    if program.flags:
        said["flags"] = program.flags
    document = loop_to_json(program.loop)
    said["loop"] = {k: v for k, v in document.items() if k not in ("schema", "ops")}
    return to_attributes(said)


def _read_loop(parsed: Parsed, op: ProgramOp, rows: dict[str, dict[str, Any]]) -> Loop:
    """The loop that a program was made of; its kernels have the rows of its operations."""
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


def _read_mode(head: Reading) -> Mode:
    said = text_of(head.op.mode)
    for mode in MODES:
        if mode == said:
            return mode
    raise head.refuse(head.op, f"mode {said}; known: {', '.join(MODES)}")


# Agents -----------------------------------------------------------------------------------


def _write_agents(to: Writing, streams: StreamWriter) -> None:
    program = to.program
    if program.mode == "unspecialized":
        (agent,) = program.agents
        streams.write(to.block, agent.stream, to.iterators)
        return
    regions: list[Region] = []
    for agent in program.agents:
        mine = {i.name: to.iterators[i.name] for i in program.iterators if i.op in agent.ops}
        block = Block()
        streams.write(block, agent.stream, mine)
        block.add_op(YieldOp.create())
        regions.append(Region(block))
    said = [{"name": agent.name, "role": agent.role} for agent in program.agents]
    to.block.add_op(
        AgentSwitchOp.create(regions=regions, attributes=to_attributes({_AGENTS: said}))
    )


def _read_agents(head: Reading, mode: Mode, sources: Sources) -> tuple[Agent, ...]:
    agents: list[Agent] = []
    for name, role, block in _agents(head, mode):
        stream = StreamReader(sources).read(block)
        mine = {i.op for i in stream.kernel if isinstance(i, Issue)}
        ops = tuple(one.name for one in head.loop.ops if one.name in mine)
        agents.append(Agent(name, role, ops, stream))
    return tuple(agents)


def _agents(head: Reading, mode: Mode) -> list[tuple[str, Role, Block]]:
    block = head.op.body.block
    if mode == "unspecialized":
        return [("all", "all", block)]
    switches = [op for op in block.ops if isinstance(op, AgentSwitchOp)]
    if len(switches) != 1:
        raise head.refuse(head.op, f"{len(switches)} switches between agents; 1 is needed")
    (switch,) = switches
    said = _list(switch.attributes.get(_AGENTS))
    if len(said) != len(switch.regions):
        told = f"{len(said)} agents are named; there are {len(switch.regions)}"
        raise head.refuse(switch, told)
    with head.reading(switch):
        return [
            (one["name"], cast("Role", one["role"]), region.block)
            for one, region in zip(said, switch.regions, strict=True)
        ]
