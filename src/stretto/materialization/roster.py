"""Who issues what, and when: a finished schedule, checked, and the agents of its program.

    tma    copies by the tensor memory accelerator, and the addresses they alone need
    mma    matrix products and what the tensor core copies
    simt   all the rest, in one group or several

Views, and scalars that one agent alone reads, go where they are read. Any operation may be given to
an agent by name; the rules then work around it.

    start = stage × II + cycle        flow from `a` to `b`, distance d:
                                      d + stage(b) - stage(a) steps of the kernel apart
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stretto.errors import MaterializeError
from stretto.limits import INSTRUCTIONS
from stretto.loop import Dependence, Loop, Op
from stretto.loop.parts import cached_property
from stretto.machine import Machine
from stretto.materialization.origins import Origins
from stretto.materialization.program import Mode, Role
from stretto.ops.opcodes import ISSUERS, opcode
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.verification import TRUSTED, verify


@dataclass(frozen=True, slots=True)
class Crew:
    """The agents of a program, in the order in which they are declared."""

    agent_of: dict[str, str]
    roles: dict[str, Role]


@dataclass(frozen=True)
class Roster:
    """A legal schedule of a resolved loop, and who issues its operations."""

    loop: Loop
    machine: Machine
    schedule: Schedule
    order: dict[str, int]
    """Rank inside the stage."""
    crew: Crew

    @property
    def ii(self) -> int:
        """The initiation interval."""
        return self.schedule.ii

    @property
    def starts(self) -> Mapping[str, int]:
        """Start of each operation."""
        return self.schedule.starts

    @property
    def agent_of(self) -> dict[str, str]:
        """Operation to the agent that issues it."""
        return self.crew.agent_of

    @cached_property
    def origins(self) -> Origins:
        """What its operands are names of."""
        return Origins(self.loop)

    @cached_property
    def stage(self) -> dict[str, int]:
        """Stage of each operation."""
        return {name: start // self.ii for name, start in self.starts.items()}

    @cached_property
    def cycle(self) -> dict[str, int]:
        """Cycle of each operation inside its stage."""
        return {name: start % self.ii for name, start in self.starts.items()}

    @cached_property
    def stage_count(self) -> int:
        """Stages in all."""
        return max(self.stage.values()) + 1

    @cached_property
    def between(self) -> dict[tuple[str, str], tuple[Dependence, ...]]:
        """Dependences from one operation to another."""
        found: dict[tuple[str, str], tuple[Dependence, ...]] = {}
        for d in self.loop.dependences:
            found[d.src, d.dst] = (*found.get((d.src, d.dst), ()), d)
        return found

    def completion(self, op: str) -> int:
        """Cycles after its start when an operation is wholly done."""
        return self.loop.op(op).completion

    def steps(self, src: str, dst: str, distance: int) -> int:
        """Steps of the kernel from an operation to another, `distance` iterations later."""
        return distance + self.stage[dst] - self.stage[src]

    def slack(self, src: str, dst: str, distance: int) -> int:
        """Cycles from the start of one to the start of the other, `distance` iterations later."""
        return self.starts[dst] + self.ii * distance - self.starts[src]

    def beside(self, src: str, dst: str, distance: int) -> bool:
        """Whether both are issued by one agent in the same step of the kernel."""
        same = self.agent_of[src] == self.agent_of[dst]
        return same and self.steps(src, dst, distance) == 0

    def rank(self, op: str) -> tuple[int, int]:
        """(stage, order): the key by which producers are sorted."""
        return self.stage[op], self.order[op]


def make_roster(
    loop: Loop,
    machine: Machine,
    analysis: ScheduleAnalysis,
    mode: Mode,
    given: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    *,
    trusted: bool = False,
) -> Roster:
    """The roster of an analysis; MaterializeError where that is not finished, legal or in room.

    One that is trusted has to keep dependences and storages, whatever the machine has room for.
    """
    if not analysis.success or analysis.ii is None:
        raise MaterializeError("there is no schedule to materialize", loop.name)
    if not loop.resolved:
        raise MaterializeError("the loop has operations without costs", loop.name)
    violations = verify(loop, machine, analysis)
    if trusted:
        violations = tuple(v for v in violations if v.rule in TRUSTED)
    if violations:
        told = "".join(f"\n  {v.rule}: {v.message}" for v in violations)
        raise MaterializeError(f"the schedule is not legal{told}", loop.name)
    stages = max(analysis.starts.values()) // analysis.ii + 1
    if stages * len(loop.ops) > INSTRUCTIONS:
        told = f"{stages:,} stages of {len(loop.ops):,} operations are too many"
        limit = f"a program has room for {INSTRUCTIONS:,} operations; --max-stages asks for fewer"
        raise MaterializeError(f"{told}; {limit}", loop.name)
    crew = assign(loop, given, simt_groups, machine) if mode == "specialized" else one_agent(loop)
    order = {p.op: p.order for p in analysis.placements}
    return Roster(loop, machine, analysis.schedule, order, crew)


# Agents -----------------------------------------------------------------------------------


def role_of(op: Op) -> Role:
    """The kind of agent that an opcode asks for; threads issue what nobody knows."""
    return opcode(op.kind).issuer


def one_agent(loop: Loop) -> Crew:
    """Everything in one stream."""
    return Crew({op.name: "all" for op in loop.ops}, {"all": "all"})


def assign(
    loop: Loop,
    given: Mapping[str, str] | None = None,
    simt_groups: int = 1,
    machine: Machine | None = None,
) -> Crew:
    """Agents by rule, the machine's where it has some, except where one is given by name."""
    given = dict(given or {})
    for op in given:
        if op not in loop.index:
            raise MaterializeError(f"an agent is given for `{op}`, which is no op", loop.name)
    if simt_groups < 1:
        raise MaterializeError(f"{simt_groups} SIMT groups; at least 1 is needed", loop.name)
    given = {op.name: op.agent for op in loop.ops if op.agent is not None} | given
    agents: dict[str, str] = {op.name: _by_rule(op, machine) for op in loop.ops} | given
    _follow_readers(loop, given, agents)
    if simt_groups > 1:
        _split(loop, given, agents, simt_groups)
    names = sorted(set(agents.values()), key=_declared)
    return Crew(agents, {name: _role(loop, agents, name) for name in names})


def _by_rule(op: Op, machine: Machine | None) -> str:
    """The agent whose issue slot it holds, else the machine's for such work, else one a kind."""
    if machine is None or not machine.agents:
        return role_of(op)
    held = {use.slot for use in op.uses or ()}
    usual = machine.agent_for(role_of(op))
    found = next((agent for agent in machine.agents if agent.name in held), usual)
    return role_of(op) if found is None else found.name


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
    mine = [op.name for op in loop.ops if agents[op.name] == "simt" and op.name not in given]
    parts = joined(mine, ((d.dst, d.src) for d in loop.dependences if d.kind == "flow"))
    weights = [sum(loop.op(name).vector.duration for name in part) for part in parts]
    loads = [0] * groups
    for n in sorted(range(len(parts)), key=lambda n: -weights[n]):
        group = loads.index(min(loads))
        loads[group] += weights[n]
        agents.update(dict.fromkeys(parts[n], "simt" if group == 0 else f"simt{group}"))


def joined(names: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Names in sets that no pair connects; names keep their order, sets that of their first."""
    root = {name: name for name in names}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    for a, b in pairs:
        if a in root and b in root:
            root[find(a)] = find(b)
    found: dict[str, list[str]] = {}
    for name in root:
        found.setdefault(find(name), []).append(name)
    return list(found.values())
