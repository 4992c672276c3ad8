"""Two accesses that nothing orders, as a finding: what it is, and the barrier that would order it.

first access (line, turn) ── which barrier does its agent arrive on, or its copy complete?
second access             ── does its agent wait there?
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto.sanitizer.finding import Access, Finding

if TYPE_CHECKING:
    from stretto.sanitizer.barriers import Barrier
    from stretto.sanitizer.block import Block, Raced

RULE = {"read": "read-too-early", "write": "two-writers", "overwrite": "overwritten-too-early"}


def place(first: Access, second: Access) -> str:
    """Where the first was, for whoever knows where the second is."""
    line = f"line {first.site.line}"
    return line if first.site.file == second.site.file else f"{first.site.file}, {line}"


def told_race(block: Block, raced: Raced) -> Finding:
    """As a finding, with all that is known of the program by now."""
    first, second = raced.first, raced.second
    slot = raced.allocation.slot_of(raced.key)
    rule, details = RULE.get(raced.kind, ""), list[str]()
    if raced.kind in ("fence", "reuse"):
        written = "unfenced-copy" if first.proxy == "copy" else "missing-fence"
        rule = written if raced.kind == "fence" else "unfenced-reuse"
        verb = "written" if raced.kind == "fence" else "read"
        message = (
            f"`{slot}` is {verb} by threads ({first.told()}, {place(first, second)}) and then used "
            f"through the asynchronous proxy ({second.told()}) with no fence_async_shared() on "
            "the way"
        )
        barrier = ""
    else:
        phase = _wrong_phase(block, raced)
        if phase is not None:
            rule = "wrong-phase"
            details.append(phase)
        elif raced.allocation.kind == "tensor" and "product" in (first.what, second.what):
            rule = "accumulator-in-flight"
        message = _message(raced, slot)
        barrier = _barrier(block, raced)
    return Finding(
        rule,
        second.site,
        message,
        slot=slot,
        first=first,
        second=second,
        barrier=barrier,
        agents=tuple(dict.fromkeys((first.agent, second.agent))),
        details=tuple(details),
        launch=block.launch,
        seed=block.policy.seed,
    )


def _message(raced: Raced, slot: str) -> str:
    first, second = raced.first, raced.second
    if raced.kind == "read":
        return (
            f"`{slot}` is read ({second.told()}) before what writes it ({first.told()}, "
            f"{place(first, second)}) is known to be done"
        )
    if raced.kind == "overwrite":
        return (
            f"`{slot}` is overwritten ({second.told()}) while it may still be read "
            f"({first.told()}, {place(first, second)})"
        )
    return (
        f"`{slot}` is written ({second.told()}) while another write to it ({first.told()}, "
        f"{place(first, second)}) may not be done"
    )


def _landing(block: Block, access: Access) -> Barrier | None:
    return block.landing.get(access.component)


def _wrong_phase(block: Block, raced: Raced) -> str | None:
    """Whether the second access relied on a wait that told it nothing."""
    landing = _landing(block, raced.first)
    slot = raced.allocation.slot_of(raced.key)
    for barrier, site, known in raced.vacuous:
        if not _of_one_slot(barrier.name, slot):
            continue
        concerns = (
            barrier is landing
            if landing is not None
            else any(name == raced.first.agent for name, _ in barrier.arrived_by)
        )
        if concerns and landing is None and known + 1 < max(1, barrier.completed):
            return (
                f"the wait on `{barrier.name}` at line {site.line} passed on its completion "
                f"{known}, which {raced.second.agent} knew already"
            )
        if concerns and landing is not None:
            return (
                f"the wait on `{barrier.name}` at line {site.line} passed on its completion "
                f"{known}, before this copy was there"
            )
    return None


def _of_one_slot(barrier: str, slot: str) -> bool:
    """Whether a barrier of a ring may guard a slot: of another slot it does not."""
    a, b = barrier.rpartition("[")[2], slot.rpartition("[")[2]
    return "[" not in barrier or "[" not in slot or a == b


def _barrier(block: Block, raced: Raced) -> str:
    """The barrier that would order the two."""
    landing = _landing(block, raced.first)
    second = raced.second.agent
    if landing is not None:
        waits = sorted({s.line for n, s in landing.waited_by if n == second})
        at = f" ({second} waits there at line {waits[0]})" if waits else ""
        return f"`{landing.name}`: the copy at line {raced.first.site.line} completes it{at}"
    both = [
        b
        for b in block.barriers.values()
        if any(n == raced.first.agent for n, _ in b.arrived_by)
        and any(n == second for n, _ in b.waited_by)
    ]
    if both:
        one = both[0]
        arrives = min(s.line for n, s in one.arrived_by if n == raced.first.agent)
        waits_at = min(s.line for n, s in one.waited_by if n == second)
        return (
            f"`{one.name}`: {raced.first.agent} arrives at line {arrives}, {second} waits at line "
            f"{waits_at}"
        )
    if raced.first.agent == second:
        return f"a wait of {second} between line {raced.first.site.line} and this one"
    return f"none yet: {raced.first.agent} arrives on no barrier that {second} waits for"
