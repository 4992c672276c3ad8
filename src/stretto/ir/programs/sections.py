"""Streams as text: guarded steps, the kernel, guarded steps.

    scf.if (trips >= 1) { a of step 0 }                    prologue
    scf.for %step = last to trips + first { a; b }         kernel, iterators carried round
    scf.if (trips >= 1) { b of step trips }                epilogue

Neighbours with the same guard share it. Iterators leave a guard as they are after it, or as they
were; values that a later guard reads leave it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from xdsl.dialects import arith, scf
from xdsl.dialects.ub import PoisonOp
from xdsl.ir import Block, Region, SSAValue

from stretto.ir.attributes import to_attribute
from stretto.ir.dialect.types import IteratorType
from stretto.ir.programs import names
from stretto.ir.programs.bundles import Bundles
from stretto.ir.programs.scope import Numbers, Scope
from stretto.materialize.instructions import Direct, Instruction, Issue, Stream

Run = tuple[Instruction, ...]


@dataclass
class Sections:
    """Writes the streams of one program."""

    bundles: Bundles
    numbers: Numbers
    trips: SSAValue
    head: Block
    """Where conditions stand that all agents share."""

    def __post_init__(self) -> None:
        self._guards: dict[int, SSAValue] = {}

    def write(self, block: Block, stream: Stream, iterators: dict[str, SSAValue]) -> None:
        """A whole stream into a block."""
        scope = Scope(block, iterators=dict(iterators))
        self._guarded(scope, stream.prologue, None, "prologue")
        self._kernel(scope, stream)
        self._guarded(scope, stream.epilogue, self.trips, "epilogue")

    # The kernel -------------------------------------------------------------------------------

    def _kernel(self, scope: Scope, stream: Stream) -> None:
        used = list(dict.fromkeys(_iterators(stream.kernel)))
        body = Block(arg_types=[self.numbers.type, *(IteratorType() for _ in used)])
        body.args[0].name_hint = "step"
        for name, argument in zip(used, body.args[1:], strict=True):
            argument.name_hint = scope.iterators[name].name_hint
        inner = Scope(body, 0, body.args[0], stream.last)
        inner.iterators = dict(zip(used, body.args[1:], strict=True))
        for bundle in bundles_of(stream.kernel):
            self.bundles.write(inner, bundle, kernel=True)
        body.add_op(scf.YieldOp(*(inner.iterators[name] for name in used)))
        upper = self.trips
        if stream.first:
            upper = scope.add(arith.AddiOp(self.trips, self.numbers.whole(stream.first)))
        lower, one = self.numbers.whole(stream.last), self.numbers.whole(1)
        initial = [scope.iterators[name] for name in used]
        kernel = scf.ForOp(lower, upper, one, initial, Region(body))
        kernel.attributes[names.SECTION] = to_attribute("kernel")
        scope.block.add_op(kernel)
        for name, result in zip(used, kernel.results, strict=True):
            result.name_hint = scope.iterators[name].name_hint
            scope.iterators[name] = result

    # Guards -----------------------------------------------------------------------------------

    def _guarded(
        self,
        scope: Scope,
        instructions: Sequence[Instruction],
        base: SSAValue | None,
        section: names.Section,
    ) -> None:
        for step, group in groupby(instructions, key=lambda i: i.at.step):
            runs = [tuple(run) for _, run in groupby(group, key=lambda i: i.at.needs)]
            made: dict[str, SSAValue] = {}
            for n, run in enumerate(runs):
                later = {name for other in runs[n + 1 :] for name in _taken(other)}
                floor = 0 if base is None else run[0].at.needs
                here = replace(scope, step=step, base=base, floor=floor, made=made)
                self._guard(here, run, later, section)

    def _guard(self, scope: Scope, run: Run, later: set[str], section: names.Section) -> None:
        then = Block()
        inner = replace(scope, block=then, iterators=dict(scope.iterators), made=dict(scope.made))
        for bundle in bundles_of(run):
            self.bundles.write(inner, bundle, kernel=False)
        moved = [n for n, it in inner.iterators.items() if it is not scope.iterators[n]]
        leaving = [n for n in inner.made if n in later and n not in scope.made]
        out = [inner.iterators[n] for n in moved] + [inner.made[n] for n in leaving]
        then.add_op(scf.YieldOp(*out))
        otherwise = self._otherwise(scope, moved, [inner.made[n] for n in leaving])
        needs = run[0].at.needs
        made = scf.IfOp(
            self._condition(needs),
            [value.type for value in out],
            Region(then),
            Region(otherwise) if out else None,
            {names.SECTION: to_attribute(section), names.STEP: to_attribute(scope.step)},
        )
        scope.block.add_op(made)
        for value, result in zip(out, made.results, strict=True):
            result.name_hint = value.name_hint
        scope.iterators.update(zip(moved, made.results, strict=False))
        scope.made.update(zip(leaving, made.results[len(moved) :], strict=True))

    def _otherwise(self, scope: Scope, moved: list[str], leaving: list[SSAValue]) -> Block:
        """Iterators stay where they were; of the values nobody will ask."""
        block = Block()
        nothing: list[SSAValue] = []
        for value in leaving:
            poison = PoisonOp(value.type)
            block.add_op(poison)
            nothing.append(poison.result)
        block.add_op(scf.YieldOp(*(scope.iterators[n] for n in moved), *nothing))
        return block

    def _condition(self, needs: int) -> SSAValue:
        if needs not in self._guards:
            made = arith.CmpiOp(self.trips, self.numbers.whole(needs), "sge")
            made.result.name_hint = f"at_least_{needs}."
            self.head.add_op(made)
            self._guards[needs] = made.result
        return self._guards[needs]


def bundles_of(instructions: Iterable[Instruction]) -> list[Run]:
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
