"""Everything Stretto says of a loop, against oracles that share nothing with it, at length.

    rich loop ──► schedule ──► verifier, oracle, values, simulator    all content
                     │
                     └─ start or II changed ──► verifier = oracle     legal or not, both ways

    .venv/bin/python tests/soundness.py --loops 20000 --workers 2 --seed 0
    .venv/bin/python tests/soundness.py --agents --loops 20000       loops like those of kernels

Prints a table of counts and every disagreement with its seed; exit code 1 where there is any.
`examine(seed)` is one loop of it; the test suite calls the same.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import stretto
from absolute import disagreements, timeline
from agent_loops import agent_problem
from interpreter import misread
from rich_loops import Rich, features, rich_agents, rich_problem
from stretto.deadline import OverdueError
from stretto.errors import InfeasibleError
from stretto.loop import Loop
from stretto.machine import Machine
from stretto.materialization import MODES, MaterializeError, Mode, materialize
from stretto.simulation import simulate_program
from stretto.solution import Schedule, ScheduleAnalysis
from stretto.solution.views import analyse
from stretto.solve import IllegalScheduleError
from stretto.verification import verify

MUTANTS = 4
"""Changes of the schedule of each loop."""
EDGE = 24
"""Cycles an operation is moved to find where legality ends."""
PROVED = 0.06
SERIAL = 0.08
EXPLAINED = 0.01
"""Shares of the loops that are proved, scheduled serially, and explained."""
SECONDS = 2.0
"""Limit of a proof."""
AGENTS = ("tma", "mma", "simt")
TOLD = 0.2
"""Share of the refused changes that are carried out as well."""
NORMAL = 0.03
"""Share of the loops with agents that are worth more than a quick search."""
ATTACKED = 0.05
"""Share of the loops that are not proved whose bound is attacked as well."""
STEPS = 60
"""Repairs of one such attack."""
CHUNK = 20
"""Loops a worker takes at a time."""


@dataclass(frozen=True)
class Finding:
    """Two sides that do not agree on a loop."""

    seed: int
    cause: str
    """Who says what, in a few words that are the same for every loop."""
    told: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.cause}: {self.told}"


@dataclass
class Outcome:
    """What was seen of some loops."""

    counts: Counter[str] = field(default_factory=Counter[str])
    features: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def add(self, other: Outcome) -> None:
        """Take in what was seen elsewhere."""
        self.counts += other.counts
        self.features += other.features
        self.findings += other.findings


def examine(seed: int, agents: bool = False) -> Outcome:
    """One loop, all the way; nothing is raised. `agents`: as kernels are lowered to."""
    return _Examination(seed, agents).run()


class _Examination:
    """One loop, its schedule and all that is asked of it."""

    def __init__(self, seed: int, agents: bool) -> None:
        self.seed = seed
        self.rng = random.Random(f"soundness {seed}")
        if agents:
            self.rich: Rich = agent_problem(seed)
        else:
            self.rich = rich_agents(seed) if seed % 4 == 3 else rich_problem(seed)
        self.effort = "normal" if not agents or self.rng.random() < NORMAL else "quick"
        self.loop: Loop = self.rich.loop
        self.machine: Machine = self.rich.machine.with_slots(self.loop.slots)
        self.outcome = Outcome()

    def run(self) -> Outcome:
        self.outcome.counts["loops"] += 1
        self.outcome.features.update(features(self.rich))
        share = self.rng.random()
        try:
            if share < EXPLAINED:
                self._explained()
            else:
                proved = share < EXPLAINED + PROVED
                serial = not proved and share < EXPLAINED + PROVED + SERIAL
                self._scheduled(proved, "serial" if serial else "auto")
        except Exception as error:  # whatever it is, it is a finding
            self._find(type(error).__name__, str(error))
        return self.outcome

    def _find(self, cause: str, told: object) -> None:
        self.outcome.findings.append(Finding(self.seed, cause, str(told)))

    # Schedules --------------------------------------------------------------------------------

    def _scheduled(self, proved: bool, generator: str) -> None:
        counts = self.outcome.counts
        analysis = self._schedule(proved, generator)
        if analysis is None or not analysis.success:
            counts["no schedule"] += 1
            return
        counts["schedules"] += 1
        counts["serial schedules"] += analysis.generator == "serial"
        counts["fused schedules"] += bool(analysis.fused)
        counts["spilling schedules"] += bool(analysis.spilled)
        counts["rings of several copies"] += any(s.ring_depth > 1 for s in analysis.storages)
        if proved:
            assert analysis.proof is not None
            counts["proved"] += analysis.proof.optimal
            self._no_worse(analysis)
        self._legal(analysis)
        self._simulated(analysis)
        for mutant in self._mutants(analysis):
            self._judged(mutant, analysis)
        if proved or self.rng.random() < ATTACKED:
            self._attacked(analysis)

    def _schedule(self, proved: bool, generator: str) -> ScheduleAnalysis | None:
        try:
            return stretto.schedule(
                self.loop,
                self.rich.machine,
                generator,
                fuse=self.rich.fuse,
                max_stages=self.rich.max_stages,
                prove=proved,
                effort=self.effort,
                time_limit=SECONDS if proved else None,
            )
        except InfeasibleError:
            return None
        except OverdueError:  # a slow machine is no finding
            return None
        except IllegalScheduleError as error:
            self.outcome.counts["refused by the verifier"] += 1
            rules = sorted({violation.rule for violation in error.violations})
            self._find(f"illegal schedule of {error.generator}: {', '.join(rules)}", error)
            return None

    def _no_worse(self, proved: ScheduleAnalysis) -> None:
        """A proof in time is no worse than the generators, and refutes nothing they find."""
        other = self._schedule(False, "auto")
        if other is not None and other.ii is not None:
            assert proved.ii is not None
            in_time = not any("time limit" in warning.text for warning in proved.warnings)
            same = proved.spilled or not other.spilled  # what spills may be shorter
            if proved.ii > other.ii and in_time and same:
                self._find("proof worse than generators", f"II {proved.ii}, {other.ii}")
            self._refutes_nothing(other, proved)

    def _refutes_nothing(self, legal: ScheduleAnalysis, claims: ScheduleAnalysis) -> None:
        """No bound, proof or proved refusal excludes a schedule that is legal.

        They are of schedules that keep to the registers: one that spills may be shorter.
        """
        ii = legal.ii
        assert ii is not None
        if legal.spilled and not claims.spilled:
            return
        if claims.bounds is not None and ii < claims.bounds.mii:
            self._find("legal below the MII", f"II {ii}, MII {claims.bounds.mii}: {legal.starts}")
        if claims.proof is not None and ii < claims.proof.lower_bound:
            told = f"II {ii}, {claims.proof}: {legal.starts}"
            self._find("legal below a proved bound", told)
        for refusal in claims.refused:
            if refusal.proved and refusal.ii <= ii <= (refusal.through or refusal.ii):
                self._find("legal at a refuted II", f"II {ii}: {refusal.reason}: {legal.starts}")

    def _explained(self) -> None:
        try:
            found = stretto.explain(
                self.loop,
                self.rich.machine,
                fuse=self.rich.fuse,
                max_stages=self.rich.max_stages,
                time_limit=SECONDS,
            )
        except (InfeasibleError, OverdueError):
            self.outcome.counts["no schedule"] += 1
            return
        self.outcome.counts["explained"] += 1
        if found.best.success:
            self._legal(found.best)

    # What is said of them ---------------------------------------------------------------------

    def _legal(self, analysis: ScheduleAnalysis) -> None:
        limit = self.rich.max_stages
        refused = verify(self.loop, self.machine, analysis, max_stages=limit)
        wrong = disagreements(self.loop, self.machine, analysis, limit)
        misses = misread(self.loop, analysis)
        where = f"II {analysis.ii}, {analysis.starts}, fused {analysis.fused}"
        if refused:
            self._find("schedule refused by the verifier", f"{refused[0]} ({where})")
        if wrong:
            self._find("schedule refused by the oracle", f"{wrong[0]} ({where})")
        if misses:
            self._find("wrong values by the clock", f"{misses[0]} ({where})")
        if not (refused or wrong or misses):
            self.outcome.counts["schedules all agree on"] += 1
        self._refutes_nothing(analysis, analysis)

    def _simulated(self, analysis: ScheduleAnalysis) -> None:
        for mode in MODES:
            agents = {op.name: self.rng.choice(AGENTS) for op in self.loop.ops}
            specialized = mode == "specialized"
            try:
                program = materialize(
                    self.loop, self.machine, analysis, mode, agents=agents if specialized else None
                )
            except MaterializeError as error:
                self._find(f"{mode}: {type(error).__name__}", f"{error} ({analysis.starts})")
                continue
            few, steady = self.rng.choice([0, 1, 2]), 2 * program.stage_count + 2
            for trip_count in (few, steady):
                run = simulate_program(program, self.machine, analysis.starts, trip_count)
                promised = (analysis.ii, (program.stage_count - 1) * program.ii)
                told = f"{trip_count} iterations, II {analysis.ii}, {analysis.starts}, {agents}"
                if run.violations:
                    self._find(f"{mode}: {run.violations[0].name}", f"{run.violations[0]} ({told})")
                elif run.deadlock or not run.equal:
                    self._find(f"{mode}: {'deadlock' if run.deadlock else 'other values'}", told)
                elif (run.cycles_per_iteration, run.prologue_cycles) != promised:
                    found = (run.cycles_per_iteration, run.prologue_cycles)
                    self._find(f"{mode}: other cycles", f"{found}, not {promised} ({told})")
                else:
                    self._count_run(mode)

    def _count_run(self, mode: Mode) -> None:
        self.outcome.counts[f"simulated {mode}"] += 1

    # Changed schedules ------------------------------------------------------------------------

    def _mutants(self, analysis: ScheduleAnalysis) -> Iterator[ScheduleAnalysis]:
        """Other starts, another II, or two operations fused; all else derived anew."""
        rng = self.rng
        assert analysis.ii is not None
        for _ in range(MUTANTS):
            starts, ii, fused = dict(analysis.starts), analysis.ii, analysis.fused
            what = rng.random()
            if what < 0.6:
                yield from self._edge(starts, rng.choice([ii, ii, ii, ii + 1, 2 * ii]), fused)
                continue
            if what < 0.75:
                name = rng.choice(self.loop.ops).name
                far = rng.choice([1, 2, 3, rng.randint(1, 2 * ii)])
                starts[name] = max(0, starts[name] + rng.choice([-far, far]))
            elif what < 0.87:
                ii = max(1, ii + rng.choice([-2, -1, -1, 1, 2, rng.randint(1, ii)]))
            else:
                fused = self._fused(starts, fused)
            yield analyse(self.loop, self.machine, Schedule(ii, starts, fused))

    def _edge(
        self, starts: dict[str, int], ii: int, fused: tuple[tuple[str, ...], ...]
    ) -> Iterator[ScheduleAnalysis]:
        """One operation moved until the verifier changes its mind: both sides of that edge."""
        name = self.rng.choice(self.loop.ops).name
        step = self.rng.choice([-1, 1])
        before: tuple[ScheduleAnalysis, bool] | None = None
        for _ in range(EDGE):
            found = analyse(self.loop, self.machine, Schedule(ii, starts, fused))
            limit = self.rich.max_stages
            legal = not verify(self.loop, self.machine, found, max_stages=limit)
            if before is not None and legal != before[1]:
                yield before[0]
                yield found
                return
            before = found, legal
            starts = {**starts, name: starts[name] + step}
            if starts[name] < 0:
                break
        if before is not None:
            yield before[0]

    def _fused(
        self, starts: dict[str, int], fused: tuple[tuple[str, ...], ...]
    ) -> tuple[tuple[str, ...], ...]:
        """Two operations more, or a group more, or one group less; members start together."""
        taken = {name for group in fused for name in group}
        free = [op.name for op in self.loop.ops if op.name not in taken and op.uses]
        if fused and self.rng.random() < 0.3:
            return fused[1:]
        if len(free) < 2:
            return fused
        pair = self.rng.sample(free, 2)
        starts[pair[1]] = starts[pair[0]]
        return (*fused, tuple(pair))

    def _judged(self, mutant: ScheduleAnalysis, claims: ScheduleAnalysis) -> None:
        limit = self.rich.max_stages
        refused = verify(self.loop, self.machine, mutant, max_stages=limit)
        wrong = disagreements(self.loop, self.machine, mutant, limit)
        counts = self.outcome.counts
        where = f"II {mutant.ii}, {mutant.starts}, fused {mutant.fused}"
        if refused and not wrong:
            rules = ", ".join(sorted({violation.rule for violation in refused}))
            self._find(f"the verifier alone refuses: {rules}", f"{refused[0]} ({where})")
        elif wrong and not refused:
            self._find("the oracle alone refuses", f"{wrong[0]} ({where})")
        elif wrong:
            counts["changed schedules both refuse"] += 1
            if self.rng.random() < TOLD:
                told = "told by values too" if misread(self.loop, mutant) else "not told by values"
                counts[f"changed schedules both refuse, {told}"] += 1
        else:
            counts["changed schedules both accept"] += 1
            self._refutes_nothing(mutant, claims)
            misses = misread(self.loop, mutant)
            if misses:
                self._find("wrong values by the clock", f"{misses[0]} ({where})")

    # Bounds that must hold --------------------------------------------------------------------

    def _attacked(self, claims: ScheduleAnalysis) -> None:
        """Look for a legal schedule below what is said to be the least II, by repair at random."""
        assert claims.proof is not None
        ii = claims.proof.lower_bound - 1
        if ii < 1:
            return
        self.outcome.counts["bounds attacked"] += 1
        starts = dict(claims.starts)
        for _ in range(STEPS):
            least = min(starts.values()) // ii * ii
            starts = {name: start - least for name, start in starts.items()}
            found = analyse(self.loop, self.machine, Schedule(ii, starts, claims.fused))
            line = timeline(self.loop, found)
            broken = [
                o for o in line.orders if line.start(o.later) < line.start(o.earlier) + o.least
            ]
            if broken:
                order = self.rng.choice(broken)
                short = line.start(order.earlier) + order.least - line.start(order.later)
                name = line.op(order.later).name
            elif disagreements(self.loop, self.machine, found, self.rich.max_stages):
                name, short = self.rng.choice(self.loop.ops).name, self.rng.randint(-ii, ii)
            else:
                self._refutes_nothing(found, claims)
                return
            for group in claims.fused:
                if name in group:
                    starts |= {member: starts[member] + short for member in group if member != name}
            starts[name] += short
            if min(starts.values()) < 0:
                starts = {name: start + ii * len(starts) for name, start in starts.items()}


# The script ---------------------------------------------------------------------------------


def _chunk(seeds: range, agents: bool) -> Outcome:
    os.environ["STRETTO_REFUSED"] = "error"  # a schedule that the verifier refuses is a finding
    outcome = Outcome()
    for seed in seeds:
        outcome.add(examine(seed, agents))
    return outcome


def _all(first: int, loops: int, workers: int, agents: bool) -> Outcome:
    chunks = [
        range(at, min(at + CHUNK, first + loops)) for at in range(first, first + loops, CHUNK)
    ]
    outcome = Outcome()
    with ProcessPoolExecutor(workers) as pool:
        for part in pool.map(partial(_chunk, agents=agents), chunks):
            outcome.add(part)
            if sys.stderr.isatty():
                done, found = outcome.counts["loops"], len(outcome.findings)
                sys.stderr.write(f"\r{done:,} of {loops:,} loops, {found} disagreements ")
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * 60 + "\r")
    return outcome


def _table(title: str, counts: Counter[str]) -> str:
    width = max(map(len, counts), default=0)
    rows = [f"  {name:{width}}  {number:9,}" for name, number in sorted(counts.items())]
    return "\n".join([title, *rows, ""])


def main() -> int:
    """Run, print, and say by the exit code whether all agree."""
    parser = argparse.ArgumentParser(description="Random loops against independent oracles.")
    parser.add_argument("--loops", type=int, default=2000, help="how many (default: 2000)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    parser.add_argument("--agents", action="store_true", help="loops as kernels are lowered to")
    asked = parser.parse_args()
    began = perf_counter()
    outcome = _all(asked.seed, asked.loops, asked.workers, asked.agents)
    seconds = perf_counter() - began
    causes = Counter(finding.cause for finding in outcome.findings)
    for finding in sorted(outcome.findings, key=lambda f: (f.cause, f.seed)):
        sys.stdout.write(f"{finding}\n")
    sys.stdout.write(_table("features, in so many loops", outcome.features))
    sys.stdout.write(_table("counts", outcome.counts))
    sys.stdout.write(_table("disagreements", causes) if causes else "no disagreement\n")
    sys.stdout.write(f"{seconds:.0f} s, {asked.loops / seconds:.1f} loops a second\n")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
