"""What every function of the front door is given, made ready.

Loop, "blackwell"    ──►  Prepared: classified, checked, with its machine
Prepared             ──►  itself
seed, workers, ...   ──►  limits of the solver, or an error with the number
"""

from __future__ import annotations

from math import inf

from stretto.deadline import Deadline, deadline_after
from stretto.errors import StrettoError
from stretto.exact.options import SEED, WORKERS, Limits
from stretto.loop import Loop
from stretto.machine import Machine, load_machine
from stretto.resources.prepare import Prepared, prepare


def made_ready(loop: Loop | Prepared, machine: Machine | str | None = None) -> Prepared:
    """The loop prepared for a machine; one that is prepared already stays as it is."""
    if isinstance(loop, Loop):
        return prepare(loop, machine)
    if machine is None:
        return loop
    other = load_machine(machine) if isinstance(machine, str) else machine
    if other.with_slots(loop.loop.slots) != loop.machine:
        ready = f"the loop is prepared for {loop.machine.name}"
        raise StrettoError(f"{ready}; for {other.name}, prepare it as it was", loop.loop.name)
    return loop


def limits_of(work_limit: float, workers: int, seed: int) -> Limits:
    """What the solver may cost; StrettoError where it takes no such number."""
    if not 0 < work_limit < inf:
        raise StrettoError(f"work_limit is {work_limit}; a number above 0 is needed")
    if not 1 <= workers <= WORKERS:
        raise StrettoError(f"workers is {workers}; 1 to {WORKERS} are possible")
    if not 0 <= seed <= SEED:
        raise StrettoError(f"seed is {seed}; 0 to {SEED} are possible")
    return Limits(work_limit, workers, seed)


def deadline_of(time_limit: float | Deadline | None) -> Deadline:
    """When to end: so many seconds from now, or at a moment that is known already."""
    if isinstance(time_limit, Deadline):
        return time_limit
    if time_limit is not None and not 0 < time_limit < inf:
        raise StrettoError(f"time_limit is {time_limit}; a number of seconds above 0 is needed")
    return deadline_after(time_limit)
