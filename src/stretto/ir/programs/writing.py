"""A program as nv_tileas text, in the place of the loop it was made of.

    scf.for { ops }   ──►   program { trip_count; rings, pipes, mutexes, iterators; streams }

One agent: its stream stands in the program itself. Several: a region each of `agent_switch`.
`reading.py` is the way back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, Region, SSAValue

from stretto.errors import StrettoError
from stretto.ir.attributes import to_attribute
from stretto.ir.dialect.pipeline import AgentSwitchOp, YieldOp
from stretto.ir.dialect.programs import ProgramOp, TripCountOp
from stretto.ir.programs import names
from stretto.ir.programs.bundles import Bundles, needed_values
from stretto.ir.programs.declaring import Declared, Declaring
from stretto.ir.programs.operands import Operands
from stretto.ir.programs.original import Original, UnwritableError
from stretto.ir.programs.outlets import Outlets
from stretto.ir.programs.scope import Numbers, Scope
from stretto.ir.programs.sections import Sections
from stretto.ir.writing import write_loop, written_ops
from stretto.loop.json import loop_to_json
from stretto.materialize import Program


def write_program(program: Program) -> ModuleOp:
    """A module with a program alone; its operations are of any kind, as loops are written."""
    module = write_loop(program.loop)
    try:
        replace_loop(*written_ops(module, program.loop.name), program)
    except UnwritableError as error:
        raise StrettoError(f"{program.loop.name}: {error.reason}") from None
    return module


def replace_loop(loop: ForOp, ops: Mapping[str, Operation], program: Program) -> ProgramOp:
    """Put a program in the place of its loop; UnwritableError where that cannot be.

    `ops` are the operations of the loop in the text, by name.
    """
    original = Original(loop, ops, program.loop)
    original.require_plain()
    made, results = _Writer(original, program).write()
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


class _Writer:
    def __init__(self, original: Original, program: Program) -> None:
        self._original = original
        self._program = program
        self._block = Block()
        self._numbers = Numbers(original)
        self._outlets = Outlets(original, self._numbers)

    def write(self) -> tuple[ProgramOp, list[int]]:
        """The program, and which results of the loop its own stand for."""
        loop: ForOp = self._original.for_op
        trips = TripCountOp.create(
            operands=[loop.lb, loop.ub, loop.step], result_types=[self._numbers.type]
        )
        trips.result.name_hint = "trips"
        self._block.add_op(trips)
        declaring = Declaring(self._program, self._original, self._block, self._numbers.poison)
        declared = declaring.declare()
        self._outlets.open(self._block)
        self._streams(declared, trips.result)
        results = self._outlets.results(Scope(self._block), trips.result, declared.rings)
        self._block.add_op(YieldOp.create(operands=list(results.values())))
        first = self._block.first_op
        assert first is not None
        self._block.insert_ops_before(self._numbers.top, first)
        made = ProgramOp.create(
            result_types=[value.type for value in results.values()],
            properties={key: to_attribute(value) for key, value in self._stated().items()},
            regions=[Region(self._block)],
        )
        return made, list(results)

    def _streams(self, declared: Declared, trips: SSAValue) -> None:
        program = self._program
        operands = Operands(program, self._original, declared, self._numbers)
        rows = {row["name"]: row for row in loop_to_json(program.loop)["ops"]}
        needed = needed_values(program) | self._outlets.values()
        bundles = Bundles(program, self._original, declared, operands, self._outlets, rows, needed)
        sections = Sections(bundles, self._numbers, trips, self._block)
        if program.mode == "unspecialized":
            (agent,) = program.agents
            sections.write(self._block, agent.stream, declared.iterators)
            return
        regions: list[Region] = []
        for agent in program.agents:
            mine = {
                iterator.name: declared.iterators[iterator.name]
                for iterator in program.iterators
                if iterator.op in agent.ops
            }
            block = Block()
            sections.write(block, agent.stream, mine)
            block.add_op(YieldOp.create())
            regions.append(Region(block))
        agents = [{"name": agent.name, "role": agent.role} for agent in program.agents]
        switch = AgentSwitchOp.create(
            regions=regions, attributes={names.AGENTS: to_attribute(agents)}
        )
        self._block.add_op(switch)

    def _stated(self) -> dict[str, Any]:
        program = self._program
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
        document = loop_to_json(program.loop)
        said["loop"] = {k: v for k, v in document.items() if k not in ("schema", "ops")}
        return said
