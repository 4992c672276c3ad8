"""Who issues what in a specialized program.

    tma    copies by the tensor memory accelerator, and the addresses they alone need
    mma    matrix products and what the tensor core copies
    simt   all the rest, in one group or several

Views, and scalars that one agent alone reads, go where they are read. Any operation may be given to
an agent by name; the rules then work around it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stretto.loop import Loop, Op
from stretto.materialize.errors import MaterializeError
from stretto.materialize.origins import Origins
from stretto.materialize.types import Role
from stretto.vocabulary.opcodes import ISSUERS, opcode


@dataclass(frozen=True, slots=True)
class Crew:
    """The agents of a program, in the order in which they are declared."""

    agent_of: dict[str, str]
    roles: dict[str, Role]


def role_of(op: Op) -> Role:
    """The kind of agent that an opcode asks for; threads issue what nobody knows."""
    return opcode(op.kind).issuer


def one_agent(loop: Loop) -> Crew:
    """Everything in one stream."""
    return Crew({op.name: "all" for op in loop.ops}, {"all": "all"})


def assign(loop: Loop, given: Mapping[str, str] | None = None, simt_groups: int = 1) -> Crew:
    """Agents by rule, except where an operation is given to one by name."""
    given = dict(given or {})
    for op in given:
        if op not in loop.index:
            raise MaterializeError(f"an agent is given for `{op}`, which is no op", loop.name)
    if simt_groups < 1:
        raise MaterializeError(f"{simt_groups} SIMT groups; at least 1 is needed", loop.name)
    agents: dict[str, str] = {op.name: role_of(op) for op in loop.ops} | given
    _follow_readers(loop, given, agents)
    if simt_groups > 1:
        _split(loop, given, agents, simt_groups)
    names = sorted(set(agents.values()), key=_declared)
    return Crew(agents, {name: _role(loop, agents, name) for name in names})


def _declared(name: str) -> tuple[int, str]:
    return (ISSUERS.index(name) if name in ISSUERS else len(ISSUERS), name)


def _role(loop: Loop, agents: Mapping[str, str], name: str) -> Role:
    """An agent's kind: its name's, or that of what it mostly does."""
    if name in ISSUERS:
        return name
    roles = [role_of(op) for op in loop.ops if agents[op.name] == name]
    return max(reversed(ISSUERS), key=roles.count)


def _follow_readers(loop: Loop, given: Mapping[str, str], agents: dict[str, str]) -> None:
    """Give views and scalars to the one agent that reads them, last in the program first."""
    views = Origins(loop).views
    types = {value.name: value.type for value in loop.values}
    readers: dict[str, list[str]] = {}
    for op in loop.ops:
        for operand in op.operands:
            readers.setdefault(operand.value, []).append(op.name)
    for op in reversed(loop.ops):
        if op.name in given or op.writes or not op.results or role_of(op) != "simt":
            continue
        scalar = all((t := types[r]) is not None and not t.shape for r in op.results)
        if scalar or op.name in views:
            around = {agents[name] for r in op.results for name in readers.get(r, ())}
            if len(around) == 1:
                agents[op.name] = around.pop()


def _split(loop: Loop, given: Mapping[str, str], agents: dict[str, str], groups: int) -> None:
    """Parts of the SIMT work that share no value, the heaviest first to the idlest group."""
    mine = [op for op in loop.ops if agents[op.name] == "simt" and op.name not in given]
    root = {op.name: op.name for op in mine}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for d in loop.dependences:
        if d.kind == "flow" and d.src in root and d.dst in root:
            root[find(d.dst)] = find(d.src)
    parts: dict[str, list[Op]] = {}
    for op in mine:
        parts.setdefault(find(op.name), []).append(op)
    loads = [0] * groups
    heavy = sorted(parts.values(), key=lambda part: -sum(op.vector.duration for op in part))
    for part in heavy:
        group = loads.index(min(loads))
        loads[group] += sum(op.vector.duration for op in part)
        for op in part:
            agents[op.name] = "simt" if group == 0 else f"simt{group}"
