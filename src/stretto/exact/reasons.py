"""What can stand against an II: one name for everything that a model may be built with or without.

    dependence 3    load0 -> mma, latency 556          one dependence inequality
    slot tma        all holds of one slot              and so on, one reason a rule and its subject

Fusion is a freedom, not a reason: a model always has it, unless the user took it away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stretto.exact.case import Case

Kind = Literal["dependence", "slot", "pool", "depth", "stages", "group", "storage"]
KINDS: tuple[Kind, ...] = ("dependence", "slot", "pool", "depth", "stages", "group", "storage")


@dataclass(frozen=True, slots=True)
class Reason:
    """A rule and what it is about."""

    kind: Kind
    name: str = ""
    """The slot, pool, memory space or operation."""
    number: int = 0
    """Which dependence or group."""


def all_reasons(case: Case) -> tuple[Reason, ...]:
    """Everything that binds a case, dependences last: there are most of them."""
    ops = case.loop.ops
    found = [Reason("slot", name) for name in case.slots]
    found += [Reason("pool", name) for name in case.pools]
    found += [Reason("storage", space) for space in case.budgets]
    found += [Reason("depth", ops[i].name) for i in case.depths]
    if case.max_stages is not None:
        found.append(Reason("stages"))
    found += [Reason("group", number=k) for k in range(len(case.groups))]
    found += [Reason("dependence", number=k) for k in range(len(case.edges))]
    return tuple(found)
