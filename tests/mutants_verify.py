"""What the verifier may lose: each rule of legality, and each check inside a rule.

random loop ──► schedule ──► changed around the edge of legality ──► verifier = oracle
BROKEN      ──► a schedule broken by hand in one way             ──► named by its rule
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from test_verify_mutations import BROKEN, LEGAL

import stretto
from absolute import disagreements
from mutation import (
    Case,
    Harness,
    Mutant,
    Patch,
    all_of,
    around,
    changed,
    giving,
    keeping,
    replaced,
    silent,
)
from programs import TINY
from rich_loops import Rich, rich_agents, rich_problem
from stretto.errors import StrettoError
from stretto.loop import Access, Loop, Op, Operand, Storage, Value
from stretto.machine import Machine
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.verification import Violation, verify

FAR = 14
"""Cycles an operation is moved, each way."""

# Schedules around the edge ------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """A changed schedule, and whether the oracle refuses it."""

    analysis: ScheduleAnalysis
    wrong: bool


@dataclass(frozen=True)
class Pool:
    """A loop and changed schedules of it."""

    rich: Rich
    machine: Machine
    judged: tuple[Judged, ...]


def _rarities() -> Iterator[tuple[Loop, int, dict[str, int]]]:
    """Schedules that are not legal for a reason that random loops seldom have alone."""
    box, fixed = Storage("box", "smem", 8), Storage("sum", "smem", 8, fixed=True)
    fill = Op("fill", "x", writes=("sum",), uses=(), latency=4)
    yield Loop("a writer meets itself", (fill,), (), (fixed,)), 3, {"fill": 0}
    # `look` may take the turn before at once, but the turn before that is still under way.
    look = Op("look", "x", (Operand("v", 1, 0),), uses=(), latency=1)
    add = Op("add", "y", (), ("v",), (Access("sum"),), ("sum",), uses=(), latency=10)
    loop = Loop("behind an updater", (look, add), (Value("v", None, "sum"),), (fixed,))
    yield loop, 4, {"look": 0, "add": 1}
    # What is read a lap later is overwritten in the very cycle.
    first = Op("first", "x", writes=("box",), uses=(), latency=0)
    again = Op("again", "y", reads=(Access("box", 1),), writes=("box",), uses=(), latency=0)
    yield Loop("a knot of a ring", (first, again), (), (box,)), 1, {"first": 0, "again": 0}
    # As before, but it is a value that makes `again` come second.
    first = Op("first", "x", results=("v",), writes=("box",), uses=(), latency=0)
    again = Op("again", "y", (Operand("v"),), reads=(Access("box", 1),), uses=(), latency=0)
    loop = Loop("a knot of a value", (first, again), (Value("v"),), (box,))
    yield loop, 1, {"first": 0, "again": 0}


RARITIES = {loop.name: (loop, ii, starts) for loop, ii, starts in _rarities()}


def _number(case: str) -> int:
    """Of ``agents 17``: a random loop whose agents have registers."""
    return int(case.removeprefix("agents "))


@cache
def pool(case: Case) -> Pool:
    """Changed schedules of a random loop; to be made while nothing is removed."""
    if isinstance(case, str) and case in RARITIES:
        loop, ii, starts = RARITIES[case]
        analysis = analyse(loop, TINY, Schedule(ii, starts))
        assert disagreements(loop, TINY, analysis)
        return Pool(Rich(loop, TINY, False, None), TINY, (Judged(analysis, True),))
    rich = rich_problem(case) if isinstance(case, int) else rich_agents(_number(case))
    machine = rich.machine.with_slots(rich.loop.slots)
    judged: list[Judged] = []
    try:
        found = stretto.schedule(
            rich.loop, rich.machine, fuse=rich.fuse, max_stages=rich.max_stages
        )
    except StrettoError:
        return Pool(rich, machine, ())
    if found.success:
        for analysis in (found, *_Changes(case, rich, machine, found).all()):
            wrong = disagreements(rich.loop, machine, analysis, rich.max_stages)
            judged.append(Judged(analysis, bool(wrong)))
    return Pool(rich, machine, tuple(judged))


class _Changes:
    """Schedules near one that is legal."""

    def __init__(self, seed: Case, rich: Rich, machine: Machine, found: ScheduleAnalysis) -> None:
        assert found.ii is not None
        self.rng = random.Random(f"changes {seed}")
        self.rich, self.loop, self.machine = rich, rich.loop, machine
        self.ii, self.starts, self.fused = found.ii, found.starts, found.fused
        self.found = found

    def all(self) -> Iterator[ScheduleAnalysis]:
        for op in self.loop.ops:
            for step in (-1, 1):
                yield from self._edges(op.name, step, self.ii)
        for ii in {self.ii - 1, self.ii + 1, 2 * self.ii} - {0}:
            yield self._made(ii, self.starts)
            yield from self._edges(self.rng.choice(self.loop.ops).name, 1, ii)
        yield self._made(self.ii, {name: start + self.ii for name, start in self.starts.items()})
        yield from self._fusions()
        yield from self._published()

    def _made(
        self, ii: int, starts: dict[str, int], fused: tuple[tuple[str, ...], ...] | None = None
    ) -> ScheduleAnalysis:
        together = self.fused if fused is None else fused
        return analyse(self.loop, self.machine, Schedule(ii, starts, together))

    def _legal(self, analysis: ScheduleAnalysis) -> bool:
        limit = self.rich.max_stages
        return not verify(self.loop, self.machine, analysis, max_stages=limit)

    def _edges(self, name: str, step: int, ii: int) -> Iterator[ScheduleAnalysis]:
        """One operation moved, with those fused to it or alone: where the verdict changes."""
        together = {name}
        if self.rng.random() < 0.7:
            together |= {m for group in self.fused if name in group for m in group}
        starts = dict(self.starts)
        last = self._made(ii, starts)
        legal = self._legal(last)
        for _ in range(FAR):
            starts |= {member: starts[member] + step for member in together}
            if starts[name] < 0:
                return
            now = self._made(ii, starts)
            if self._legal(now) != legal:
                legal = not legal
                yield last
                yield now
            last = now

    def _fusions(self) -> Iterator[ScheduleAnalysis]:
        """Two operations more in a group, or a group less."""
        taken = {name for group in self.fused for name in group}
        free = [op for op in self.loop.ops if op.name not in taken and op.uses]
        pairs = [(a, b) for n, a in enumerate(free) for b in free[n + 1 :]]
        alike = [(a, b) for a, b in pairs if _slots_of(a.uses) == _slots_of(b.uses)]
        for a, b in [*alike[:8], *self.rng.sample(pairs, min(3, len(pairs)))]:
            for start in {self.starts[a.name], self.starts[b.name]}:
                starts = self.starts | {a.name: start, b.name: start}
                yield self._made(self.ii, starts, (*self.fused, (a.name, b.name)))
        for n in range(len(self.fused)):
            yield self._made(self.ii, self.starts, self.fused[:n] + self.fused[n + 1 :])

    def _published(self) -> Iterator[ScheduleAnalysis]:
        """Numbers beside the starts that are not so."""
        found = self.found
        yield replace(found, stage_count=found.stage_count + 1)
        yield replace(found, pipeline_depth=found.pipeline_depth + 1)
        at = self.rng.randrange(len(found.placements))
        for field in ("stage", "cycle"):
            placed = list(found.placements)
            number = cast(int, getattr(placed[at], field))
            placed[at] = replace(placed[at], **{field: number + 1})
            yield replace(found, placements=tuple(placed))
        for n, row in enumerate(found.storages):
            for other in (
                replace(row, lifetime=row.lifetime + 1),
                replace(row, ring_depth=row.ring_depth + 1),
                replace(row, bytes=row.bytes + 1),
            ):
                rows = (*found.storages[:n], other, *found.storages[n + 1 :])
                yield replace(found, storages=rows)
        for n, row in enumerate(found.memory):
            rows = (*found.memory[:n], replace(row, used=row.used + 1), *found.memory[n + 1 :])
            yield replace(found, memory=rows)


def _slots_of(uses: Any) -> list[str]:
    return sorted(use.slot for use in uses or () if use.duration)


ACCEPTS = "oracle refuses, verifier accepts"
REFUSES = "oracle accepts, verifier refuses"


def _against_the_oracle(seed: Case) -> tuple[str, ...]:
    found = pool(seed)
    loop, limit = replace(found.rich.loop), found.rich.max_stages  # nothing of it worked out yet
    told: set[str] = set()
    for one in found.judged:
        refused = verify(loop, found.machine, one.analysis, max_stages=limit)
        if bool(refused) != one.wrong:
            told.add(ACCEPTS if one.wrong else REFUSES)
    return tuple(sorted(told))


BY_HAND = "hand-made cases"


def _by_hand(name: Case) -> tuple[str, ...]:
    assert isinstance(name, str)
    if name in LEGAL:
        return (BY_HAND,) if LEGAL[name].violations() else ()
    rule, given, said = BROKEN[name]
    found = given.violations()
    text = "\n".join(violation.message for violation in found)
    as_it_should = {v.rule for v in found} == {rule} and all(words in text for words in said)
    return () if as_it_should else (BY_HAND,)


def _either(case: Case) -> tuple[str, ...]:
    return _by_hand(case) if case in BROKEN or case in LEGAL else _against_the_oracle(case)


def _cases(count: int) -> Iterator[Case]:
    yield from BROKEN
    yield from RARITIES
    yield from range(count)
    yield from (f"agents {seed}" for seed in range(count))


def _prepare(case: Case) -> object:
    return None if case in BROKEN or case in LEGAL else pool(case)


VERIFIER = Harness(_either, (ACCEPTS, BY_HAND), _cases, _prepare)


# What is removed ----------------------------------------------------------------------------

Keep = Callable[[Violation], bool]
VERIFY = "stretto.verification"


def without_rules(*names: str) -> Patch:
    """Validators left out, by their names."""

    def fewer(validators: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
        return tuple(v for v in validators if v.__name__ not in names)

    lists = ("VALIDATORS", "WITHOUT_II")
    return all_of(*(changed(f"{VERIFY}.{name}", fewer) for name in lists))


def _part_of_rule(name: str, keep: Keep) -> Patch:
    def filtered(validator: Callable[..., Iterator[Violation]]) -> Callable[..., Any]:
        if validator.__name__ != name:
            return validator

        def fewer(case: Any) -> Iterator[Violation]:
            return filter(keep, validator(case))

        return fewer

    def change(validators: tuple[Callable[..., Any], ...]) -> tuple[Callable[..., Any], ...]:
        return tuple(map(filtered, validators))

    return changed(f"{VERIFY}.VALIDATORS", change)


def _not_saying(words: str) -> Keep:
    return lambda violation: words not in violation.message


def _needed(other: Callable[[Any, Any, Any, Any], Any]) -> Patch:
    """How far apart two touches of a copy must be; `other` gives ... where it has no say."""

    def needed(original: Callable[..., int | None], args: tuple[Any, ...]) -> int | None:
        said = other(*args)
        return original(*args) if said is ... else said

    return around(f"{VERIFY}.dependence._Copy.needed", needed)


def _no_order(between: Callable[[Any, Any, Any], bool]) -> Patch:
    return _needed(lambda copy, a, b, _: None if between(copy, a, b) else ...)


def _copies(change_copy: Callable[[Any], Any], where: str = "_laid_out") -> Patch:
    """Copies of storages laid out otherwise, or shown otherwise to one check."""

    def shown(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if where == "_laid_out":
            return map(change_copy, original(*args))
        return original(*args[:-1], change_copy(args[-1]))

    return around(f"{VERIFY}.dependence.{where}", shown)


def _first_turns(fixed: bool) -> Callable[[Any], Any]:
    """A copy as its first turn leaves it: nobody takes it again."""

    def change(copy: Any) -> Any:
        if copy.storage.fixed != fixed:
            return copy
        return replace(copy, turns=[turn for turn in copy.turns if turn.first])

    return change


def _listed_turns(copy: Any) -> Any:
    """Without what touches a storage through an operand alone."""
    name = copy.storage.name

    def listed(turn: Any) -> bool:
        return turn.touch.writes or any(read.storage == name for read in turn.op.reads)

    return replace(copy, turns=[turn for turn in copy.turns if listed(turn)])


def _without_stated(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return original(replace(args[0], stated=()))


def _side_by_side(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return tuple(dict.fromkeys(members, 0) for members in original(*args))


def _by_gid_alone(_: object) -> Callable[[Loop], tuple[dict[str, int], ...]]:
    def groups(loop: Loop) -> tuple[dict[str, int], ...]:
        members: dict[int, dict[str, int]] = {}
        for op in loop.ops:
            asked = op.constraint
            if asked.gid is not None:
                members.setdefault(asked.gid, {})[op.name] = asked.stage_offset
        return tuple(names for names in members.values() if len(names) > 1)

    return groups


def _touching_now(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return {
        name: [replace(touch, back=0) for touch in found] for name, found in original(*args).items()
    }


REUSE_ORDER = _copies(_first_turns(fixed=False), "_out_of_order")
CAPS = silent(f"{VERIFY}.storage._caps")
HANDED_ON = "capped rings: cap and order"

_FOUND: dict[str, dict[str, Case]] = {
    "rule dependence": {BY_HAND: "read early", ACCEPTS: 0},
    "rule slot": {BY_HAND: "same stage", ACCEPTS: 1},
    "rule pool": {BY_HAND: "pool over", ACCEPTS: 1},
    "rule depth": {BY_HAND: "deep", ACCEPTS: 0},
    "rule group": {BY_HAND: "gid", ACCEPTS: 2},
    "rule registers": {BY_HAND: "two tiles", ACCEPTS: "agents 42"},
    "registers: in place": {BY_HAND: "two tiles", REFUSES: "agents 27"},
    "registers: sums": {BY_HAND: "sums"},
    "registers: awaited": {BY_HAND: "not waited for"},
    "registers: storages": {BY_HAND: "kept in registers", ACCEPTS: "agents 42"},
    "registers: replicas": {BY_HAND: "of a replica", ACCEPTS: "agents 42"},
    "rule storage": {BY_HAND: "another budget", ACCEPTS: 0},
    "rule fusion": {BY_HAND: "over cap", ACCEPTS: 0},
    "rule pin": {BY_HAND: "pinned stage"},
    "rule order": {BY_HAND: "late origin", ACCEPTS: 0},
    "rule names": {BY_HAND: "missing"},
    "rule interval": {BY_HAND: "no ii"},
    "rule target": {BY_HAND: "another machine"},
    "dependence: stated": {BY_HAND: "carried", ACCEPTS: 3, REFUSES: 85},
    "dependence: flows": {BY_HAND: "read early", ACCEPTS: 0, REFUSES: 10},
    "dependence: anti": {ACCEPTS: 0},
    "dependence: output": {ACCEPTS: 2},
    "dependence: memory": {ACCEPTS: 2},
    "dependence: carried on fixed storages": {ACCEPTS: 2},
    "dependence: behind an updater": {ACCEPTS: "behind an updater"},
    "dependence: carried read after its write": {ACCEPTS: 9},
    "dependence: updaters": {ACCEPTS: "a writer meets itself"},
    "dependence: updaters wait": {REFUSES: 16},
    "dependence: completion": {ACCEPTS: 0},
    "dependence: the last writer": {ACCEPTS: "behind an updater"},
    "dependence: flows in storages": {REFUSES: 4},
    "dependence: implied reads": {ACCEPTS: 2},
    "dependence: one cycle": {ACCEPTS: "a knot of a ring"},
    "dependence: one cycle, rings": {ACCEPTS: "a knot of a ring"},
    "dependence: one cycle, values": {ACCEPTS: "a knot of a value"},
    "reads: implied": {ACCEPTS: 2, REFUSES: 4},
    "reads: views": {REFUSES: 2},
    "reads: carried": {BY_HAND: "carried over", REFUSES: 4},
    "orders of one iteration: storages": {REFUSES: 8},
    "slot, pool: together": {BY_HAND: "same stage", ACCEPTS: 1},
    "slot, pool: alone": {BY_HAND: "hold longer than II", ACCEPTS: 149},
    "slot: fused holds": {BY_HAND: "unlike begins", ACCEPTS: 60},
    "depth: max_depth": {BY_HAND: "deep", ACCEPTS: 27},
    "depth: max_stages": {BY_HAND: "max stages", ACCEPTS: 0},
    "group: leaders": {BY_HAND: "gid", ACCEPTS: 76},
    "group: offsets": {BY_HAND: "stage offset", ACCEPTS: 69, REFUSES: 69},
    "capped rings: cap and order": {ACCEPTS: 9},
    "storage: budgets": {BY_HAND: "over budget", ACCEPTS: 32},
    "storage: published space": {BY_HAND: "space"},
    "storage: published bytes": {BY_HAND: "bytes", ACCEPTS: 0},
    "storage: published lifetime": {BY_HAND: "lifetime", ACCEPTS: 0},
    "storage: published ring depth": {BY_HAND: "ring one small", ACCEPTS: 0},
    "storage: unknown rows": {BY_HAND: "row unknown"},
    "storage: rows twice": {BY_HAND: "row twice"},
    "storage: missing rows": {BY_HAND: "row missing"},
    "storage: published budgets": {BY_HAND: "another budget"},
    "storage: published memory": {BY_HAND: "memory", ACCEPTS: 0},
    "fusion: same kind": {BY_HAND: "kind"},
    "fusion: same bank": {BY_HAND: "bank", ACCEPTS: 10},
    "fusion: same slots": {BY_HAND: "slots", ACCEPTS: 10},
    "fusion: fusion cap is": {BY_HAND: "over cap"},
    "fusion: cannot be shared": {BY_HAND: "slot cannot", ACCEPTS: 9},
    "fusion: holds no slot": {BY_HAND: "holds nothing", ACCEPTS: 66},
    "fusion: no such operation": {BY_HAND: "ghost"},
    "fusion: times in one": {BY_HAND: "twice in a group"},
    "fusion: it needs 2": {BY_HAND: "one member"},
    "fusion: one group": {BY_HAND: "two groups"},
    "fusion: starts": {BY_HAND: "start"},
    "fusion: nesting": {BY_HAND: "nesting", ACCEPTS: 93},
    "fusion: paths": {BY_HAND: "path", ACCEPTS: 156},
    "fusion: contraction": {BY_HAND: "contraction"},
    "order: origin": {BY_HAND: "late origin", ACCEPTS: 1},
    "order: ranks": {BY_HAND: "order"},
    "order: stages": {BY_HAND: "stage", ACCEPTS: 0},
    "order: cycles": {ACCEPTS: 0},
    "order: stage count": {BY_HAND: "stage count", ACCEPTS: 0},
    "order: depth": {BY_HAND: "pipeline depth", ACCEPTS: 0},
    "rule table": {BY_HAND: "table held"},
    "table: cycles": {BY_HAND: "table short"},
    "table: held": {BY_HAND: "table held"},
    "table: drawn": {BY_HAND: "table drawn"},
    "table: inside a row": {BY_HAND: "table late"},
    "table: words": {BY_HAND: "table word"},
    "names: missing": {BY_HAND: "missing"},
    "names: unknown": {BY_HAND: "unknown"},
    "names: twice": {BY_HAND: "twice"},
    "names: negative": {BY_HAND: "negative"},
}


def _mutant(name: str, removed: str, patch: Patch, covered: str = "", shown_by: str = "") -> Mutant:
    return Mutant(
        "verifier", name, removed, patch, VERIFIER, _FOUND.get(name, {}), covered, shown_by
    )


def _rules() -> Iterator[Mutant]:
    said = {
        "dependence": "No order of operations is looked at.",
        "slot": "No slot is counted.",
        "pool": "No pool is counted.",
        "depth": "Neither max_depth nor max_stages is looked at.",
        "group": "Groups need not share a stage.",
        "storage": "Copies, budgets, caps and published rows are not looked at.",
        "registers": "Nothing is counted that lives in the registers of agents.",
        "fusion": "Any operations may be fused.",
        "pin": "Operations need not stand where they are pinned.",
        "order": "Origin, stages, ranks and counts are not looked at.",
        "names": "Operations may be missing, unknown, placed twice or before 0.",
        "interval": "The II may be missing or 0.",
        "target": "The schedule may be of another machine.",
        "table": "The published reservation table is not looked at.",
    }
    for rule, removed in said.items():
        yield _mutant(f"rule {rule}", removed, without_rules(rule))


def _orders() -> Iterator[Mutant]:
    ordering, required = f"{VERIFY}.dependence", f"{VERIFY}.requirements"
    yield _mutant(
        "dependence: stated",
        "Stated dependences are not looked at.",
        all_of(
            *(
                around(f"{VERIFY}.{m}.stated_and_flows", _without_stated)
                for m in ("layout", "requirements")
            )
        ),
    )
    yield _mutant(
        "dependence: flows",
        "Operands need not wait for their producers.",
        silent(f"{required}._flows"),
    )
    yield _mutant(
        "dependence: anti",
        "A write need not wait for the reads before it.",
        _no_order(lambda _, a, b: not a.touch.writes and b.touch.writes),
    )
    yield _mutant(
        "dependence: output",
        "A write need not wait for the writes before it.",
        _no_order(lambda _, a, b: a.touch.writes and b.touch.writes),
    )
    yield _mutant(
        "dependence: memory",
        "A read need not wait for the writes before it.",
        _no_order(lambda _, a, b: a.touch.writes and not b.touch.writes),
    )
    yield _mutant(
        "dependence: carried on fixed storages",
        "Of a fixed storage one iteration is laid out, not three.",
        _copies(_first_turns(fixed=True)),
    )
    yield _mutant(
        "dependence: behind an updater",
        "Of a fixed storage two iterations are laid out, not three.",
        replaced(f"{ordering}.SHOWN", 2),
    )
    yield _mutant(
        "dependence: carried read after its write",
        "A read of an older instance need not wait for the write of it.",
        _no_order(lambda _, a, b: a.touch.writes and b.touch.back > 0),
    )
    yield _mutant(
        "dependence: rings handed on",
        "A copy of a ring may be taken again while its last instance is in use.",
        REUSE_ORDER,
        "A ring is as deep as what lives in it, so its copies are free in time; a cap below that "
        "is told by rule storage.",
        HANDED_ON,
    )
    yield _mutant(
        "dependence: updaters",
        "Whoever writes a fixed storage need not wait for its own last write, updater or not.",
        _no_order(
            lambda copy, a, b: copy.storage.fixed and a.touch.writes and a.op.name == b.op.name
        ),
    )
    yield _mutant(
        "dependence: updaters wait",
        "An in-place updater waits for its own last turn.",
        _needed(
            lambda copy, a, b, _: (
                a.op.completion
                if copy.storage.fixed and a.op.name == b.op.name and a.iteration != b.iteration
                else ...
            )
        ),
    )
    yield _mutant(
        "dependence: completion",
        "Whoever overwrites waits for the latency of those before, not for their completion.",
        _needed(
            lambda _, a, b, __: a.op.ready if b.touch.writes and a.op.name != b.op.name else ...
        ),
    )
    yield _mutant(
        "dependence: the last writer",
        "A read waits for the last write before it, not for those before that.",
        _needed(
            lambda _, a, b, feeder: (
                None if a.touch.writes and not b.touch.writes and a is not feeder else ...
            )
        ),
    )
    yield _mutant(
        "dependence: flows in storages",
        "A value in a storage is read when its writer is ready, whatever its operand says.",
        _copies(lambda copy: replace(copy, flows=set())),
    )
    yield _mutant(
        "dependence: implied reads",
        "Whoever takes an operand that lives in a storage, unlisted, is ordered with nobody there.",
        _copies(_listed_turns),
    )
    yield _mutant(
        "dependence: one cycle",
        "Operations of one cycle that take no time may wait for each other.",
        silent(f"{ordering}._at_one_cycle"),
    )
    yield _mutant(
        "dependence: one cycle, rings",
        "In one cycle nobody need hand a copy of a ring on before it is taken.",
        _copies(_first_turns(fixed=False), "_at_once"),
    )
    yield _mutant(
        "dependence: one cycle, values",
        "In one cycle no value and no stated order counts.",
        around(f"{ordering}._at_one_cycle", lambda original, args: original(args[0], (), args[2])),
    )


def _reads() -> Iterator[Mutant]:
    required = f"{VERIFY}.requirements"
    yield _mutant(
        "reads: implied",
        "An operand that lives in a storage does not read it.",
        giving(f"{required}._lies_in", {}),
    )
    yield _mutant(
        "reads: views",
        "A view is an operation like any other, not a name.",
        giving(f"{required}._only_names", False),
    )
    yield _mutant(
        "reads: carried",
        "Whoever reads an older instance is taken to read its own iteration's.",
        around(f"{VERIFY}.layout.touches", _touching_now),
    )
    yield _mutant(
        "orders of one iteration: storages",
        "Storages put nothing in order inside an iteration, for ranks and for fusion.",
        silent(f"{required}._ordered"),
    )


def _holding() -> Iterator[Mutant]:
    yield _mutant(
        "slot, pool: together",
        "Holds are not summed over operations and iterations.",
        silent(f"{VERIFY}.layout.Layout.moments"),
    )
    yield _mutant(
        "slot, pool: alone",
        "One hold may be longer than all iterations have room for.",
        keeping(f"{VERIFY}.slot.overfull", _not_saying(" alone ")),
    )
    yield _mutant(
        "slot: fused holds",
        "A fused group holds what its first member holds.",
        around(f"{VERIFY}.slot._join", lambda _, args: args[0]),
    )
    yield _mutant(
        "depth: max_depth",
        "max_depth of an operation is not looked at.",
        _part_of_rule("depth", _not_saying("max_depth")),
    )
    yield _mutant(
        "depth: max_stages",
        "max_stages is not looked at.",
        _part_of_rule("depth", _not_saying("are allowed")),
    )
    yield _mutant(
        "group: leaders",
        "leader_gid joins nothing.",
        changed(f"{VERIFY}.place.groups", _by_gid_alone),
    )
    yield _mutant(
        "group: offsets",
        "Members of a group stand in one stage, whatever their offsets.",
        around(f"{VERIFY}.place.groups", _side_by_side),
    )


def _living() -> Iterator[Mutant]:
    living = f"{VERIFY}.registers"
    yield _mutant(
        "registers: in place",
        "Arithmetic takes registers when it is issued, beside those of its operands.",
        around(f"{living}.opcode", lambda original, args: original(*args)._replace(memory=True)),
    )
    yield _mutant(
        "registers: sums",
        "What a product adds to is kept beside its result.",
        giving(f"{living}._adds_to", False),
    )
    yield _mutant(
        "registers: awaited",
        "What a product reads may be overwritten before it was waited for.",
        silent(f"{living}._waiters"),
    )
    yield _mutant(
        "registers: storages",
        "Storages in registers take none.",
        giving(f"{living}._stored", None),
    )
    yield _mutant(
        "registers: replicas",
        "All replicas of an agent are one.",
        around(f"{living}._issued_by", _one_of_all),
    )


def _one_of_all(original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    found = original(*args)
    return None if found is None else (found[1], found[1])


def _storing() -> Iterator[Mutant]:
    storing = f"{VERIFY}.storage"
    rows = f"{storing}._published_rows"
    yield _mutant(
        "storage: caps",
        "A ring may be deeper than its cap.",
        CAPS,
        "On a ring of as many copies as the cap says, two touches are then out of order, which "
        "rule dependence tells.",
        HANDED_ON,
    )
    yield _mutant(
        HANDED_ON,
        "Both of: a ring may be deeper than its cap, and its copies are handed on in any order.",
        all_of(CAPS, REUSE_ORDER),
    )
    yield _mutant("storage: budgets", "A space may be too full.", silent(f"{storing}._budgets"))
    for what in ("space", "bytes", "lifetime", "ring depth"):
        removed = f"The published {what} of a storage is not compared."
        yield _mutant(
            f"storage: published {what}", removed, keeping(rows, _not_saying(f"have {what} "))
        )
    for what, words, removed in (
        ("unknown rows", "is no storage", "Rows may be published for what is no storage."),
        ("rows twice", " published rows", "A storage may be published twice."),
        ("missing rows", "no published row", "A storage may be left out."),
    ):
        yield _mutant(f"storage: {what}", removed, keeping(rows, _not_saying(words)))
    yield _mutant(
        "storage: published budgets",
        "The published budget of a space is not compared.",
        silent(f"{storing}._published_budgets"),
    )
    yield _mutant(
        "storage: published memory",
        "The published bytes of a space are not compared.",
        silent(f"{storing}._published_memory"),
    )


def _fusing() -> Iterator[Mutant]:
    fusing = f"{VERIFY}.fusion"
    for name, words, removed in (
        ("_alike", "same kind", "Fused operations may be of several kinds."),
        ("_alike", "same bank", "Fused operations may have several banks, or none stated."),
        ("_alike", "same slots", "Fused operations may hold different slots."),
        ("_slots", "fusion cap is", "More operations may share a slot than its cap says."),
        ("_slots", "cannot be shared", "A slot may be shared that knows no fusion."),
        ("_slots", "holds no slot", "Operations may be fused that hold nothing."),
        ("_membership", "no such operation", "An operation may be fused that the loop lacks."),
        ("_membership", "times in one", "An operation may stand in one group twice."),
        ("_membership", "it needs 2", "A group may have one member."),
    ):
        yield _mutant(f"fusion: {words}", removed, keeping(f"{fusing}.{name}", _not_saying(words)))
    for name, what, removed in (
        ("_in_one_group", "one group", "An operation may be in two groups."),
        ("_starts", "starts", "Fused operations may start apart."),
        ("_nesting", "nesting", "An operation may be fused with one that encloses it."),
        ("_paths", "paths", "A member may wait for another in the same iteration."),
        ("_contraction", "contraction", "Groups may wait for one another in one iteration."),
    ):
        yield _mutant(f"fusion: {what}", removed, silent(f"{fusing}.{name}"))


def _placing() -> Iterator[Mutant]:
    placing = f"{VERIFY}.order"
    for name, what, removed in (
        ("_origin", "origin", "The first stage need not be 0."),
        ("_ranks", "ranks", "The published order inside stages is not compared."),
    ):
        yield _mutant(f"order: {what}", removed, silent(f"{placing}.{name}"))
    for function, what, words, removed in (
        ("_stages", "stages", "be in stage", "The published stage is not compared."),
        ("_stages", "cycles", "be at cycle", "The published cycle is not compared."),
        ("_counts", "stage count", "the stage count", "The published stage count is not compared."),
        ("_counts", "depth", "the pipeline depth", "The published pipeline depth is not compared."),
    ):
        patch = keeping(f"{placing}.{function}", _not_saying(words))
        yield _mutant(f"order: {what}", removed, patch)
    for what, words, removed in (
        ("missing", "has no place", "An operation may have no place."),
        ("unknown", "no such operation", "A place may be given to what is no operation."),
        ("twice", " times: at ", "An operation may be placed twice."),
        ("negative", "no start is below 0", "Starts may be below 0."),
    ):
        yield _mutant(f"names: {what}", removed, _part_of_rule("names", _not_saying(words)))


def _tables() -> Iterator[Mutant]:
    published = f"{VERIFY}.table"
    yield _mutant(
        "table: cycles",
        "The rows of a reservation table may leave cycles out, or have more.",
        _part_of_rule("table", _not_saying("the reservation table has ")),
    )
    for what, rule in (("held", "slot"), ("drawn", "pool")):
        yield _mutant(
            f"table: {what}",
            f"What a reservation table says is {what} is not compared.",
            _part_of_rule("table", _not_saying(f" of {rule} `")),
        )
    yield _mutant(
        "table: inside a row",
        "A reservation table is looked at where its rows begin, and nowhere else.",
        giving(f"{published}.edges", frozenset[int]()),
    )
    yield _mutant(
        "table: words",
        "The words of a reservation table are not compared.",
        silent(f"{published}._words"),
    )


MUTANTS = (
    *_rules(),
    *_orders(),
    *_reads(),
    *_holding(),
    *_storing(),
    *_living(),
    *_fusing(),
    *_placing(),
    *_tables(),
)
