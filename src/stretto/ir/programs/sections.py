"""Streams as text, there and back: guarded steps, the kernel, guarded steps.

    scf.if (trips >= 1) { a } {section = "prologue", step = 0}     step 0, needs 1 iteration
    scf.for %step = last to trips + first { a; b }                 kernel, iterators carried round
    scf.if (trips >= 1) { b } {section = "epilogue", step = 0}     step trips + 0

Neighbours with the same guard share it. Iterators leave a guard as they are after it, or as they
were; values that a later guard reads leave it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from xdsl.dialects.arith import AddiOp, CmpiOp
from xdsl.dialects.scf import ForOp, IfOp, YieldOp
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Block, OpResult, Region, SSAValue

from stretto.ir.attributes import plain
from stretto.ir.dialect.pipelined import ProgramOp
from stretto.ir.dialect.types import IteratorType
from stretto.ir.loops.module import ANY
from stretto.ir.programs.declarations import Writing, to_attributes
from stretto.ir.programs.operands import Sources
from stretto.ir.programs.original import Section, Spot
from stretto.ir.programs.pipe_ops import BundleReader, BundleWriter, Passage
from stretto.materialization.program import Direct, Instruction, Issue, Stream

_SECTION, _STEP = "nv_tile.program.section", "nv_tile.program.step"
"""On the guards of the prologue and the epilogue, and on the kernel."""
_PREDICATE_SGE = 5

_Sequence = tuple[Instruction, ...]


class StreamWriter:
    """Writes the streams of one program."""

    def __init__(self, to: Writing, bundles: BundleWriter) -> None:
        self._to = to
        self._bundles = bundles
        self._guards: dict[int, SSAValue] = {}

    def write(self, block: Block, stream: Stream, iterators: dict[str, SSAValue]) -> None:
        """A whole stream into a block."""
        scope = Spot(block, iterators=dict(iterators))
        self._guarded(scope, stream.prologue, None, "prologue")
        self._kernel(scope, stream)
        self._guarded(scope, stream.epilogue, self._to.trips, "epilogue")

    # The kernel -------------------------------------------------------------------------------

    def _kernel(self, scope: Spot, stream: Stream) -> None:
        used = list(dict.fromkeys(_iterators(stream.kernel)))
        body = Block(arg_types=[self._to.numbers.type, *(IteratorType() for _ in used)])
        body.args[0].name_hint = "step"
        for name, argument in zip(used, body.args[1:], strict=True):
            argument.name_hint = scope.iterators[name].name_hint
        inner = Spot(body, 0, body.args[0], stream.last)
        inner.iterators = dict(zip(used, body.args[1:], strict=True))
        for bundle in _bundles(stream.kernel):
            self._bundles.write(inner, bundle, kernel=True)
        body.add_op(YieldOp(*(inner.iterators[name] for name in used)))
        upper = self._to.trips
        if stream.first:
            upper = scope.add(AddiOp(self._to.trips, self._to.numbers.whole(stream.first)))
        lower, one = self._to.numbers.whole(stream.last), self._to.numbers.whole(1)
        initial = [scope.iterators[name] for name in used]
        kernel = ForOp(lower, upper, one, initial, Region(body))
        kernel.attributes.update(to_attributes({_SECTION: "kernel"}))
        scope.block.add_op(kernel)
        for name, result in zip(used, kernel.results, strict=True):
            result.name_hint = scope.iterators[name].name_hint
            scope.iterators[name] = result

    # Guards -----------------------------------------------------------------------------------

    def _guarded(
        self,
        scope: Spot,
        instructions: Sequence[Instruction],
        base: SSAValue | None,
        section: Section,
    ) -> None:
        for step, group in groupby(instructions, key=lambda i: i.at.step):
            runs = [tuple(run) for _, run in groupby(group, key=lambda i: i.at.needs)]
            made: dict[str, SSAValue] = {}
            for n, run in enumerate(runs):
                later = {name for other in runs[n + 1 :] for name in _taken(other)}
                floor = 0 if base is None else run[0].at.needs
                here = replace(scope, step=step, base=base, floor=floor, made=made)
                self._guard(here, run, later, section)

    def _guard(self, scope: Spot, run: _Sequence, later: set[str], section: Section) -> None:
        then = Block()
        inner = replace(scope, block=then, iterators=dict(scope.iterators), made=dict(scope.made))
        for bundle in _bundles(run):
            self._bundles.write(inner, bundle, kernel=False)
        moved = [n for n, it in inner.iterators.items() if it is not scope.iterators[n]]
        leaving = [n for n in inner.made if n in later and n not in scope.made]
        out = [inner.iterators[n] for n in moved] + [inner.made[n] for n in leaving]
        then.add_op(YieldOp(*out))
        otherwise = self._otherwise(scope, moved, [inner.made[n] for n in leaving])
        made = IfOp(
            self._condition(run[0].at.needs),
            [value.type for value in out],
            Region(then),
            Region(otherwise) if out else None,
            to_attributes({_SECTION: section, _STEP: scope.step}),
        )
        scope.block.add_op(made)
        for value, result in zip(out, made.results, strict=True):
            result.name_hint = value.name_hint
        scope.iterators.update(zip(moved, made.results, strict=False))
        scope.made.update(zip(leaving, made.results[len(moved) :], strict=True))

    def _otherwise(self, scope: Spot, moved: list[str], leaving: list[SSAValue]) -> Block:
        """Iterators stay where they were; of the values nobody will ask."""
        block = Block()
        nothing: list[SSAValue] = []
        for value in leaving:
            poison = PoisonOp(value.type)
            block.add_op(poison)
            nothing.append(poison.result)
        block.add_op(YieldOp(*(scope.iterators[n] for n in moved), *nothing))
        return block

    def _condition(self, needs: int) -> SSAValue:
        if needs not in self._guards:
            made = CmpiOp(self._to.trips, self._to.numbers.whole(needs), "sge")
            made.result.name_hint = f"at_least_{needs}."
            self._to.block.add_op(made)
            self._guards[needs] = made.result
        return self._guards[needs]


def _bundles(instructions: Iterable[Instruction]) -> list[_Sequence]:
    """Instructions by the operation they stand around."""
    return [tuple(bundle) for _, bundle in groupby(instructions, key=lambda i: (i.op, i.at))]


def _iterators(instructions: Iterable[Instruction]) -> Iterable[str]:
    for i in instructions:
        if isinstance(i, Issue):
            yield from (s.iterator for s in (*i.reads, *i.writes) if s.iterator is not None)
        else:
            name: str | None = getattr(i, "iterator", None)
            if name is not None:
                yield name


def _taken(run: Iterable[Instruction]) -> Iterable[str]:
    for i in run:
        if isinstance(i, Issue):
            yield from (s.path.origin for s in i.operands if isinstance(s, Direct))


# The way back -----------------------------------------------------------------------------


def kernels(op: ProgramOp) -> list[ForOp]:
    """The kernels of a program, agent by agent."""
    return [one for one in op.walk() if isinstance(one, ForOp) and _SECTION in one.attributes]


class StreamReader:
    """Reads the stream of one agent from its block."""

    def __init__(self, sources: Sources) -> None:
        self._head = sources.head
        start = {iterator.name: value for value, iterator in self._head.iterators.items()}
        self._bundles = BundleReader(sources, start)
        self._parts: list[Passage] = []
        self._bounds: tuple[int, int] | None = None

    def read(self, block: Block) -> Stream:
        """The whole stream."""
        for op in block.ops:
            if isinstance(op, IfOp) and _SECTION in op.attributes:
                self._guard(op)
            elif isinstance(op, ForOp) and _SECTION in op.attributes:
                self._kernel(op)
        if self._bounds is None:
            raise self._head.refuse(self._head.op, "an agent of the program has no kernel")
        # Operands of the first iterations are those of the kernel, seen before the loop.
        order = sorted(self._parts, key=lambda part: part.section != "kernel")
        made = {id(part): self._bundles.instructions(part) for part in order}
        found: dict[str, list[Instruction]] = {"prologue": [], "kernel": [], "epilogue": []}
        for part in self._parts:
            found[part.section] += made[id(part)]
        return Stream(*self._bounds, *(tuple(section) for section in found.values()))

    # Guards and kernels -----------------------------------------------------------------------

    def _guard(self, op: IfOp) -> None:
        section = plain(op.attributes[_SECTION])
        wanted = "prologue" if self._bounds is None else "epilogue"
        step = plain(op.attributes.get(_STEP, op.attributes[_SECTION]))
        if section != wanted or not isinstance(step, int):
            told = f"section {section}, step {step}; it stands in the {wanted}"
            raise self._head.refuse(op, f"a guard of {told}")
        part = Passage(wanted, step, self._needs(op))
        outer = dict(self._bundles.now)
        self._bundles.walk(op.true_region.block, part)
        self._leave(op, op.true_region.block, outer)
        self._parts.append(part)

    def _needs(self, op: IfOp) -> int:
        made = op.cond.op if isinstance(op.cond, OpResult) else None
        if isinstance(made, CmpiOp) and made.lhs is self._head.trips:
            least = ANY.constant(made.rhs)
            if least is not None and made.predicate.value.data == _PREDICATE_SGE:
                return least
        raise self._head.refuse(op, "a guard that does not ask for a least trip count")

    def _leave(self, op: IfOp, then: Block, outer: dict[str, SSAValue]) -> None:
        """Iterators after a guard: as inside it, or where they were."""
        last = then.last_op
        inner = dict(self._bundles.now)
        self._bundles.now = dict(outer)
        yielded = () if last is None else last.operands
        other = op.false_region.blocks.first
        skipped = () if other is None or other.last_op is None else other.last_op.operands
        for n, value in enumerate(yielded):
            name = self._head.versions.get(value)
            if name is None:
                continue
            if value is not inner[name] or n >= len(skipped) or skipped[n] is not outer[name]:
                raise self._head.refuse(op, f"iterator `{name}` leaves this guard as another")
            self._bundles.stands(name, op.results[n])
        for name, value in inner.items():
            if value is not outer[name] and self._bundles.now[name] is outer[name]:
                raise self._head.refuse(op, f"iterator `{name}` goes on in this guard and is lost")

    def _kernel(self, op: ForOp) -> None:
        if self._bounds is not None:
            raise self._head.refuse(op, "a second kernel of one agent")
        last, first = ANY.constant(op.lb), self._above(op.ub)
        if last is None or first is None or ANY.constant(op.step) != 1:
            raise self._head.refuse(op, "a kernel that does not go from a stage to the trip count")
        self._bounds = (first, last)
        part = Passage("kernel")
        block = op.body.block
        carried: list[str | None] = []
        for outside, argument in zip(op.iter_args, block.args[1:], strict=True):
            name = self._bundles.named(op, outside) if outside in self._head.versions else None
            carried.append(name)
            if name is not None:
                self._bundles.stands(name, argument)
        self._bundles.walk(block, part)
        end = block.last_op
        for n, name in enumerate(carried):
            if name is None:
                continue
            if end is None or end.operands[n] is not self._bundles.now[name]:
                raise self._head.refuse(op, f"iterator `{name}` is not carried round the kernel")
            self._bundles.stands(name, op.results[n])
        self._parts.append(part)

    def _above(self, value: SSAValue) -> int | None:
        """How far an upper bound lies above the trip count."""
        if value is self._head.trips:
            return 0
        made = value.op if isinstance(value, OpResult) else None
        if isinstance(made, AddiOp) and made.lhs is self._head.trips:
            return ANY.constant(made.rhs)
        return None
