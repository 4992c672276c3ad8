"""What can stand against an II: one name for everything that a model may be built with or without.

    dependence 3    load0 -> mma, latency 556          one dependence inequality
    slot tma        all holds of one slot              and so on, one reason a rule and its subject

Fusion is a freedom, not a reason: a model always has it, unless the user took it away. A dependence
that is left out asks for no cycles any more; whom it keeps from fusing stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stretto.exact.case import Case
from stretto.loop import Dependence

ReasonKind = Literal[
    "dependence",
    "slot",
    "pool",
    "depth",
    "stages",
    "group",
    "storage",
    "registers",
    "ring",
    "pin",
]


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule and what it is about."""

    kind: ReasonKind
    name: str = ""
    """The slot, pool, memory space, agent, operation or capped storage."""
    number: int = 0
    """Which dependence or group."""


def all_reasons(case: Case) -> tuple[Reason, ...]:
    """Everything that binds a case, dependences last: there are most of them."""
    ops = case.loop.ops
    found = [Reason("slot", name) for name in case.slots]
    found += [Reason("pool", name) for name in case.pools]
    found += [Reason("storage", space) for space in case.problem.rooms.budgets]
    if case.problem.registers.bound:
        agents = [agent for agent, _ in case.problem.registers.owners.values()]
        found += [Reason("registers", agent.name) for agent in agents]
    found += [Reason("depth", ops[i].name) for i in case.problem.depths]
    if case.max_stages is not None:
        found.append(Reason("stages"))
    found += [Reason("pin", ops[i].name) for i in case.problem.pinned]
    found += [Reason("group", number=k) for k in range(len(case.problem.members))]
    found += [Reason("ring", ring.name) for ring in case.bound_rings if ring.cap is not None]
    found += dict.fromkeys(of_edge(case, k) for k in range(len(case.edges)))
    return tuple(dict.fromkeys(found))


def of_edge(case: Case, number: int) -> Reason:
    """Why a dependence holds: itself, with all that hold beside it, or a capped ring."""
    stands = case.bundles[number]
    if stands is None:
        return Reason("ring", case.dependences[number].via)
    return Reason("dependence", number=stands)


def brief(case: Case, reasons: Sequence[Reason]) -> str:
    """A set of reasons in a few words: ``slot tma, smem, 3 dependences (a -> b -> c -> a)``."""
    told: list[str] = []
    for reason in reasons:
        match reason.kind:
            case "slot" | "pool":
                told.append(f"{reason.kind} {reason.name}")
            case "storage":
                told.append(f"the {reason.name} budget")
            case "registers":
                told.append(f"the registers of {reason.name}")
            case "depth":
                told.append(f"max_depth of `{reason.name}`")
            case "ring":
                told.append(f"the cap on the ring of `{reason.name}`")
            case "pin":
                told.append(f"the pin of `{reason.name}`")
            case "stages":
                told.append("the limit on stages")
            case "group":
                told.append(f"the group of `{case.loop.groups[reason.number][0]}`")
            case "dependence":
                pass
    steps = [case.edges[r.number][2] for r in reasons if r.kind == "dependence"]
    if steps:
        count = "1 dependence" if len(steps) == 1 else f"{len(steps)} dependences"
        told.append(f"{count} ({chain(steps)})")
    return ", ".join(told)


def chain(steps: Sequence[Dependence]) -> str:
    """Dependences as paths: ``a -> b -> c``, one after the other."""
    ways = [[steps[k] for k in way] for way in paths(steps)]
    return "; ".join(" -> ".join([way[0].src, *(d.dst for d in way)]) for way in ways)


def paths(steps: Sequence[Dependence]) -> list[list[int]]:
    """The numbers of dependences in the order in which they follow one another, path by path."""
    left = list(range(len(steps)))
    found: list[list[int]] = []
    while left:
        targets = {steps[k].dst for k in left}
        at: int | None = next((k for k in left if steps[k].src not in targets), left[0])
        way: list[int] = []
        while at is not None:
            left.remove(at)
            way.append(at)
            last = steps[at].dst
            at = next((k for k in left if steps[k].src == last), None)
        found.append(way)
    return found
