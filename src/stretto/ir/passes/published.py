"""A schedule, read back from the attributes `publish.py` writes, with a position on every fault.

    ii on the loop; stage, order and start on every operation: all must be there, once any is
    stage_count, pipeline_depth, generator, machine, bounds, fused: may be left out

What is read is what is written, also where it is illegal: that is the verifier's to say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, IntegerType, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from stretto.ir.diagnostics import Diagnostic
from stretto.ir.passes import publish
from stretto.ir.passes.telling import PassError, Speaker
from stretto.ir.reading import LoopInModule
from stretto.solution import BOUND_NAMES, Placement, ScheduleAnalysis


def published(speaker: Speaker) -> ScheduleAnalysis:
    """The schedule on a loop; PassError with every fault of its attributes."""
    reader = _Reader(speaker)
    analysis = _analysis(reader, speaker.found)
    if reader.faults:
        raise PassError(reader.faults)
    return analysis


def _analysis(reader: _Reader, found: LoopInModule) -> ScheduleAnalysis:
    loop = found.for_op
    ii = reader.integer(loop, publish.II, least=1)
    reader.bounds(loop, None if reader.faults else ii)
    placements: list[Placement] = []
    for op in found.loop.ops:
        stage, order, start = (reader.integer(found.ops[op.name], n) for n in publish.ON_OPS)
        placements.append(Placement(op.name, start, stage, order))
    _strangers(reader, found)
    return ScheduleAnalysis(
        loop=found.loop.name,
        machine=reader.text(loop, publish.MACHINE),
        success=True,
        ii=ii,
        placements=tuple(placements),
        fused=reader.groups(loop, publish.FUSED),
        stage_count=reader.integer(loop, publish.STAGE_COUNT, least=1, default=0),
        pipeline_depth=reader.integer(loop, publish.PIPELINE_DEPTH, least=1, default=0),
        generator=reader.text(loop, publish.GENERATOR),
    )


def _strangers(reader: _Reader, found: LoopInModule) -> None:
    """Attributes nobody knows, and places of operations that take part in no schedule."""
    scheduled = set(found.ops.values())
    for op, name in publish.published_on(found.for_op):
        known = publish.ON_LOOP if op is found.for_op else publish.ON_OPS
        if name not in known:
            allowed = ", ".join((*publish.ON_OPS, *publish.ON_LOOP))
            reader.fail(op, name, f"is no attribute of a schedule; known: {allowed}")
        elif op is not found.for_op and op not in scheduled:
            reader.fail(op, name, f"stands on `{op.name}`, which takes no part in a schedule")


@dataclass
class _Reader:
    """Reads attributes and keeps every fault; a faulty one reads as its least value."""

    speaker: Speaker
    faults: list[Diagnostic] = field(default_factory=list[Diagnostic])

    def fail(self, op: Operation, name: str, message: str) -> None:
        """A fault of an attribute, at it where it is there, else at the operation."""
        self.faults.append(self.speaker.at(op, "error", f"`{name}` {message}", attribute=name))

    def integer(self, op: Operation, name: str, least: int = 0, default: int | None = None) -> int:
        attribute = op.attributes.get(name)
        if attribute is None:
            if default is None:
                self.fail(op, name, f"is missing; expected an integer of at least {least}")
                return least
            return default
        return self._integer(op, name, attribute, least)

    def _integer(
        self, op: Operation, name: str, attribute: Attribute, least: int, what: str = ""
    ) -> int:
        said: object = attribute
        if isa(attribute, IntegerAttr) and attribute.type != IntegerType(1):
            said = attribute.value.data
            if said >= least:
                return said
        self.fail(op, name, f"{what}is {said}; expected an integer of at least {least}")
        return least

    def text(self, op: Operation, name: str) -> str:
        attribute = op.attributes.get(name)
        if attribute is None:
            return ""
        if not isinstance(attribute, StringAttr) or not attribute.data:
            self.fail(op, name, f"is {attribute}; expected a string")
            return ""
        return attribute.data

    def groups(self, op: Operation, name: str) -> tuple[tuple[str, ...], ...]:
        """Lists of names."""
        attribute = op.attributes.get(name)
        if attribute is None:
            return ()
        if isa(attribute, ArrayAttr[ArrayAttr[StringAttr]]):
            return tuple(tuple(member.data for member in group) for group in attribute)
        self.fail(op, name, f'is {attribute}; expected [["a", "b"], ...]')
        return ()

    def bounds(self, op: Operation, ii: int | None) -> None:
        """Bounds, where stated, agree with themselves and with the II, if that is known."""
        attribute = op.attributes.get(publish.BOUNDS)
        if attribute is None:
            return
        names = (*BOUND_NAMES, "mii", "limiter")
        if not isinstance(attribute, DictionaryAttr) or set(attribute.data) != set(names):
            form = ", ".join(names)
            self.fail(op, publish.BOUNDS, f"is {attribute}; expected {{{form}}}")
            return
        before = len(self.faults)
        numbers = {
            name: self._integer(op, publish.BOUNDS, attribute.data[name], 1, f"{name} ")
            for name in (*BOUND_NAMES, "mii")
        }
        if len(self.faults) > before:
            return
        mii = max(numbers[name] for name in BOUND_NAMES)
        limiter = next(name for name in BOUND_NAMES if numbers[name] == mii)
        said = attribute.data["limiter"]
        if numbers["mii"] != mii:
            told = f"mii is {numbers['mii']}; the largest of the four is {mii} ({limiter})"
            self.fail(op, publish.BOUNDS, told)
        elif not isinstance(said, StringAttr) or said.data != limiter:
            self.fail(op, publish.BOUNDS, f"limiter is {said}; the four say {limiter}")
        elif ii is not None and ii < mii:
            self.fail(op, publish.II, f"is {ii}, below the MII {mii} ({limiter} bound)")
