"""What the exact model and the generators may lose: each constraint, each look at a rule.

tiny loop ──► solver ──► schedule ──► the verifier refuses it: the model is too loose
                                 └──► brute force has another optimum: too loose or too strict
rich loop ──► generators ──► schedule ──► the verifier refuses it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any

import pytest

import stretto
from brute_force import optimum
from mutants_verify import RARITIES
from mutation import (
    Case,
    Harness,
    Mutant,
    Patch,
    all_of,
    around,
    giving,
    replaced,
    silent,
)
from programs import TINY
from rich_loops import rich_problem
from stretto.errors import InfeasibleError
from stretto.exact import Limits
from stretto.exact.case import make_case
from stretto.exact.instants import Found
from stretto.exact.objectives import up_to
from stretto.exact.runs import first_legal
from stretto.exact.search import optimize
from stretto.exact.solving import Clock
from stretto.generate.problem import Problem
from stretto.loop import (
    Constraint,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    ResourceVector,
    TileType,
    Use,
    Value,
)
from stretto.machine import Machine, Slot
from stretto.machine.machine import Agent
from stretto.problem.holds import Holds
from stretto.solve import IllegalScheduleError, prepare
from tiny_loops import tiny_problem

LIMIT = 40
"""No tiny loop needs a larger II."""
BY_VERIFIER = "the verifier"
BY_THEMSELVES = "the generators themselves"
LOOSE, STRICT = "brute force (II too small)", "brute force (II too large)"


def _refused(loop: Loop, machine: Machine, generator: str, **options: Any) -> bool:
    """Whether the verifier refuses what a generator makes."""
    try:
        stretto.schedule(loop, machine, generator, **options)
    except IllegalScheduleError:
        return True
    except InfeasibleError:
        pass
    return False


def _fusible(name: str, *chain: Dependence, kinds: str, **parents: str) -> Loop:
    """Operations that hold a slot of their kind for four cycles each."""
    ops = [
        Op(
            f"{kind}{n}",
            kind,
            uses=(Use(kind, 4),),
            latency=0,
            facts=Facts(bank=0),
            parent=parents.get(f"{kind}{n}"),
        )
        for n, kind in enumerate(kinds)
    ]
    return Loop(name, tuple(ops), stated=chain)


PINNED = Loop(
    "one pinned behind another",
    (
        Op("a0", "a", uses=(Use("a", 2),), latency=2),
        Op("a1", "a", uses=(Use("b", 2),), latency=0, constraint=Constraint(stage=3)),
    ),
    stated=(Dependence("a0", "a1", 2),),
)
BEHIND = Loop(
    "one a stage behind its group",
    (
        Op("a0", "a", uses=(Use("a", 2),), latency=2, constraint=Constraint(gid=0)),
        Op("b1", "b", uses=(Use("b", 2),), latency=2, constraint=Constraint(gid=0, stage_offset=1)),
    ),
    stated=(Dependence("a0", "b1", 2),),
)
TILED = Loop(
    "two tiles that must not meet",
    (
        Op("a0", "load", results=("x",), uses=(Use("a", 2),), latency=4),
        Op("b1", "store", (Operand("x"),), uses=(Use("b", 2),), latency=2),
    ),
    (Value("x", TileType((128,), "f32")),),
)
STAFFED = replace(TINY, agents=(Agent("g", ("tma", "mma", "simt"), 1, 4),))
FUSING = replace(TINY, slots=(Slot(1, "a", 1, fusion_cap=2), Slot(2, "b", 1, fusion_cap=2)))
_circle = (Dependence("a0", "b2", 0), Dependence("b3", "a1", 0))
HAND = {loop.name: (loop, TINY) for loop, _, _ in RARITIES.values()} | {
    loop.name: (loop, FUSING)
    for loop in (
        _fusible("three alike, two may fuse", kinds="aaa"),
        PINNED,
        BEHIND,
        _fusible("one encloses the other", kinds="aa", a1="a0"),
        _fusible("one waits for the other", Dependence("a0", "a1", 0), kinds="aa"),
        _fusible("two pairs in a circle", *_circle, kinds="aabb"),
    )
}
"""Loops that few random ones are like, each with its machine."""
HAND[TILED.name] = (TILED, STAFFED)


# The solver ---------------------------------------------------------------------------------


@cache
def _best(seed: Case) -> int | None:
    if isinstance(seed, str):
        return None
    tiny = tiny_problem(seed, 4)
    return optimum(tiny.loop, tiny.machine, tiny.fuse, LIMIT, tiny.max_stages)


def _solved(seed: Case) -> tuple[str, ...]:
    with pytest.MonkeyPatch.context() as patched:
        # Else what other models refute stands in for what this one has lost, and so does a hint.
        around("stretto.exact.search.first_legal", lambda _, args: (args[1], None))(patched)
        around("stretto.exact.search.ask", lambda _, __: Found(refuted=False))(patched)
        return _solved_alone(seed)


def _solved_alone(seed: Case) -> tuple[str, ...]:
    if isinstance(seed, str):
        loop, machine = HAND[seed]
        return (BY_VERIFIER,) if _refused(replace(loop), machine, "exact") else ()
    tiny, told = tiny_problem(seed, 4), list[str]()
    options = {"fuse": tiny.fuse, "max_stages": tiny.max_stages}
    if _refused(tiny.loop, tiny.machine, "exact", **options):
        told.append(BY_VERIFIER)
    case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    schedule = optimize(case, 1, LIMIT, None, up_to("ii"), Limits()).schedule
    found, best = LIMIT + 1 if schedule is None else schedule.ii, _best(seed) or LIMIT + 1
    if found != best:
        told.append(LOOSE if found < best else STRICT)
    return tuple(told)


def _tiny_cases(count: int) -> Iterator[Case]:
    yield from HAND
    yield from range(count)


EXACT = Harness(_solved, (BY_VERIFIER, LOOSE), _tiny_cases, _best)


def _generated(case: Case) -> tuple[str, ...]:
    if isinstance(case, str):
        loop, machine = HAND[case]
        # Search alone finds what there is in these; without it the arms are asked.
        loop, options = replace(loop), {"without": ("rau",)}
    else:
        rich = rich_problem(case)
        loop, machine = rich.loop, rich.machine
        options = {"fuse": rich.fuse, "max_stages": rich.max_stages}
    told: set[str] = set()
    for generator in ("auto", "serial"):
        try:
            told |= {BY_VERIFIER} if _refused(loop, machine, generator, **options) else set()
        except RuntimeError:
            told.add(BY_THEMSELVES)
    return tuple(sorted(told))


GENERATORS = Harness(_generated, (BY_VERIFIER,), _tiny_cases)


@cache
def _first(seed: Case) -> int:
    if not isinstance(seed, str):
        return _best(seed) or LIMIT + 1
    loop, machine = HAND[seed]
    return optimum(replace(loop), machine, True, LIMIT, None) or LIMIT + 1


def _in_a_run(seed: Case) -> tuple[str, ...]:
    if isinstance(seed, str):
        loop, machine = HAND[seed]
        case = make_case(prepare(replace(loop), machine).loop, machine)
    else:
        tiny = tiny_problem(seed, 4)
        case = make_case(tiny.loop, tiny.machine, tiny.fuse, tiny.max_stages)
    if case.classes or case.problem.pinned or case.problem.instant_pairs:
        return ()  # what a run leaves out
    found, _ = first_legal(case, 1, LIMIT, Clock(Limits()))
    if found == _first(seed):
        return ()
    return (LOOSE,) if found < _first(seed) else (STRICT,)


RUNS = Harness(_in_a_run, (), _tiny_cases, _first)

# What is removed ----------------------------------------------------------------------------

MODEL, RANGES, RUN = "stretto.exact.model", "stretto.exact.ranges", "stretto.exact.runs"


def _on_the_class(**fields: object) -> Patch:
    """Fusion classes that differ in something from what they should be."""
    return around(
        f"{MODEL}.choose",
        lambda original, args: original(*args[:2], replace(args[2], **fields), args[3]),
    )


def _ungrouped(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The rows are turned although operations are tied to stages."""
    case, ii = args
    ops = tuple(replace(op, constraint=Constraint()) for op in case.loop.ops)
    loop = replace(case.loop, ops=ops)
    return original(replace(case, problem=replace(case.problem, loop=loop)), ii)


