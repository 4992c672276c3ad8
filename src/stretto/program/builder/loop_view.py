"""One agent's view of a loop: its operations, their places in steps, rings and variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from stretto.kernel import Value
from stretto.kernel.lowering.written import TMA_STORE
from stretto.kernel.tree import kind_of
from stretto.kernel.types import Pointer, Scalar
from stretto.materialization.program import Issue, Path, Stream
from stretto.ops.opcodes import opcode
from stretto.program.builder.agent import AgentBuilder
from stretto.program.builder.plan import Looped
from stretto.program.builder.rings import Ring
from stretto.program.builder.steps import Steps
from stretto.program.errors import EmitError
from stretto.program.expressions import Expression, Iteration, Name
from stretto.program.expressions import Literal as LiteralNumber
from stretto.program.layouts import Layout

STEP = "step"
"""The variable that counts steps."""


@dataclass(frozen=True)
class Flight:
    """A product that is not waited for yet."""

    op: str
    variable: str
    keep: tuple[str, ...] = ()
    """Registers it still reads."""
    outside: str = ""
    """A left factor that no step changes, if it has such a one and was issued behind no other."""
    age: int = 0
    """Steps since it was issued."""


@dataclass
class Way:
    """How a path through the loop counts: by steps of the kernel, or by iterations."""

    stages: dict[str, int]
    """Of every operation; 0 where iterations follow one another."""
    step: str = STEP
    """The variable that counts."""
    ahead: int | None = None
    """By how much steps are ahead of it, behind the kernel's."""
    at: int | None = None
    """The step, where it is a number."""
    order: Sequence[Issue] = ()
    """The operations of a step, in order."""
    base: str = ""
    """The iteration that the number counts from, where that is not the first."""
    pending: list[Flight] = field(default_factory=list[Flight])
    defined: set[str] = field(default_factory=set[str])
    """Variables of earlier steps that there are."""

    def iteration(self, stage: int) -> Iteration:
        """The iteration that a stage works on."""
        if self.at is not None:
            return Iteration(self.base, self.at - stage)
        return Iteration(self.step, self.ahead, stage)


