"""Is this schedule legal? Every violation, with its numbers.

    verify(loop, machine, analysis)  ──►  ()                                      legal
                                     ──►  (Violation("slot", "of slot `tma` (capacity 1), 2 ..."),)

A schedule is counted out in absolute time, by one validator per rule, none of which knows how
schedules are made: this package imports the problem and the result types, and nothing that
generates, derives or reserves. Loops are expected to have passed `check()`; what they place need
not make sense, and is reported as far as it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stretto.errors import StrettoError
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.solution import ScheduleAnalysis
from stretto.verification import dependence, fusion, order, place, slot, storage, table
from stretto.verification.layout import RULES, Layout, Rule, Violation

__all__ = ["RULES", "TRUSTED", "Rule", "Violation", "verify", "verify_table"]

TRUSTED: frozenset[Rule] = frozenset(("order", "dependence", "storage"))
"""What a schedule that is taken on trust still has to keep: all else is about the machine."""

Validator = Callable[[Layout], Iterator[Violation]]


def registers(laid: Layout) -> Iterator[Violation]:
    """Where no agent states its registers, there is nothing to count."""
    if laid.analysis.spilled or any(a.registers is not None for a in laid.machine.agents):
        from stretto.verification.registers import registers as counted  # noqa: PLC0415

        yield from counted(laid)


WITHOUT_II: tuple[Validator, ...] = (order.interval, order.target, order.names, fusion.fusion)
"""What can be said of a schedule that has no II."""

VALIDATORS: tuple[Validator, ...] = (
    order.interval,
    order.target,
    order.names,
    order.order,
    dependence.dependence,
    slot.slot,
    slot.pool,
    place.depth,
    place.group,
    storage.storage,
    registers,
    fusion.fusion,
    place.pin,
    table.table,
)


def verify(
    loop: Loop,
    machine: Machine,
    analysis: ScheduleAnalysis,
    *,
    max_stages: int | None = None,
) -> tuple[Violation, ...]:
    """Every violation of the rules of legality; none: the schedule is legal."""
    for op in () if loop.resolved else loop.ops:
        if not op.resolved:
            missing = "uses" if op.uses is None else "latency"
            raise StrettoError(
                f"`{op.name}` ({op.kind}) has no {missing}; "
                "classify the loop before verifying its schedule",
                loop.name,
            )
    if not analysis.success:
        message = f"the analysis of `{loop.name}` has no schedule: there is nothing to verify"
        return (Violation("order", message),)
    laid = Layout(loop, machine.with_slots(loop.slots), analysis, max_stages)
    has_ii = analysis.ii is not None and analysis.ii >= 1
    validators = VALIDATORS if has_ii else WITHOUT_II
    return tuple(violation for validator in validators for violation in validator(laid))


def verify_table(loop: Loop, machine: Machine, analysis: ScheduleAnalysis) -> tuple[Violation, ...]:
    """What is wrong with the table of an analysis that is verified otherwise."""
    return tuple(table.table(Layout(loop, machine.with_slots(loop.slots), analysis)))