def _at_the_first(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Longest paths at the first II of a range."""
    made, *rest = args
    last, made.last = made.last, made.first
    try:
        return original(made, *rest)
    finally:
        made.last = last


def _problem(**fields: Callable[[Problem], object]) -> Patch:
    """The problem of the generators, with other fields."""
    return all_of(
        *(replaced(f"stretto.problem.Compiled.{name}", property(of)) for name, of in fields.items())
    )


def _roomy(machine: Machine) -> Machine:
    return replace(machine, slots=tuple(replace(slot, capacity=None) for slot in machine.slots))


def _plentiful(machine: Machine) -> Machine:
    return replace(machine, pools=tuple(replace(pool, cap=1000) for pool in machine.pools))


def _tables(other: Callable[[Machine], Machine]) -> Patch:
    """Whatever keeps count of what is held does so for another machine."""

    def table(original: Callable[..., None], args: tuple[Any, ...]) -> None:
        original(args[0], other(args[1]), *args[2:])

    def holds(original: Callable[..., Holds], args: tuple[Any, ...]) -> Holds:
        return original(args[0], other(args[1]))

    return all_of(
        around("stretto.resources.table.ReservationTable.__init__", table),
        around("stretto.problem.Holds", holds),
    )


_SOLVED: dict[str, dict[str, Case]] = {
    "model: dependence": {BY_VERIFIER: 1, LOOSE: 1},
    "model: slot": {BY_VERIFIER: 1, LOOSE: 1},
    "model: pool": {BY_VERIFIER: 144, LOOSE: 206},
    "model: depth": {BY_VERIFIER: 33, LOOSE: 33},
    "model: group": {BY_VERIFIER: 84, LOOSE: 84},
    "model: pin": {BY_VERIFIER: "one pinned behind another"},
    "model: registers": {BY_VERIFIER: "two tiles that must not meet"},
    "model: storage": {LOOSE: 18, BY_VERIFIER: 136},
    "model: caps, and dependences of capped rings": {BY_VERIFIER: 11, LOOSE: 11},
    "fusion: acyclic": {BY_VERIFIER: "two pairs in a circle"},
    "fusion: apart": {BY_VERIFIER: "one encloses the other"},
    "fusion: cap": {BY_VERIFIER: 345, LOOSE: 345},
    "fusion: joint holds": {BY_VERIFIER: 33, LOOSE: 33},
    "slot: round the circle": {BY_VERIFIER: 10, LOOSE: 10},
    "symmetry: groups": {STRICT: 14},
    "group: offsets": {BY_VERIFIER: "one a stage behind its group"},
    "symmetry: twins": {STRICT: 1},
    "horizon": {STRICT: 4},
    "lifetimes": {STRICT: 1},
    "ranges: pairs": {STRICT: 30},
    "ranges: rounds": {STRICT: 0},
    "ranges: windows": {STRICT: 1},
    "knots": {BY_VERIFIER: "a knot of a ring"},
}

_RUN: dict[str, dict[str, Case]] = {
    "runs: dependences": {LOOSE: 2},
    "runs: capacity": {LOOSE: 0},
    "runs: stages": {LOOSE: 19},
    "runs: storage": {LOOSE: 18},
    "runs: registers": {LOOSE: "two tiles that must not meet"},
    "runs: rounds": {STRICT: 0},
    "runs: horizon": {STRICT: 6},
}

_GENERATED: dict[str, dict[str, Case]] = {
    "rings": {BY_VERIFIER: 12},
    "knots": {BY_VERIFIER: "a knot of a ring"},
    "depth": {BY_VERIFIER: 22},
    "group": {BY_VERIFIER: 2},
    "group: offsets": {BY_VERIFIER: "one a stage behind its group"},
    "registers": {BY_VERIFIER: "two tiles that must not meet"},
    "slot": {BY_VERIFIER: "three alike, two may fuse"},
    "pool": {BY_VERIFIER: 1},
    "dependence": {BY_VERIFIER: "behind an updater"},
    "fusion: may fuse": {BY_VERIFIER: "one encloses the other"},
    "fusion: cap": {BY_VERIFIER: "three alike, two may fuse"},
    "fusion: joint holds": {BY_VERIFIER: 38, BY_THEMSELVES: 154},
}

FLAT = "Members of a group stand in one stage, whatever their offsets."
CAPS = silent(f"{MODEL}.Model._caps")
BOTH_CAPS = "model: caps, and dependences of capped rings"


def _exact(name: str, removed: str, patch: Patch, covered: str = "", shown_by: str = "") -> Mutant:
    return Mutant(
        "exact model", name, removed, patch, EXACT, _SOLVED.get(name, {}), covered, shown_by
    )


def _generator(name: str, removed: str, patch: Patch) -> Mutant:
    return Mutant("generators", name, removed, patch, GENERATORS, _GENERATED.get(name, {}))


def _constraints() -> Iterator[Mutant]:
    for name, removed in (
        ("dependence", "No dependence is a constraint."),
        ("slot", "No slot is a constraint."),
        ("pool", "No pool is a constraint."),
        ("depth", "Neither max_depth nor max_stages is a constraint."),
        ("group", "Groups need not share a stage."),
        ("pin", "Operations need not stand where they are pinned."),
        ("storage", "Rings may have any depth and take any bytes."),
        ("registers", "Anything may live in the registers of agents."),
    ):
        yield _exact(f"model: {name}", removed, silent(f"{MODEL}.Model._{name}"))
    yield _exact(
        "model: caps",
        "Rings may exceed their caps.",
        CAPS,
        "The dependences of capped rings, from readers to the next writer, ask for the same.",
        BOTH_CAPS,
    )
    yield _exact(
        BOTH_CAPS,
        "Both of: rings may exceed their caps, and dependences of capped rings are not derived.",
        all_of(CAPS, silent("stretto.loop.derive._ring_reuse")),
    )
    yield _exact(
        "fusion: acyclic",
        "Fused groups may wait for one another.",
        silent(f"{MODEL}.keep_acyclic"),
    )
    yield _exact(
        "fusion: apart",
        "Operations may be fused with a path or nesting between them.",
        _on_the_class(apart=frozenset[tuple[int, int]]()),
    )
    yield _exact(
        "fusion: cap", "Any number of operations may share a hold.", _on_the_class(cap=1000)
    )
    yield _exact(
        "fusion: joint holds",
        "A fused group holds what its leader holds.",
        around("stretto.exact.fusion._shapes", lambda _, args: [args[0]]),
    )
    yield _exact(
        "slot: round the circle",
        "What is held over the end of the II is not held at its start.",
        around(
            "stretto.exact.circular._intervals", lambda original, args: islice(original(*args), 1)
        ),
    )
    yield _exact(
        "symmetry: groups",
        "The rows are turned although groups tie operations to stages.",
        around(f"{MODEL}.anchor", _ungrouped),
    )
    yield _exact(
        "symmetry: twins",
        "Any two operations are taken to be able to change places.",
        around(f"{MODEL}.twins", lambda _, args: (tuple(range(args[0].size)),)),
    )
    yield _exact(
        "horizon",
        "Every operation stands in the first stage.",
        around(f"{MODEL}.last_stages", lambda _, args: (0,) * args[0].size),
    )
    yield _exact(
        "lifetimes",
        "An access lasts a cycle longer than it does.",
        replaced(
            "stretto.problem.Compiled.completion",
            property(lambda problem: tuple(op.completion + 1 for op in problem.loop.ops)),
        ),
    )
    yield _exact(
        "ranges: pairs",
        "Any two that hold a slot or a pool are taken to exclude each other.",
        around(f"{RANGES}._excluding", lambda _, args: args[1].op != args[2].op),
    )
    yield _exact(
        "ranges: rounds",
        "No two that exclude each other stand more than an II apart.",
        around(f"{RANGES}._Range._rounds", lambda _, __: range(1)),
    )
    yield _exact(
        "ranges: windows",
        "Windows are those of the first II of a range, not of the last.",
        around(f"{RANGES}._Range._farthest", _at_the_first),
    )
    yield _exact("group: offsets", FLAT, _problem(ahead=lambda problem: (0,) * problem.size))
    yield _exact(
        "knots", "No schedule ties a knot in one cycle.", silent("stretto.exact.case.knot")
    )


def _running() -> Iterator[Mutant]:
    def mutant(name: str, removed: str, patch: Patch) -> Mutant:
        name = f"runs: {name}"
        return Mutant("exact model", name, removed, patch, RUNS, _RUN.get(name, {}))

    for name, removed in (
        ("dependences", "No dependence is asked about."),
        ("capacity", "Neither slots nor pools are asked about."),
        ("stages", "Neither groups nor limits on stages are asked about."),
        ("storage", "Rings may have any depth and take any bytes."),
    ):
        yield mutant(name, removed, silent(f"{RUN}._Run._{name}"))
    yield mutant(
        "registers",
        "Anything may live in the registers of agents.",
        giving(f"{RUN}._Rule.ask", False),
    )
    yield mutant(
        "rounds",
        "Two wait a whole II longer than they must.",
        around(f"{RUN}._Run.rounds", lambda original, args: original(*args) + 1),
    )
    yield mutant(
        "horizon",
        "Every operation stands in the first stage.",
        around(f"{RUN}.last_stages", lambda _, args: (0,) * args[0].size),
    )


def _generating() -> Iterator[Mutant]:
    modules = ("rau", "climb", "serial")
    fits = [giving(f"stretto.generate.ladder.{m}.overflow", "") for m in modules]
    yield _generator("rings", "Rings always fit.", all_of(*fits))
    yield _generator(
        "knots",
        "No placement ties a knot in one cycle.",
        all_of(
            silent("stretto.generate.ladder.rings.knot"),
            replaced("stretto.generate.problem.Problem.instant", {}),
        ),
    )
    yield _generator(
        "depth",
        "No operation has a last stage.",
        _problem(max_stage=lambda problem: (None,) * problem.size),
    )
    yield _generator(
        "group",
        "No operations share a stage.",
        _problem(group=lambda problem: (None,) * problem.size, members=lambda _: ()),
    )
    yield _generator("group: offsets", FLAT, _problem(ahead=lambda problem: (0,) * problem.size))
    yield _generator(
        "registers",
        "Anything may live in the registers of agents.",
        giving("stretto.problem.registers.Registers.overflow", ""),
    )
    yield _generator("slot", "Every slot is unlimited.", _tables(_roomy))
    yield _generator("pool", "Every pool has plenty.", _tables(_plentiful))
    yield _generator(
        "dependence",
        "Nothing waits for anything.",
        _problem(
            preds=lambda problem: ((),) * problem.size, succs=lambda problem: ((),) * problem.size
        ),
    )
    yield _generator(
        "fusion: may fuse",
        "Whatever is alike may be fused.",
        giving("stretto.generate.seating.fusing.may_fuse", True),
    )
    yield _generator(
        "fusion: cap",
        "Any number of operations may share a hold.",
        giving("stretto.problem.fusion.Fusion.cap", 1000),
    )
    yield _generator(
        "fusion: joint holds",
        "A fused group holds what its first member holds.",
        all_of(
            *(
                around(f"stretto.{m}.fused_vector", _first_vector)
                for m in (
                    "problem",
                    "generate.seating.partial",
                    "generate.seating.fusing",
                    "generate.seating.arms",
                    "generate.seating.cost",
                    "generate.kernel.core",
                    "generate.kernel.sharing",
                )
            )
        ),
    )


def _first_vector(_: object, args: tuple[Any, ...]) -> ResourceVector:
    problem, members = args
    return problem.vectors[members[0]]


MUTANTS = (*_constraints(), *_running(), *_generating())
