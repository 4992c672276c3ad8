"""One operation issues: where its operands come from, and whether it should be issuing at all.

operands   direct, through a pipe, out of a storage      not there: unwritten
waits      tokens of the same agent                      later than the schedule: stall
knowledge  everything the loop asks for                  by luck alone: unwritten, overwritten
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from stretto.materialize.pipelined import (
    Alias,
    Direct,
    Issue,
    LiveIn,
    Path,
    Program,
    Stored,
    Supply,
    Through,
)
from stretto.simulate.knowledge import Levels
from stretto.simulate.memory import Memory, Moment
from stretto.simulate.needs import Requirement
from stretto.simulate.values import Datum, Domain


@dataclass(frozen=True, slots=True)
class Made:
    """What an agent has of an operation: registers hold the last results."""

    step: int
    iteration: int
    cycle: int
    results: tuple[Datum, ...]


@dataclass(frozen=True)
class Issuer:
    """Issues operations for all agents."""

    program: Program
    starts: Mapping[str, int]
    domain: Domain
    needs: Mapping[str, tuple[Requirement, ...]]
    levels: Levels
    memory: Memory

    @cached_property
    def _results(self) -> dict[str, int]:
        """Value to its number among the results of its operation."""
        return {name: n for op in self.program.loop.ops for n, name in enumerate(op.results)}

    # Before -----------------------------------------------------------------------------------

    def ready(self, issue: Issue, step: int, made: Mapping[str, Made], moment: Moment) -> int:
        """The cycle at which its tokens and direct operands allow it; learns what they tell."""
        ready = moment.cycle
        for source in issue.operands:
            if isinstance(source, Direct) and moment.iteration >= source.path.distance:
                found = made.get(source.op)
                if found is not None and found.step == step:
                    ready = max(ready, found.cycle + source.latency)
                    self._learn(moment, source.op, source.latency, found.iteration)
        for token in issue.after:
            iteration = moment.iteration - token.distance
            began = self.memory.issued.get((token.op, iteration))
            if began is not None:
                ready = max(ready, began + token.latency)
                self._learn(moment, token.op, token.latency, iteration)
        return ready

    def _learn(self, moment: Moment, op: str, latency: int, iteration: int) -> None:
        self.levels.learn(moment.known, op, latency, iteration)

    # The operation itself ---------------------------------------------------------------------

    def issue(
        self, issue: Issue, step: int, made: Mapping[str, Made], moment: Moment
    ) -> tuple[Datum, ...]:
        """Compute, write, and look for what is wrong."""
        op = self.program.loop.op(issue.op)
        self._check_once(moment)
        self._check_time(moment)
        self._check_needs(moment)
        if any(isinstance(source, Alias) for source in issue.operands):
            results: tuple[Datum, ...] = (self.domain.alias(op, moment.iteration),)
        else:
            reads = [self.memory.read(slot, moment) for slot in issue.reads]
            operands = [self._operand(s, step, made, moment, reads) for s in issue.operands]
            results = self.domain.apply(op, moment.iteration, operands, reads)
        for slot in issue.writes:
            self.memory.write(op, slot, results, moment)
        return results

    def _operand(
        self,
        source: Supply,
        step: int,
        made: Mapping[str, Made],
        moment: Moment,
        reads: list[Datum],
    ) -> Datum:
        match source:
            case Stored(read=read, views=views):
                datum = reads[read]
                for name in reversed(views):
                    view = self.program.loop.op(name)
                    (datum,) = self.domain.apply(view, moment.iteration, [datum], [])
                return datum
            case LiveIn(path=path):
                return self._along(path, moment, lambda j: self.domain.live_in(path.origin, j))
            case Through(path=path, pipe=pipe, iterator=iterator):
                ring = self.program.pipe_of[pipe].ring
                return self._along(
                    path, moment, lambda j: self.memory.take(ring, iterator, j, moment)
                )
            case Direct(path=path):
                return self._along(
                    path, moment, lambda j: self._beside(source, step, made, j, moment)
                )
            case Alias():
                return None

    def _along(self, path: Path, moment: Moment, origin: Callable[[int], Datum]) -> Datum:
        """The origin of a path, or what was there before the loop, seen through its views."""
        at = moment.iteration
        iterations: list[int] = []
        datum: Datum = None
        for n, (value, distance) in enumerate(zip(path.values, path.distances, strict=True)):
            at -= distance
            iterations.append(at)
            if at < 0:
                datum = self.domain.initial(value, at)
                break
            if n == len(path.views):
                datum = origin(at)
        for n in reversed(range(len(iterations) - 1)):
            view = self.program.loop.op(path.views[n])
            (datum,) = self.domain.apply(view, iterations[n], [datum], [])
        return datum

    def _beside(
        self, source: Direct, step: int, made: Mapping[str, Made], wanted: int, moment: Moment
    ) -> Datum:
        found = made.get(source.op)
        if found is None or found.step != step or found.iteration != wanted:
            self.memory.findings.add(
                "unwritten",
                f"`{moment.op}` of iteration {moment.iteration} takes `{source.path.origin}` at "
                f"{moment.cycle}; `{source.op}` of iteration {wanted} has not issued in this step",
                (moment.op, source.op),
                moment.cycle,
            )
            return None
        return found.results[self._results[source.path.origin]]

    # Checks -----------------------------------------------------------------------------------

    def _check_once(self, moment: Moment) -> None:
        before = self.memory.issued.get((moment.op, moment.iteration))
        if before is not None:
            self.memory.findings.add(
                "value",
                f"`{moment.op}` of iteration {moment.iteration} issues at {moment.cycle} once "
                f"more; it did at {before}",
                (moment.op,),
                moment.cycle,
                "again",
            )

    def _check_time(self, moment: Moment) -> None:
        due = self.starts[moment.op] + self.program.ii * moment.iteration
        if moment.cycle == due:
            return
        late = moment.cycle - due
        told = f"{late} cycles after" if late > 0 else f"{-late} cycles before"
        self.memory.findings.add(
            "stall" if late > 0 else "early",
            f"`{moment.op}` of iteration {moment.iteration} issues at {moment.cycle}, {told} the "
            f"{due} of the schedule (start {self.starts[moment.op]}, II {self.program.ii})",
            (moment.op,),
            moment.cycle,
        )

    def _check_needs(self, moment: Moment) -> None:
        for need in self.needs[moment.op]:
            iteration = moment.iteration - need.distance
            if not 0 <= iteration < moment.trip_count:
                continue
            began = self.memory.issued.get((need.src, iteration))
            if began is None:
                why = f"`{need.src}` of iteration {iteration} has not issued"
            elif began + need.latency > moment.cycle:
                ready = began + need.latency
                why = f"`{need.src}` of iteration {iteration} has come far enough at {ready}"
            elif moment.known[self.levels.number(need.src, need.latency)] < iteration:
                why = f"nothing makes it wait for `{need.src}` of iteration {iteration}"
            else:
                continue
            via = f" for the sake of `{need.via}`" if need.via else ""
            self.memory.findings.add(
                need.lack,
                f"`{moment.op}` of iteration {moment.iteration} issues at {moment.cycle}; {why}"
                + via,
                (moment.op, need.src),
                moment.cycle,
                need.via,
            )
