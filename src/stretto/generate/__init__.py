"""Finding schedules: the serial walk, and the cost-based ladder with its gates and arms.

Which generator? The first rule that applies decides, and says so.

force_serial          ──►  serial        the loop asks for it
fewer operations      ──►  serial        than the threshold (2 unless told otherwise)
nothing to overlap    ──►  serial        no asynchronous pipeline, and no slot that is worth it
one of too many uses  ──►  serial        every try would walk over all of them
otherwise             ──►  cost-based
"""

from __future__ import annotations

from dataclasses import dataclass

from stretto.errors import StrettoError
from stretto.limits import USES_SEARCHED
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.resources import BlockSummary, summarize
from stretto.solution import counted

SERIAL, COST_BASED, EXACT = "serial", "cost-based", "exact"
GENERATORS = ("auto", SERIAL, COST_BASED, EXACT)
"""What may be asked for; `auto` applies the rules and never asks the exact solver. Those of others
are known to `outside.py`."""


@dataclass(frozen=True, slots=True)
class Selection:
    """A generator, and the rule that chose it."""

    generator: str
    rule: str
    warnings: tuple[str, ...] = ()
    """What the choice overrides."""
    firm: bool = True
    """Whether the loop or its user insists; else whatever is better may answer."""


def select(
    loop: Loop, machine: Machine, *, generator: str = "auto", serial_threshold: int = 2
) -> Selection:
    """Choose the generator of a resolved loop."""
    if generator not in GENERATORS:
        from stretto.generate.outside import outside_generator, outside_names  # noqa: PLC0415

        if outside_generator(generator) is None:
            known = ", ".join((*GENERATORS, *outside_names()))
            raise StrettoError(f"no generator `{generator}`; known: {known}")
    if generator != "auto":
        return _asked_for(loop, generator)
    if loop.force_serial:
        return Selection(SERIAL, "the loop forces serial execution")
    summary = summarize(loop, machine)
    if summary.ops < serial_threshold:
        count = counted(summary.ops, "operation")
        return Selection(SERIAL, f"{count}, fewer than the threshold of {serial_threshold}")
    if not summary.worth_pipelining:
        return Selection(SERIAL, f"nothing worth pipelining: {_nothing(machine)}", firm=False)
    told = too_many_uses(loop)
    if told:
        return Selection(SERIAL, told)
    return Selection(COST_BASED, f"worth pipelining: {_overlapped(summary)}")


def too_many_uses(loop: Loop) -> str:
    """Which operation has more uses than any search or solver is asked to place; empty: none."""
    if max([len(op.vector.uses) for op in loop.ops]) <= USES_SEARCHED:
        return ""
    crowded = max(loop.ops, key=lambda op: len(op.vector.uses))
    uses = len(crowded.vector.uses)
    return f"`{crowded.name}` has {uses:,} uses, more than the {USES_SEARCHED:,} that are searched"


def _asked_for(loop: Loop, generator: str) -> Selection:
    warnings: tuple[str, ...] = ()
    told = too_many_uses(loop)
    if told and generator != SERIAL:
        raise StrettoError(f"{told}; only the serial generator takes it", loop.name)
    if loop.force_serial and generator != SERIAL:
        warnings = (f"the loop forces serial execution; generator {generator} overrides it",)
    return Selection(generator, "asked for", warnings)


def _overlapped(summary: BlockSummary) -> str:
    if summary.pipelining:
        return f"it holds {', '.join(summary.pipelining)}"
    return f"{counted(summary.pipelines, 'operation')} of asynchronous pipelines"


def _nothing(machine: Machine) -> str:
    if machine.pipelining is None:
        return "it holds no limited slot"
    if not machine.pipelining:
        return f"no slot of {machine.name} makes a loop so"
    return f"it holds none of {', '.join(machine.pipelining)}"
