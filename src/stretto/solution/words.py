"""What several reports say of a result, each phrase once.

    limit        slot tp_smem_wr                        the recurrence through acc
    cause        slot tp_smem_wr                        latency 12 over distance 1
    limited      , limited by slot tp_smem_wr           (nothing where nothing limits it)
    at_the_mii   II 15 is the MII, limited by slot tp_smem_wr
    the_mii      the MII is 15, limited by slot tp_smem_wr
    no_schedule  no schedule exists up to II 14

Whole sentences are their reports' own; these are the parts they share.
"""

from __future__ import annotations

from collections.abc import Iterable

from stretto.solution import Bounds, Refusal, Witness


def counted(count: int, one: str, many: str | None = None) -> str:
    """``1 stage``, ``2 stages``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def limit(witness: Witness) -> str:
    """What a witness is about, in a few words; "" where it is about nothing."""
    match witness.kind:
        case "slot" | "pool":
            return cause(witness)
        case "cycle":
            return f"the recurrence through {witness.parts[0].ops[0]}"
        case "depth":
            return f"the depth limit of {witness.limit}"
        case "none":
            return ""


def cause(witness: Witness) -> str:
    """What a witness adds up: where that has no name, its numbers."""
    if witness.kind == "cycle":
        return f"latency {witness.total} over distance {witness.capacity}"
    return f"{witness.kind} {witness.limit}"


def limited(bounds: Bounds) -> str:
    """What limits the II, to follow a number."""
    by = limit(bounds.witness)
    return f", limited by {by}" if by else ""


def at_the_mii(bounds: Bounds) -> str:
    """Of a schedule that is as fast as its bounds allow."""
    return f"II {bounds.mii} is the MII{limited(bounds)}"


def the_mii(bounds: Bounds) -> str:
    """Of any other, and where there is none."""
    return f"the MII is {bounds.mii}{limited(bounds)}"


def no_schedule(refused: Iterable[Refusal] = (), found: str = "was found") -> str:
    """That there is none, and up to where; `found`: the verb where that is not proved."""
    tried = tuple(refused)
    if not tried:
        return f"no schedule {found}"
    exists = "exists" if all(refusal.proved for refusal in tried) else found
    return f"no schedule {exists} up to II {max(refusal.last for refusal in tried)}"
