"""Instructions in bodies, as one agent's builder says them one after the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from stretto.program.builder.tracer import Tracer
from stretto.program.instructions import NOWHERE, Instruction, Origin
from stretto.program.traces import Mark
from stretto.program.walk import slots_in


class BodyBuilder:
    """Collects the instructions of one agent, and what they take from the kernel."""

    def __init__(self, tracer: Tracer | None) -> None:
        self.tracer = tracer
        self.used: dict[str, None] = {}
        """What the function takes from the kernel: parameters, descriptors, shared memory."""
        self._bodies: list[list[Instruction]] = [[]]
        self._origin = NOWHERE

    @property
    def body(self) -> tuple[Instruction, ...]:
        """What was built."""
        (body,) = self._bodies
        return tuple(body)

    @property
    def marks(self) -> Mapping[str, Sequence[Mark]]:
        """Where it reads clocks, of each loop."""
        return {} if self.tracer is None else self.tracer.marks

    def clocks(self, read: Callable[[Tracer], list[Instruction]]) -> None:
        """Instructions that read clocks, where they are asked for."""
        if self.tracer is not None:
            self.take("trace")
            for instruction in read(self.tracer):
                self.say(instruction)

    def say(self, instruction: Instruction) -> None:
        """One instruction more; it is of the operation at hand, if it does not say otherwise."""
        if instruction.origin is NOWHERE and self._origin is not NOWHERE:
            instruction = replace(instruction, origin=self._origin)
        self._bodies[-1].append(instruction)

    @contextmanager
    def block(self) -> Generator[list[Instruction]]:
        """What is said inside goes to a body of its own."""
        body: list[Instruction] = []
        self._bodies.append(body)
        yield body
        self._bodies.pop()

    @contextmanager
    def of(self, origin: Origin) -> Generator[None]:
        """What is said inside is of an operation."""
        before, self._origin = self._origin, origin
        yield
        self._origin = before

    @property
    def length(self) -> int:
        """Instructions of the body at hand."""
        return len(self._bodies[-1])

    def open_at(self, place: int) -> None:
        """The instruction at a place of the body at hand is the first of its operation in a step,
        or the next one that is there for more than to be counted."""
        body = self._bodies[-1]
        for n in range(place, len(body)):
            if not body[n].silent:
                body[n] = replace(body[n], opens=True)
                return

    def move_behind(self, tile: str, count: int) -> None:
        """The last instructions of the body at hand go behind the last one that reads a tile."""
        before, last = self._bodies[-1][:-count], self._bodies[-1][-count:]
        readers = [n for n, one in enumerate(before) if tile in slots_in((one,))]
        place = readers[-1] + 1 if readers else len(before)
        self._bodies[-1][:] = [*before[:place], *last, *before[place:]]

    def take(self, name: str) -> str:
        """Something of the kernel's, which is handed to the function."""
        self.used[name] = None
        return name
