"""What the derivation may lose: each kind of dependence, whole and by where it comes from.

random loop ──► schedule of what is left ──► the verifier refuses it (IllegalScheduleError)
                     │
                     └─ verifier switched off ──► the oracle, values by the clock, and the
                                                  simulator of both modes tell
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import stretto
from absolute import disagreements
from interpreter import misread
from mutants_verify import without_rules
from mutation import Case, Harness, Mutant, Patch, all_of, around, giving, keeping, replaced, silent
from rich_loops import Rich, rich_problem
from stretto.errors import InfeasibleError
from stretto.loop import Access, Dependence, Op, Storage
from stretto.materialization import MODES, MaterializeError, Mode, materialize
from stretto.simulation import simulate_program
from stretto.solution import ScheduleAnalysis
from stretto.solve import IllegalScheduleError
from stretto.verification import VALIDATORS

AGENTS = ("tma", "mma", "simt")
BY_VERIFIER, BY_ORACLE, BY_CLOCK = "the verifier", "the oracle", "values by the clock"
BY_SIMULATOR: dict[Mode, str] = {mode: f"the simulator, {mode}" for mode in MODES}
UNSPECIALIZED, SPECIALIZED = BY_SIMULATOR.values()
BY_BUILDING = "materialization"


def _schedule(rich: Rich) -> ScheduleAnalysis | None:
    """The schedule of a loop; None: there is none."""
    try:
        found = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages
        )
    except InfeasibleError:
        return None
    return found if found.success else None


def _simulated(rich: Rich, analysis: ScheduleAnalysis, mode: Mode, seed: Case) -> bool:
    """Whether a program of the schedule runs as it should."""
    rng = random.Random(f"agents {seed}")
    machine = rich.machine.with_slots(rich.loop.slots)
    agents = {op.name: rng.choice(AGENTS) for op in rich.loop.ops}
    crew = agents if mode == "specialized" else None
    program = materialize(rich.loop, machine, analysis, mode, agents=crew)
    steps = program.stage_count + max((ring.depth for ring in program.rings), default=1) + 4
    return simulate_program(program, machine, analysis.starts, steps).success


def _objections(seed: Case) -> tuple[str, ...]:
    assert isinstance(seed, int)
    told: list[str] = []
    try:
        _schedule(rich_problem(seed))
    except IllegalScheduleError:
        told.append(BY_VERIFIER)
    with pytest.MonkeyPatch.context() as patch:
        without_rules(*(validator.__name__ for validator in VALIDATORS))(patch)
        rich = rich_problem(seed)
        analysis = _schedule(rich)
        if analysis is None:
            return tuple(told)
        if disagreements(rich.loop, rich.machine, analysis, rich.max_stages):
            told.append(BY_ORACLE)
        if misread(rich.loop, analysis):
            told.append(BY_CLOCK)
        for mode in MODES:
            try:
                if not _simulated(rich, analysis, mode, seed):
                    told.append(BY_SIMULATOR[mode])
            except (MaterializeError, LookupError):
                told.append(BY_BUILDING)
    return tuple(dict.fromkeys(told))


ENOUGH = (BY_VERIFIER, BY_ORACLE, BY_CLOCK, *BY_SIMULATOR.values())
DERIVATION = Harness(_objections, ENOUGH, range)

# What is removed ----------------------------------------------------------------------------

DERIVE = "stretto.loop.loop.derive_dependences"
Ops = Mapping[str, Op]
Other = Callable[[Dependence, Storage | None, Ops], Dependence | None]


def _derived(other: Other) -> Patch:
    """Each dependence that is not stated, replaced by another or by none."""

    def derive(
        original: Callable[..., tuple[Dependence, ...]], args: tuple[Any, ...]
    ) -> tuple[Dependence, ...]:
        ops, _, storages, stated, _ = args
        by_name, homes = {op.name: op for op in ops}, {s.name: s for s in storages}
        found: list[Dependence] = []
        for d in original(*args):
            home = None if d.kind == "flow" else homes.get(d.via)
            kept = d if d in stated else other(d, home, by_name)
            found += [] if kept is None else [kept]
        return tuple(found)

    return around(DERIVE, derive)


def _dropping(drop: Callable[[Dependence, Storage | None], bool]) -> Patch:
    return _derived(lambda d, home, _: None if drop(d, home) else d)


def _carried_on(home: Storage | None, d: Dependence, fixed: bool) -> bool:
    return home is not None and home.fixed == fixed and d.distance > 0


def _at_latency(d: Dependence, home: Storage | None, ops: Ops) -> Dependence:
    if home is None or d.kind not in ("anti", "output"):
        return d
    return replace(d, latency=min(d.latency, ops[d.src].ready))


def _ready_over_iterations(d: Dependence, home: Storage | None, ops: Ops) -> Dependence:
    if d.kind != "memory" or not _carried_on(home, d, fixed=True):
        return d
    return replace(d, latency=min(d.latency, ops[d.src].ready))


def _flows_replace_outputs(
    original: Callable[..., tuple[Dependence, ...]], args: tuple[Any, ...]
) -> tuple[Dependence, ...]:
    found = original(*args)
    flows = {(d.src, d.dst, d.distance) for d in found if d.kind == "flow"}
    return tuple(
        d
        for d in found
        if d.kind != "output" or (d.src, d.dst, d.distance) not in flows or d in args[3]
    )


def _listed_reads(ops: tuple[Op, ...], *_: object) -> dict[str, tuple[Access, ...]]:
    return {op.name: op.reads for op in ops}


_FOUND: dict[str, dict[str, Case]] = {
    "flow": {BY_VERIFIER: 0, BY_ORACLE: 0, BY_CLOCK: 0, UNSPECIALIZED: 0, SPECIALIZED: 0},
    "memory": {BY_VERIFIER: 6, BY_ORACLE: 6, BY_CLOCK: 6, UNSPECIALIZED: 2, SPECIALIZED: 2},
    "anti": {BY_VERIFIER: 0, BY_ORACLE: 0, BY_CLOCK: 0, UNSPECIALIZED: 0, SPECIALIZED: 0},
    "output": {BY_VERIFIER: 2, BY_ORACLE: 2, BY_CLOCK: 2, UNSPECIALIZED: 2, SPECIALIZED: 2},
    "memory, inside": {BY_VERIFIER: 6, BY_ORACLE: 6, BY_CLOCK: 6, UNSPECIALIZED: 6, SPECIALIZED: 6},
    "anti, inside": {BY_VERIFIER: 0, BY_ORACLE: 0, BY_CLOCK: 0, UNSPECIALIZED: 0, SPECIALIZED: 0},
    "output, inside": {BY_VERIFIER: 2, BY_ORACLE: 2, BY_CLOCK: 2, UNSPECIALIZED: 2, SPECIALIZED: 2},
    "memory, fixed": {BY_VERIFIER: 8, BY_ORACLE: 8, BY_CLOCK: 8, UNSPECIALIZED: 2, SPECIALIZED: 2},
    "anti, fixed": {BY_VERIFIER: 26, BY_ORACLE: 26, BY_CLOCK: 26, UNSPECIALIZED: 2, SPECIALIZED: 2},
    "output, fixed": {
        UNSPECIALIZED: 36,
        SPECIALIZED: 36,
        BY_VERIFIER: 126,
        BY_ORACLE: 126,
        BY_CLOCK: 126,
    },
    "orders inside an iteration": {
        BY_VERIFIER: 0,
        BY_ORACLE: 0,
        BY_CLOCK: 0,
        UNSPECIALIZED: 0,
        SPECIALIZED: 0,
    },
    "carried on fixed storages": {
        BY_VERIFIER: 2,
        BY_ORACLE: 2,
        BY_CLOCK: 2,
        UNSPECIALIZED: 2,
        SPECIALIZED: 2,
    },
    "carried reads of rings": {
        BY_VERIFIER: 10,
        BY_ORACLE: 10,
        BY_CLOCK: 10,
        UNSPECIALIZED: 10,
        SPECIALIZED: 10,
    },
    "reuse of capped rings": {BY_VERIFIER: 9, BY_ORACLE: 9, UNSPECIALIZED: 9, SPECIALIZED: 9},
    "reuse of capped rings, anti": {BY_VERIFIER: 9, BY_ORACLE: 9, UNSPECIALIZED: 9, SPECIALIZED: 9},
    "reuse of capped rings, output": {
        BY_VERIFIER: 261,
        BY_ORACLE: 261,
        UNSPECIALIZED: 261,
        SPECIALIZED: 261,
    },
    "behind an updater": {UNSPECIALIZED: 72, SPECIALIZED: 72, BY_VERIFIER: 1290, BY_ORACLE: 1290},
    "writers and themselves": {
        UNSPECIALIZED: 109,
        SPECIALIZED: 109,
        BY_VERIFIER: 471,
        BY_ORACLE: 471,
        BY_CLOCK: 471,
    },
    "outputs beside flows": {
        UNSPECIALIZED: 7,
        SPECIALIZED: 7,
        BY_VERIFIER: 24,
        BY_ORACLE: 24,
        BY_CLOCK: 24,
    },
    "completion": {BY_VERIFIER: 0, BY_ORACLE: 0, BY_CLOCK: 0, UNSPECIALIZED: 0, SPECIALIZED: 0},
    "completion over iterations": {
        BY_VERIFIER: 8,
        BY_ORACLE: 8,
        BY_CLOCK: 8,
        UNSPECIALIZED: 2,
        SPECIALIZED: 2,
    },
    "implied reads": {BY_BUILDING: 1, BY_VERIFIER: 4, BY_ORACLE: 4, BY_CLOCK: 4},
    "views": {BY_VERIFIER: 97, BY_ORACLE: 97, BY_CLOCK: 97},
    "carried views": {BY_VERIFIER: 97, BY_ORACLE: 97, BY_CLOCK: 30},
}


def _mutant(name: str, removed: str, patch: Patch, covered: str = "") -> Mutant:
    return Mutant("derivation", name, removed, patch, DERIVATION, _FOUND.get(name, {}), covered)


def _kinds() -> Iterator[Mutant]:
    said = {
        "flow": "No operand waits for its producer.",
        "memory": "No read of a storage waits for the write before it.",
        "anti": "No write waits for the reads before it.",
        "output": "No write waits for the writes before it.",
    }
    for kind, removed in said.items():
        yield _mutant(kind, removed, _dropping(lambda d, _, kind=kind: d.kind == kind))
    where: dict[str, tuple[str, Callable[[Dependence, Storage | None], bool]]] = {
        "inside": ("inside one iteration", lambda d, home: home is not None and not d.distance),
        "fixed": ("carried on fixed storages", lambda d, home: _carried_on(home, d, True)),
    }
    for place, (told, there) in where.items():
        for kind in ("memory", "anti", "output"):
            removed = f"No {kind} dependences {told}."
            patch = _dropping(
                lambda d, home, kind=kind, there=there: d.kind == kind and there(d, home)
            )
            yield _mutant(f"{kind}, {place}", removed, patch)


def _places() -> Iterator[Mutant]:
    yield _mutant(
        "orders inside an iteration",
        "Storages order nothing inside one iteration.",
        silent("stretto.loop.derive._inside"),
    )
    yield _mutant(
        "carried on fixed storages",
        "Fixed storages order nothing from one iteration to another.",
        _dropping(lambda d, home: _carried_on(home, d, fixed=True)),
    )
    yield _mutant(
        "carried reads of rings",
        "A read of an older instance does not wait for the write of it.",
        _dropping(lambda d, home: d.kind == "memory" and _carried_on(home, d, fixed=False)),
    )
    yield _mutant(
        "reuse of capped rings",
        "A writer does not wait for its copy of a capped ring.",
        silent("stretto.loop.derive._ring_reuse"),
    )
    for kind in ("anti", "output"):
        who = "readers" if kind == "anti" else "writers"
        yield _mutant(
            f"reuse of capped rings, {kind}",
            f"A writer does not wait for the {who} of its copy of a capped ring.",
            keeping("stretto.loop.derive._ring_reuse", lambda d, kind=kind: d.kind != kind),
        )
    yield _mutant(
        "behind an updater",
        "Readers do not wait for the turn of an updater before the one they read.",
        silent("stretto.loop.derive._behind_updater"),
    )
    yield _mutant(
        "writers and themselves",
        "A writer of a fixed storage that is no updater does not wait for itself.",
        _dropping(lambda d, home: home is not None and home.fixed and d.src == d.dst),
    )


def _finer() -> Iterator[Mutant]:
    yield _mutant(
        "outputs beside flows",
        "Where a value flows between two writers, their output order is dropped.",
        around(DERIVE, _flows_replace_outputs),
    )
    yield _mutant(
        "completion",
        "Whoever overwrites waits for the latency of those before, not for their completion.",
        _derived(_at_latency),
    )
    yield _mutant(
        "completion over iterations",
        "A read of last iteration's write to a fixed storage waits for its latency alone.",
        _derived(_ready_over_iterations),
    )
    yield _mutant(
        "implied reads",
        "An operand that lives in a storage does not read it, for whoever asks the loop.",
        replaced("stretto.loop.loop.effective_reads", _listed_reads),
    )
    yield _mutant(
        "views",
        "A view is an operation like any other, for whoever asks the loop.",
        all_of(
            *(giving(f"stretto.loop.{module}.storage_views", {}) for module in ("derive", "loop"))
        ),
    )
    yield _mutant(
        "carried views",
        "What is seen through a carried view is taken for this iteration's.",
        around(
            "stretto.loop.derive.behind_views",
            lambda original, args: (original(*args)[0], args[0].distance),
        ),
    )


MUTANTS = (*_kinds(), *_places(), *_finer())
