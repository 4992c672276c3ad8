"""A loop as a modulo problem of CIRCT's, in the form that its newest tools print.

    Prepared  ──►  ssp.instance @name of "ModuloProblem" { library, resource, graph }

A dependence there has the latency of the operation it comes from. An operator has the smallest that
anybody sees of its operation; a dependence that asks for more goes through an operation of its own,
`mma.after`, that holds nothing and has the rest for its latency. So the problem stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from stretto.errors import listed
from stretto.frontends.flattening import FlatLoop, FlatOp, flatten
from stretto.resources.prepare import Prepared

_PLAIN = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SspText:
    """A problem, what it cannot say, and what is worth knowing of how it says the rest."""

    text: str
    losses: tuple[str, ...]
    notes: tuple[str, ...]


def write_ssp(ready: Prepared) -> SspText:
    """The problem of a loop."""
    flat = flatten(ready)
    writer = _Writer(flat)
    graph = list(writer.graph())
    notes: list[str] = []
    if writer.waits:
        told = f"{len(writer.waits)} operations that only wait stand for dependences that take"
        notes.append(f"{told} longer than the operation they come from: {listed(writer.waits)}")
    lines = [f'ssp.instance {_symbol(flat.name)} of "ModuloProblem" {{', "  library {"]
    lines += [
        f"    operator_type {_symbol(name)} [latency<{latency}>]"
        for (_, latency), name in writer.operators.items()
    ]
    lines += ["  }", "  resource {", *writer.resources(), "  }", "  graph {", *graph, "  }", "}"]
    return SspText("\n".join(lines) + "\n", flat.losses, tuple(notes))


@dataclass(slots=True)
class _Writer:
    """A graph in the making, and the operators that it asks for."""

    flat: FlatLoop
    operators: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    waits: list[str] = field(default_factory=list[str])

    def resources(self) -> Iterator[str]:
        """Slots that are limited."""
        for slot, limit in self.flat.limits.items():
            if limit is not None:
                held = self.flat.held[slot]
                more = f", ii<{held}>" if held > 1 else ""
                yield f"    resource_type {_symbol(slot)} [limit<{limit}>{more}]"

    def graph(self) -> Iterator[str]:
        """The operations, in program order; each after those that only wait for others."""
        seen = self.flat.earliest()
        waiting = self._waiting(seen)
        number = {op.name: f"%{i}" for i, op in enumerate(self.flat.ops)}
        written: set[str] = set()
        for op in self.flat.ops:
            into = [edge for edge in self.flat.edges if edge.dst == op.name]
            sources: list[tuple[str, int, bool]] = []
            for edge in into:
                name = waiting.get((edge.src, edge.latency - seen[edge.src]), edge.src)
                ssa = name == edge.src and edge.kind == "flow" and name in written
                sources.append((name, edge.distance, ssa))
            # CIRCT wants results before operations that are only named.
            told = [f"{number[name]}{_apart(d)}" for name, d, ssa in sources if ssa]
            told += [f"{_symbol(name)}{_apart(d)}" for name, d, ssa in sources if not ssa]
            yield self._operation(op, seen[op.name], number[op.name], ", ".join(told))
            written.add(op.name)
            for (src, more), name in waiting.items():
                if src == op.name:
                    kind = _symbol(self._operator("after", more))
                    yield f"    operation<{kind}> {_symbol(name)}({number[src]})"

    def _operation(self, op: FlatOp, latency: int, number: str, operands: str) -> str:
        held = [slot for slot, _ in op.holds if self.flat.limits[slot] is not None]
        uses = f" uses[{', '.join(map(_symbol, held))}]" if held else ""
        kind = _symbol(self._operator(op.kind, latency))
        return f"    {number} = operation<{kind}> {_symbol(op.name)}({operands}){uses}"

    def _waiting(self, seen: dict[str, int]) -> dict[tuple[str, int], str]:
        """Names for those that wait, by whom and how long after."""
        taken = {op.name for op in self.flat.ops}
        found: dict[tuple[str, int], str] = {}
        for edge in self.flat.edges:
            key = edge.src, edge.latency - seen[edge.src]
            if key[1] == 0 or key in found:
                continue
            name = f"{edge.src}.after{key[1]}"
            while name in taken:
                name += "_"
            taken.add(name)
            found[key] = name
            self.waits.append(name)
        return found

    def _operator(self, kind: str, latency: int) -> str:
        """The operator of a kind and a latency: under its kind, if it is the first of it."""
        key = kind, latency
        if key not in self.operators:
            name = kind
            while name in self.operators.values():
                name = f"{kind}.{latency}" if name == kind else name + "_"
            self.operators[key] = name
        return self.operators[key]


def _apart(distance: int) -> str:
    return f" [dist<{distance}>]" if distance else ""


def _symbol(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f"@{name}"
    quoted = "".join(_escaped(c) for c in name)
    return f'@"{quoted}"'


def _escaped(c: str) -> str:
    if c in '"\\':
        return f"\\{c}"
    return f"\\{ord(c):02X}" if ord(c) < 0x20 else c
