"""What the simulator may lose: each of its checks.

broken program ──► as it is: {"unwritten", "value"}     removed: {}            goes unnoticed
                                                        removed: {"value"}     loses its name
sound program  ──► as it is: {}                         removed: {"stall"}     is refused
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any, cast

from broken_programs import Broken, broken_program, broken_programs, known_faults
from mutation import (
    Case,
    Harness,
    Mutant,
    Patch,
    all_of,
    around,
    changed,
    keeping,
    replaced,
    silent,
)
from stretto.materialization import Mode
from stretto.simulation import simulate_program
from stretto.simulation.needs import Known

UNNOTICED = "a fault that goes unnoticed"
UNNAMED = "a fault that loses its name"
REFUSED = "a sound program that is refused"


def _broken(case: Case) -> Broken:
    assert isinstance(case, str)
    if case in known_faults():
        return known_faults()[case]
    seed, mode, name = case.split(", ", 2)
    return broken_program(int(seed), cast(Mode, mode), name)


def told(case: Case) -> frozenset[str]:
    """The names of what a run shows."""
    broken = _broken(case)
    run = simulate_program(broken.program, broken.machine, broken.starts, broken.iterations)
    names = {violation.name for violation in run.violations}
    return frozenset(names if run.success or names else {"unequal"})


@cache
def expected(case: Case) -> frozenset[str]:
    """What a program is told to lack; to be asked while nothing is removed."""
    return told(case)


def _objections(case: Case) -> tuple[str, ...]:
    should, found = expected(case), told(case)
    if should and not found:
        return (UNNOTICED,)
    if not should and found:
        return (REFUSED,)
    return (UNNAMED,) if should - found else ()


def _cases(seeds: int) -> Iterator[Case]:
    for name in known_faults():
        yield name
    for seed in range(seeds):
        for mode, name in broken_programs(seed):
            case = f"{seed}, {mode}, {name}"
            if expected(case) or name.startswith("sound"):
                yield case


def _detail(case: Case) -> str:
    """What is still told of a fault that has lost a name."""
    left = told(case)
    lost = expected(case) - left
    if not lost or not left:
        return ""
    return f"{', '.join(sorted(lost))} lost, {', '.join(sorted(left))} told"


SIMULATOR = Harness(_objections, (UNNOTICED,), _cases, expected, _detail)

# What is removed ----------------------------------------------------------------------------

SIMULATE = "stretto.simulation"
Tells = Callable[[str, str, object], bool]


def _untold(untold: Tells) -> Patch:
    """Some findings are not told: name, message, what they are about."""

    def change(original: Callable[..., None]) -> Callable[..., None]:
        def add(
            self: Any, name: str, message: str, ops: Any, cycle: Any = None, about: object = None
        ) -> None:
            if not untold(name, message, about):
                original(self, name, message, ops, cycle, about)

        return add

    return changed(f"{SIMULATE}.outcome.Findings.add", change)


def _named(name: str) -> Patch:
    return _untold(lambda found, _, __: found == name)


def _values(*abouts: str) -> Patch:
    return _untold(lambda name, _, about: name == "value" and about in abouts)


def _all_knowing(original: Callable[..., None], args: tuple[Any, ...]) -> None:
    """A check whose agent knows everything, whatever made it wait."""
    act = args[-1]
    known = Known(len(act.known.last))
    known.last[:] = [act.trip_count] * len(known.last)
    original(*args[:-1], replace(act, known=known))


def _without_needs(drop: Callable[[Any], bool]) -> Patch:
    def requirements(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return {
            op: tuple(need for need in needs if not drop(need))
            for op, needs in original(*args).items()
        }

    return around(f"{SIMULATE}.execution.requirements", requirements)


def _unchecked_cell(self: Any, ring: str, iterator: str | None, *_: object) -> Any:
    return self._cells[ring][self.slot(iterator) if iterator else 0]


def _done_at_once(original: Callable[..., None], args: tuple[Any, ...]) -> None:
    levels, known, op, _, iteration = args
    original(levels, known, op, sys.maxsize, iteration)


NEEDS = silent(f"{SIMULATE}.execution.Issuer._check_needs")
TIME = silent(f"{SIMULATE}.execution.Issuer._check_time")
ALONE = silent(f"{SIMULATE}.ring_memory.Memory._check_alone")
LANDING = replaced(f"{SIMULATE}.ring_memory.Flying.lands", property(lambda write: write.issued))
VALUES = _untold(lambda name, _, about: name == "value" and about != "again")

_FOUND: dict[str, dict[str, Case]] = {
    "landing, and needs": {UNNOTICED: "0, unspecialized, derivation without flow"},
    "alone, and needs": {UNNOTICED: "0, unspecialized, derivation without completion"},
    "slots: iteration, and values": {UNNOTICED: "5, unspecialized, op6 without writes"},
    "beside, and values": {UNNOTICED: "an operand of the next iteration"},
    "time: epilogue, and time": {UNNOTICED: "2, unspecialized, op2 in cycle +1"},
    "needs": {UNNOTICED: "a mutex of an order"},
    "needs: stated": {UNNOTICED: "a mutex of an order"},
    "needs: flows": {UNNOTICED: "0, unspecialized, no Wait of op2"},
    "needs: storages": {UNNOTICED: "Mutex_fill of a storage"},
    "needs: storages, unwritten": {UNNOTICED: "6, specialized, Pipe_m0 full at once"},
    "needs: storages, overwritten": {UNNOTICED: "Mutex_fill of a storage"},
    "needs: carried": {UNNOTICED: "Mutex_clear of a storage"},
    "knowledge": {UNNOTICED: "no wait, unspecialized"},
    "knowledge: needs": {UNNOTICED: "a mutex of an order"},
    "knowledge: rings": {UNNOTICED: "0, unspecialized, no Acquire of op0"},
    "knowledge: latency": {UNNOTICED: "no wait, unspecialized"},
    "landing": {UNNAMED: "0, unspecialized, op0 writes sum as well"},
    "alone": {UNNAMED: "0, unspecialized, view_n4 writes sum as well"},
    "hand-over": {UNNOTICED: "0, unspecialized, no Acquire of op0"},
    "slots: iteration": {UNNAMED: "1, specialized, op5 in stage -1, 1 iteration"},
    "slots: unwritten": {UNNAMED: "1, specialized, op5 in stage -1, 1 iteration"},
    "slots: overwritten": {UNNAMED: "5, specialized, Advance of op4 twice"},
    "beside": {UNNAMED: "an operand of the next iteration"},
    "pipes: writes": {UNNOTICED: "4, specialized, around op1, exchanged"},
    "pipes: commits": {UNNOTICED: "a commit too soon, unspecialized"},
    "iterators": {UNNOTICED: "another's iterator"},
    "holds": {UNNOTICED: "0, unspecialized, slot s0 smaller"},
    "holds: slots": {UNNOTICED: "0, unspecialized, slot s0 smaller"},
    "holds: pools": {UNNOTICED: "1, unspecialized, pool p0 smaller"},
    "rings": {UNNOTICED: "more copies than there is room for"},
    "values: missing": {UNNOTICED: "0, specialized, no Issue of view_n4"},
    "values: extra": {UNNOTICED: "an iteration too many, unspecialized"},
    "values: result": {UNNOTICED: "1, unspecialized, op1 with operands of other iterations"},
    "values: again": {UNNOTICED: "issued twice, unspecialized"},
    "values: writes": {UNNOTICED: "a write that nobody reads"},
    "values: final": {UNNOTICED: "1, unspecialized, op1 writes m0 as well, 1 iteration"},
    "values": {UNNOTICED: "a write that nobody reads"},
    "time": {UNNOTICED: "0, unspecialized, op0 in cycle -1"},
    "time: stall": {UNNOTICED: "0, unspecialized, view_n4 in cycle +1"},
    "time: early": {UNNOTICED: "0, unspecialized, op0 in cycle -1"},
    "time: pace": {UNNOTICED: "0, unspecialized, op0 in cycle -1, 1 iteration"},
    "time: prologue": {UNNOTICED: "71, unspecialized, v7 shallow, 1 iteration"},
    "time: epilogue": {UNNAMED: "a shallow ring, unspecialized"},
    "deadlock": {UNNOTICED: "a wait after the end, unspecialized"},
}


def _mutant(name: str, removed: str, patch: Patch, covered: str = "", shown_by: str = "") -> Mutant:
    return Mutant(
        "simulator", name, removed, patch, SIMULATOR, _FOUND.get(name, {}), covered, shown_by
    )


def _second(
    name: str, removed: str, patch: Patch, first: tuple[str, str, Patch]
) -> Iterator[Mutant]:
    """A check that is a second opinion: alone, and with what tells the same before it."""
    other, told, also = first
    joint = f"{name}, and {other}"
    covered = f"{told} is told as well" if told[-1] != "s" else f"{told} are told as well"
    yield _mutant(name, removed, patch, covered, joint)
    yield _mutant(joint, f"{removed[:-1]}; and no {other} either.", all_of(patch, also))


def _waiting() -> Iterator[Mutant]:
    needs = f"{SIMULATE}.needs"
    yield _mutant("needs", "Nothing is asked of an operation that issues.", NEEDS)
    yield _mutant(
        "needs: stated",
        "Stated dependences are not asked for.",
        around(
            f"{SIMULATE}.execution.requirements",
            lambda original, args: original(replace(args[0], stated=())),
        ),
    )
    yield _mutant("needs: flows", "Operands are not asked for.", silent(f"{needs}._flows"))
    yield _mutant(
        "needs: storages", "Nothing is asked for a storage's sake.", silent(f"{needs}._of_storage")
    )
    for lack, what in (("unwritten", "A read"), ("overwritten", "A write")):
        yield _mutant(
            f"needs: storages, {lack}",
            f"{what} of a storage is not asked to wait.",
            keeping(f"{needs}._of_storage", lambda pair, lack=lack: pair[1].lack != lack),
        )
    yield _mutant(
        "needs: carried",
        "Needs of other iterations are not asked for.",
        _without_needs(lambda need: need.distance != 0),
    )
    yield _mutant(
        "knowledge",
        "What happens at the right time is taken to be made to.",
        all_of(
            around(f"{SIMULATE}.execution.Issuer._check_needs", _all_knowing),
            around(f"{SIMULATE}.ring_memory.Memory._check_free", _all_knowing),
        ),
    )
    yield _mutant(
        "knowledge: needs",
        "An operation whose needs are met in time is taken to be made to wait for them.",
        around(f"{SIMULATE}.execution.Issuer._check_needs", _all_knowing),
    )
    yield _mutant(
        "knowledge: rings",
        "A slot that is free in time is taken to be waited for.",
        around(f"{SIMULATE}.ring_memory.Memory._check_free", _all_knowing),
    )
    yield _mutant(
        "knowledge: latency",
        "Whoever knows that an operation has issued knows that it is done.",
        around(f"{SIMULATE}.needs.Levels.learn", _done_at_once),
    )


def _memory() -> Iterator[Mutant]:
    memory = f"{SIMULATE}.ring_memory"
    landed = "A write lands when its operation issues, not when it completes."
    yield from _second(
        "landing", landed, LANDING, ("needs", "what an operation needs of storages", NEEDS)
    )
    in_use = "A write may find its copy in use by others."
    yield from _second(
        "alone", in_use, ALONE, ("needs", "what an operation needs of storages", NEEDS)
    )
    yield _mutant(
        "hand-over",
        "A slot of a ring may be taken while it is needed.",
        silent(f"{memory}.Memory._check_free"),
    )
    yield from _second(
        "slots: iteration",
        "A read may find another iteration's copy in its slot.",
        replaced(f"{memory}.Memory._cell", _unchecked_cell),
        ("values", "the value that is read", VALUES),
    )
    for name in ("unwritten", "overwritten"):
        yield _mutant(
            f"slots: {name}",
            f"A read that finds {'an older' if name == 'unwritten' else 'a newer'} copy is no "
            "finding.",
            _untold(lambda n, message, _, name=name: n == name and "; the slot has " in message),
        )
    yield from _second(
        "beside",
        "An operand of the same step may be missing.",
        _untold(lambda _, message, __: "has not issued in this step" in message),
        ("values", "the value that is taken", VALUES),
    )
    yield _mutant(
        "pipes: writes",
        "A pipe may be written before its operation has issued.",
        _untold(lambda _, message, __: "before it has issued" in message),
    )
    yield _mutant(
        "pipes: commits",
        "A slot of a pipe may be committed that nothing was written to.",
        _untold(lambda _, message, __: "in which it has written nothing" in message),
    )
    yield _mutant(
        "iterators",
        "An agent may go by another's iterator.",
        silent(f"{SIMULATE}.simulator._check_iterators"),
    )


def _holding() -> Iterator[Mutant]:
    yield _mutant(
        "holds", "Slots and pools are not counted.", silent(f"{SIMULATE}.simulator.check_holds")
    )
    for what in ("slot", "pool"):
        yield _mutant(
            f"holds: {what}s",
            f"{what.capitalize()}s are not counted.",
            around(
                f"{SIMULATE}.simulator._sweep",
                lambda original, args, what=what: None if args[0] == what else original(*args),
            ),
        )
    yield _mutant(
        "rings",
        "Rings may be deeper than caps and budgets allow.",
        silent(f"{SIMULATE}.simulator.check_rings"),
    )


def _comparing() -> Iterator[Mutant]:
    removals = {
        "missing": "An operation may never issue.",
        "extra": "An operation may issue for an iteration that does not exist.",
        "result": "Results are not compared.",
        "again": "An operation may issue twice.",
    }
    for about, removed in removals.items():
        yield _mutant(f"values: {about}", removed, _values(about))
    others = {*removals, "final"}
    yield _mutant(
        "values: writes",
        "What operations leave in storages is not compared.",
        _untold(lambda name, _, about: name == "value" and about not in others),
    )
    yield _mutant("values: final", "What is left in the end is not compared.", _values("final"))
    yield _mutant("values", "Values are not compared at all.", VALUES)


def _timing() -> Iterator[Mutant]:
    yield _mutant("time", "Operations may issue at any time.", TIME)
    for name, removed in (
        ("stall", "Operations may issue late."),
        ("early", "Operations may issue early."),
        ("pace", "Iterations may be any number of cycles apart."),
    ):
        yield _mutant(f"time: {name}", removed, _named(name))
    yield _mutant("time: prologue", "The pipeline may fill at any time.", _named("prologue"))
    yield from _second(
        "time: epilogue",
        "The last completion may be at any time.",
        _named("epilogue"),
        ("time", "stalls and early issues", TIME),
    )
    yield _mutant(
        "deadlock",
        "Agents that wait forever are not told.",
        silent(f"{SIMULATE}.simulator._tell_deadlock"),
    )


MUTANTS = (*_waiting(), *_memory(), *_holding(), *_comparing(), *_timing())