class LoopView:
    """What is asked of one agent's part of a loop while it is built."""

    _steps: Steps
    _issues: Sequence[Issue]
    """Its operations, as a step has them."""
    _mine: set[str]
    _issue_of: dict[str, Issue]
    _stage: Mapping[str, int]
    _lower: Expression
    _by: Expression

    def __init__(self, agent: AgentBuilder, loop: Looped) -> None:
        self._a = agent
        self._loop = loop
        self._wiring = loop.wiring
        self._program = loop.program
        self._body = loop.operation.regions[0]
        name = agent.worker.name if len(agent.plan.workers) > 1 else loop.program.agents[0].name
        self._stream: Stream | None = next(
            (a.stream for a in loop.program.agents if a.name == name), None
        )
        self._variables: dict[str, str] = {}
        self._factors: dict[tuple[Value, Layout], Name] = {}
        """Left factors from outside, as products take them."""
        self._counter_name = self._counted()
        self._marked = False
        self._once = len(agent.plan.workers) == 1 and not agent.inside
        """Whether it runs once, in one warpgroup, whose own loads clocks would hold up."""

    def _counted(self) -> str:
        """The variable that counts steps: one of each type, which a branch must not change."""
        types = [one.operands[1].type for one in self._a.plan.loops]
        mine = self._loop.operation.operands[1].type
        return STEP if types[0] == mine else f"{STEP}_{mine}"

    @property
    def _number(self) -> int:
        return list(self._a.plan.loops).index(self._loop.operation)

    def _mark(self, what: Literal["before", "behind"], i: Issue, thing: str) -> None:
        """A clock, where marks are asked for."""
        if self._marked and self._a.tracer is not None:
            for instruction in self._a.tracer.mark(str(self._number), what, i.op, thing):
                self._a.say(instruction)

    def _awaited(self, i: Issue) -> str:
        """The product that an operation waits for."""
        operation = self._wiring.operations[i.op]
        return self._wiring.made[operation.operands[0]][0]

    # Values --------------------------------------------------------------------------------------

    def _inside(self, value: Value) -> bool:
        return (
            value in self._wiring.made
            or value in self._body.arguments
            or any(value in op.results for op in self._body.operations)
        )

    def _constant(self, value: Value) -> LiteralNumber | None:
        made = self._a.plan.maker.get(value)
        if made is not None and kind_of(made) == "arith.constant":
            return LiteralNumber(made.attributes["value"], value.type)
        return None

    def _pure(self, op: str) -> bool:
        operation = self._wiring.operations[op]
        types = [result.type for result in operation.results]
        if not types or any(not isinstance(type, Scalar | Pointer) for type in types):
            return False
        if (
            not operation.name.startswith(("arith.", "math.", "libdevice."))
            and kind_of(operation) != "offset"
        ):
            return False
        for value in operation.operands:
            if value is self._body.arguments[0] or not self._inside(value):
                continue
            made = self._wiring.made.get(value)
            if made is None:
                constant = self._constant(value)
                if constant is None:
                    return False
            elif not self._pure(made[0]):
                return False
        return True

    def _is_scalar(self, name: str) -> bool:
        """A number that follows from the iteration alone: computed where it is used."""
        maker = self._program.loop.producers.get(name)
        return maker is not None and self._pure(maker)

    def _below(self, way: Way, i: Issue, path: Path) -> tuple[Way, Issue] | None:
        """A view that an operation reads, as of the reader's iteration; None: it reads no view.

        Views stand where they are read: on which side of a step's beginning the schedule has one
        says nothing.
        """
        maker = self._program.loop.producers.get(path.origin)
        if maker is None or self._pure(maker):
            return None
        if not opcode(kind_of(self._wiring.operations[maker])).view:
            return None
        stages = {**way.stages, maker: way.stages[i.op] + path.distance}
        return replace(way, stages=stages), self._issue_of[maker]

    def _steps_back(self, way: Way, i: Issue, path: Path) -> int:
        maker = self._program.loop.producers.get(path.origin)
        if maker is None or maker not in way.stages:
            return 0
        return way.stages[i.op] + path.distance - way.stages[maker]

    def _variable(self, value: Value) -> str:
        op, number = self._wiring.made[value]
        return self._variable_named(self._program.loop.op(op).results[number])

    def _variable_named(self, name: str) -> str:
        if name not in self._variables:
            self._variables[name] = self._a.names.give(name)
        return self._variables[name]

    # Rings ---------------------------------------------------------------------------------------

    def _ring(self, storage: str) -> Ring | None:
        return self._a.plan.rings.get((self._loop.operation, storage))

    def _touched(self, i: Issue) -> list[tuple[Ring, bool]]:
        """The rings that an operation reads or writes; whether it reads."""
        found: list[tuple[Ring, bool]] = []
        for accesses, reads in ((i.reads, True), (i.writes, False)):
            for access in accesses:
                ring = self._ring(access.storage)
                if ring is not None:
                    if access.distance:
                        raise EmitError(f"`{i.op}` reads ring `{ring.name}` of an iteration before")
                    found.append((ring, reads))
        return found

    def _first_and_last(self, ring: Ring) -> tuple[str, str]:
        """Of the agent's readers of a ring: who comes first, and who is done last."""
        readers = [i.op for i in self._issues if (ring, True) in self._touched(i)]
        starts = self._program.starts
        return min(readers, key=lambda op: starts[op]), max(readers, key=lambda op: starts[op])

    def _stored_from(self, ring: Ring) -> bool:
        """Whether the agent has TMA copy slots of a ring out."""
        stores = (j for j in self._issues if kind_of(self._wiring.operations[j.op]) == TMA_STORE)
        return any((ring, True) in self._touched(j) for j in stores)
