"""A schedule on the loop it is of, as attributes: written, read back, taken off.

    %t = nv_tileas.async.tiled_tma_load ... {nv_tile.aws.stage = 0, .order = 0, .start = 0}
    ...
    } {nv_tile.aws.ii = 15, .stage_count = 1, .pipeline_depth = 2, .generator = "cost-based",
       .machine = "blackwell", .bounds = {resource = 15, ..., mii = 15, limiter = "resource"},
       .table = [{cycle = 0, cycles = 8, word = "0x8800", held = {tma = 1, ...}, drawn = {}}, ...],
       .fused = [["read0", "read1"]]}

Members of a fused group also get their name, `stretto.name`. Nothing else of the module changes.

    stage and order on every operation: all must be there, once any is
    order: as ranks in the stage, with gaps, or numbered through all stages
    ii on the loop, start on every operation: may be left out; starts are then found that fit
    stage_count, pipeline_depth, generator, machine, bounds, table, fused: may be left out

What is read is what is written, also where it is illegal: that is the verifier's to say. A fault of
an attribute is told at its position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.scf import ForOp, ParallelOp, WhileOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from stretto.diagnostics import Diagnostic, MlirError
from stretto.document import Cursor, each
from stretto.errors import DocumentError, StrettoError
from stretto.ir.attributes import SCHEDULE, STATED, plain, to_attribute
from stretto.ir.loops import LoopInModule, LoopsOfModule, read_loops
from stretto.ir.parsing import Parsed, parse_module
from stretto.ir.telling import PassError, Speaker
from stretto.loop import Loop
from stretto.machine import Machine, load_machine, machine_beside
from stretto.resources.prepare import prepare
from stretto.solution import BOUND_NAMES, Placement, ScheduleAnalysis, TableRow
from stretto.solution.json import row_to_json, table_row
from stretto.verification import Violation

STAGE, ORDER, START = SCHEDULE + "stage", SCHEDULE + "order", SCHEDULE + "start"
ON_OPS = (STAGE, ORDER, START)
"""What an operation of a scheduled loop has."""

II, STAGE_COUNT, PIPELINE_DEPTH = (
    SCHEDULE + "ii",
    SCHEDULE + "stage_count",
    SCHEDULE + "pipeline_depth",
)
GENERATOR, MACHINE = SCHEDULE + "generator", SCHEDULE + "machine"
BOUNDS, TABLE, FUSED = SCHEDULE + "bounds", SCHEDULE + "table", SCHEDULE + "fused"
ON_LOOP = (II, STAGE_COUNT, PIPELINE_DEPTH, GENERATOR, MACHINE, BOUNDS, TABLE, FUSED)
"""What a scheduled loop has itself. An inner loop is an operation of the outer one as well."""


def publish(for_op: Operation, ops: Mapping[str, Operation], analysis: ScheduleAnalysis) -> None:
    """Write a schedule onto its loop, in the place of any that is there."""
    withdraw(for_op)
    if not analysis.success or analysis.ii is None:
        raise ValueError(f"`{analysis.loop}` has no schedule to publish")
    for name in (name for group in analysis.fused for name in group):
        # Groups go by names, and other tools drop those of values: keep what is named.
        ops[name].attributes.setdefault(STATED + "name", to_attribute(name))
    numbers: dict[int, Attribute] = {}  # few are different, and making one is slow
    for placed in analysis.placements:
        attributes = ops[placed.op].attributes
        for name, number in ((STAGE, placed.stage), (ORDER, placed.order), (START, placed.start)):
            if number not in numbers:
                numbers[number] = to_attribute(number)
            attributes[name] = numbers[number]
    for_op.attributes.update(_of_loop(analysis))


def _of_loop(analysis: ScheduleAnalysis) -> dict[str, Attribute]:
    found: dict[str, object] = {
        II: analysis.ii,
        STAGE_COUNT: analysis.stage_count,
        PIPELINE_DEPTH: analysis.pipeline_depth,
        GENERATOR: analysis.generator,
        MACHINE: analysis.machine,
    }
    bounds = analysis.bounds
    if bounds is not None:
        numbers = {name: bounds[name].bound for name in BOUND_NAMES}
        found[BOUNDS] = {**numbers, "mii": bounds.mii, "limiter": bounds.limiter}
    if analysis.table:
        found[TABLE] = [row_to_json(row) for row in analysis.table]
    if analysis.fused:
        found[FUSED] = [list(group) for group in analysis.fused]
    return {name: to_attribute(value) for name, value in found.items()}


def withdraw(for_op: Operation) -> bool:
    """Take a schedule off its loop; whether there was anything of one."""
    found = False
    for op, name in published_on(for_op):
        del op.attributes[name]
        found = True
    return found


def published_on(for_op: Operation) -> list[tuple[Operation, str]]:
    """Every operation and attribute name by which this loop has a schedule, or part of one."""
    return list(_published_on(for_op))


def _published_on(loop: Operation) -> Iterator[tuple[Operation, str]]:
    yield from ((loop, name) for name in loop.attributes if _belongs(name, ON_LOOP, ON_OPS))
    for op in _inside(loop):
        yield from ((op, name) for name in op.attributes if _belongs(name, ON_OPS, ON_LOOP))


def _inside(op: Operation) -> Iterator[Operation]:
    """What a loop encloses, but not what inner loops do."""
    for region in op.regions:
        for block in region.blocks:
            for inside in block.ops:
                yield inside
                if not isinstance(inside, ForOp | WhileOp | ParallelOp):
                    yield from _inside(inside)


def _belongs(name: str, mine: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """Names nobody knows count as well, so that none is left behind or overlooked."""
    return name in mine or (name.startswith(SCHEDULE) and name not in others)


# The way back -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unstarted:
    """A schedule whose operations have their stage and order, and no start."""

    analysis: ScheduleAnalysis
    """What is written there; its starts are those of the stages and mean nothing."""
    ii: int | None
    """None: not written there either."""


def published(speaker: Speaker) -> ScheduleAnalysis:
    """The schedule on a loop; PassError with every fault of its attributes."""
    written = _written(speaker)
    return _started(speaker, written) if isinstance(written, Unstarted) else written


def _written(speaker: Speaker) -> ScheduleAnalysis | Unstarted:
    """What is there of a schedule; PassError with every fault of its attributes."""
    faults: list[Diagnostic] = []
    reader = _AttributeReader(speaker, faults)
    found = speaker.found
    started = any(START in op.attributes for op in found.ops.values())
    analysis = _analysis(reader, found, started=started)
    if faults:
        raise PassError(faults)
    if started:
        return analysis
    return Unstarted(analysis, analysis.ii if II in found.for_op.attributes else None)


def _started(speaker: Speaker, written: Unstarted, *, trusted: bool = False) -> ScheduleAnalysis:
    """A schedule with starts that fit its places; MlirError at the loop where there are none.

    How deep the pipeline is and what it holds when follow from the starts; without them, what is
    said of it is not asked.
    """
    from stretto.solve.starts import Places, starts_of  # noqa: PLC0415 - most have their starts

    found, said = speaker.found, written.analysis
    places = Places({p.op: (p.stage, p.order) for p in said.placements}, said.fused)
    try:
        ready = prepare(found.loop, found.machine)
        if trusted:
            ready = replace(ready, machine=ready.machine.without_limits)
        schedule = starts_of(ready, places, written.ii)
    except StrettoError as error:
        raise MlirError(speaker.error(error)) from None
    placements = tuple(
        replace(placed, start=schedule.starts[placed.op]) for placed in said.placements
    )
    return replace(said, ii=schedule.ii, placements=placements, pipeline_depth=0, table=())


def _analysis(reader: _AttributeReader, found: LoopInModule, *, started: bool) -> ScheduleAnalysis:
    loop, said = found.for_op, found.for_op.attributes
    ii = reader.number(loop, II, least=1) if started or II in said else 1
    reader.check_bounds(loop, ii if II in said and not reader.faults else None)
    placements: list[Placement] = []
    for op in found.loop.ops:
        stage, order = (reader.number(found.ops[op.name], n) for n in (STAGE, ORDER))
        start = reader.number(found.ops[op.name], START) if started else stage * ii
        placements.append(Placement(op.name, start, stage, order))
    placements = _ranked(placements)
    scheduled = {loop, *found.ops.values()}
    for op, name in published_on(loop):
        if op not in scheduled:
            reader.fail(op, name, f"stands on `{op.name}`, which takes no part in a schedule")
    return ScheduleAnalysis(
        loop=found.loop.name,
        machine=plain(said[MACHINE]) if MACHINE in said else "",
        success=True,
        ii=ii,
        placements=tuple(placements),
        fused=reader.groups(loop),
        stage_count=plain(said[STAGE_COUNT]) if STAGE_COUNT in said else 0,
        pipeline_depth=plain(said[PIPELINE_DEPTH]) if PIPELINE_DEPTH in said else 0,
        generator=plain(said[GENERATOR]) if GENERATOR in said else "",
        table=reader.table(loop),
    )


def _ranked(placements: list[Placement]) -> list[Placement]:
    """Placements whose order is their rank in the stage, however the writer numbered them.

    Numbers may have gaps, or go through all stages. Two alike in a stage are left as they are.
    """
    orders: dict[int, list[int]] = {}
    for placed in placements:
        orders.setdefault(placed.stage, []).append(placed.order)
    if any(len(set(found)) < len(found) for found in orders.values()):
        return placements
    ranks = {
        stage: {order: rank for rank, order in enumerate(sorted(found))}
        for stage, found in orders.items()
    }
    return [replace(placed, order=ranks[placed.stage][placed.order]) for placed in placements]


@dataclass
class _AttributeReader:
    """Reads attributes that `verify_attributes` passed, and keeps every fault that is left."""

    speaker: Speaker
    faults: list[Diagnostic]

    def fail(self, op: Operation, name: str, message: str) -> None:
        """A fault of an attribute, at it where it is there, else at the operation."""
        self.faults.append(self.speaker.at(op, "error", f"`{name}` {message}", attribute=name))

    def number(self, op: Operation, name: str, least: int = 0) -> int:
        """One that must be there; a faulty one reads as its least value."""
        if name in op.attributes:
            return plain(op.attributes[name])
        self.fail(op, name, f"is missing; expected an integer of at least {least}")
        return least

    def groups(self, op: Operation) -> tuple[tuple[str, ...], ...]:
        """Lists of names."""
        attribute = op.attributes.get(FUSED)
        if attribute is None:
            return ()
        if isa(attribute, ArrayAttr[ArrayAttr[StringAttr]]):
            return tuple(tuple(member.data for member in group) for group in attribute)
        self.fail(op, FUSED, f'is {attribute}; expected [["a", "b"], ...]')
        return ()

    def table(self, op: Operation) -> tuple[TableRow, ...]:
        """The reservation table, as JSON has it."""
        if TABLE not in op.attributes:
            return ()
        try:
            return each(table_row)(Cursor("", TABLE, plain(op.attributes[TABLE])))
        except DocumentError as error:
            told = f"{error.message}; {error.hint}" if error.hint else error.message
            message = f"`{error.path}` {told}"
            self.faults.append(self.speaker.at(op, "error", message, attribute=TABLE))
            return ()

    def check_bounds(self, op: Operation, ii: int | None) -> None:
        """Bounds, where stated, agree with themselves and with the II, if that is known."""
        attribute = op.attributes.get(BOUNDS)
        if attribute is None:
            return
        names = (*BOUND_NAMES, "mii", "limiter")
        if not isinstance(attribute, DictionaryAttr) or not (
            set(names) >= set(attribute.data) >= set(names) - {"group"}  # of older modules
        ):
            self.fail(op, BOUNDS, f"is {attribute}; expected {{{', '.join(names)}}}")
            return
        said = {"group": 1} | plain(attribute)
        wrong = [n for n in names[:-1] if type(said[n]) is not int or said[n] < 1]
        for name in wrong:
            told = said[name] if type(said[name]) is int else attribute.data[name]
            self.fail(op, BOUNDS, f"{name} is {told}; expected an integer of at least 1")
        if wrong:
            return
        mii = max(said[name] for name in BOUND_NAMES)
        limiter = next(name for name in BOUND_NAMES if said[name] == mii)
        if said["mii"] != mii:
            told = f"mii is {said['mii']}; the largest of them is {mii} ({limiter})"
            self.fail(op, BOUNDS, told)
        elif said["limiter"] != limiter:
            told = attribute.data["limiter"]
            self.fail(op, BOUNDS, f"limiter is {told}; they say {limiter}")
        elif ii is not None and ii < mii:
            self.fail(op, II, f"is {ii}, below the MII {mii} ({limiter} bound)")


# All loops of a module --------------------------------------------------------------------


@dataclass(frozen=True)
class PublishedLoop:
    """A loop and what is written on it."""

    speaker: Speaker
    """Of the loop as it is on the machine that counts."""
    analysis: ScheduleAnalysis | None
    """None: nothing of a schedule is written there, or it cannot be read."""
    faults: tuple[Diagnostic, ...] = ()

    @property
    def loop(self) -> Loop:
        """The loop, not yet classified."""
        return self.speaker.found.loop

    @property
    def machine(self) -> Machine:
        """The machine asked for, else the one the schedule names, else the loop's own."""
        return self.speaker.found.machine

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What was noted while the loop was read."""
        return self.speaker.found.warnings

    def diagnose(self, violation: Violation) -> Diagnostic:
        """A violation of this schedule, at its place in the text."""
        if self.analysis is None:
            raise ValueError(f"`{self.loop.name}` has no schedule to violate a rule")
        return self.speaker.violation(self.analysis, violation)


def read_schedules(
    file: str, text: str, machine: Machine | str | None = None, *, trusted: bool = False
) -> tuple[PublishedLoop, ...]:
    """The loops of an MLIR text with their schedules; MlirError with every fault.

    A loop that cannot be read is a fault when it has a schedule, and left out when it has none.
    """
    parsed = parse_module(text, file)
    target = load_machine(machine) if isinstance(machine, str) else machine
    loops = read_loops(parsed, target)
    faults = [
        replace(one.reason, severity="error") for one in loops.left_alone if published_on(one.op)
    ]
    found = tuple(published_loops("verify", parsed, loops, target, trusted))
    faults += [fault for one in found for fault in one.faults]
    if faults:
        raise MlirError(faults)
    return found


def published_loops(
    pass_name: str,
    parsed: Parsed,
    loops: LoopsOfModule,
    machine: Machine | None,
    trusted: bool = False,
) -> Iterator[PublishedLoop]:
    """Loop by loop what is written on it; `machine` stands above what schedules name.

    Starts that one on trust has not are sought whatever the machine has room for.
    """
    others = _Others(parsed)
    for found in loops.loops:
        speaker = Speaker(pass_name, parsed, found)
        if not published_on(found.for_op):
            yield PublishedLoop(speaker, None)
            continue
        try:
            written = _written(speaker)
            said = written.analysis if isinstance(written, Unstarted) else written
            if machine is None:
                speaker = replace(speaker, found=others.on(speaker, said.machine))
            analysis = said
            if isinstance(written, Unstarted):
                analysis = _started(speaker, written, trusted=trusted)
        except MlirError as error:
            yield PublishedLoop(speaker, None, error.diagnostics)
        else:
            yield PublishedLoop(speaker, analysis)


@dataclass
class _Others:
    """A module as it reads on other machines: how long an inner loop takes depends on that."""

    parsed: Parsed
    read: dict[str, LoopsOfModule] = field(default_factory=dict[str, LoopsOfModule])

    def on(self, speaker: Speaker, name: str) -> LoopInModule:
        """A loop on the machine its schedule names.

        A machine that has the name already is kept: it may come from a file of another name.
        """
        found = speaker.found
        if name in ("", found.machine.name):
            return found
        if name not in self.read:
            try:
                beside = machine_beside(self.parsed.source.file, name)
                self.read[name] = read_loops(self.parsed, load_machine(beside))
            except StrettoError as error:
                told = speaker.at(found.for_op, "error", str(error), attribute=MACHINE)
                raise MlirError([told]) from None
        for again in self.read[name].loops:
            if again.for_op is found.for_op:
                return again
        why = [one.reason for one in self.read[name].left_alone if one.op is found.for_op]
        raise MlirError([replace(reason, severity="error") for reason in why])
