"""What holds nothing, folded into the latencies between those that do.

    load ─8─► view ─0─► cast ─2─► mma        ──►        load ─10─► mma

An operation without slots, pools, storage or a stage of its own asks for nothing but its place in
the order; whatever starts the others have, it can stand as early as those it waits for allow. So
search and proof leave it out, and `Contracted.place` puts it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from stretto.deadline import NEVER, Deadline
from stretto.problem import Compiled

Pairs = list[tuple[int, int]]
"""(latency, distance) of paths, none of which implies another."""

FILL = 4
"""What holds nothing stays where folding it would make more than so many times its dependences."""


def idle(compiled: Compiled) -> list[int]:
    """Operations without slots, pools, storage or a stage of their own, in topological order.

    Nor do they decide what lives in registers that are counted.

    None where the stage count is limited: then every operation has a last stage.
    """
    if compiled.max_stages is not None:
        return []
    busy = {i for room in compiled.rooms.turning for i, _ in room.accessors}
    busy |= compiled.registers.touching
    busy.update(compiled.depths, compiled.pinned, *compiled.members)
    busy.update([i for i, op in enumerate(compiled.loop.ops) if op.constraint.pending])
    claims = compiled.claims
    return [i for i in compiled.graph.order if not claims[i] and i not in busy]


@dataclass(slots=True)
class Contracted:
    """Dependences between operations, of each pair only those that no other implies."""

    compiled: Compiled
    out: list[dict[int, Pairs]]
    into: list[dict[int, None]]
    tail: list[int]
    """By operation: cycles until it, and what is folded behind it, is complete."""
    lead: dict[int, Pairs] = field(default_factory=dict[int, Pairs])
    """Operation to the paths to it that begin with what was folded."""
    turns: Pairs = field(default_factory=list[tuple[int, int]])
    """Paths that lead back to where they begin: II × distance is at least their latency."""
    gone: dict[int, None] = field(default_factory=dict[int, None])
    """What was folded away."""

    def add(self, src: int, dst: int, latency: int, distance: int) -> None:
        """Another dependence; one that is weaker than another at every II is left out."""
        if src == dst:
            _merge(self.turns, latency, distance)
            return
        pairs = self.out[src].get(dst)
        if pairs is None:
            self.out[src][dst] = [(latency, distance)]
            self.into[dst][src] = None
        else:
            _merge(pairs, latency, distance)

    def fold(self, candidates: Iterable[int], deadline: Deadline = NEVER) -> None:
        """Fold operations into the latencies around them, as far as that makes things simpler."""
        again = list(candidates)
        folded = True
        while again and folded:
            front = again
            again, folded = list[int](), False
            for i in front:
                deadline.check()
                before = [(src, self.out[src][i]) for src in self.into[i]]
                coming = sum([len(pairs) for _, pairs in before])
                going = sum([len(pairs) for pairs in self.out[i].values()])
                if coming * going > FILL * (coming + going):
                    again.append(i)
                else:
                    self._fold(i, before)
                    folded = True

    def _fold(self, i: int, coming: Sequence[tuple[int, Pairs]]) -> None:
        """Fold one; `coming`: who leads to it, and by which paths."""
        for src, _ in coming:
            del self.out[src][i]
        first, add = self.lead.pop(i, []), self.add
        _merge(first, 0, 0)
        for dst, pairs in self.out[i].items():
            del self.into[dst][i]
            ways = self.lead.setdefault(dst, [])
            for latency, distance in pairs:
                for src, before in coming:
                    for ahead, apart in before:
                        add(src, dst, ahead + latency, apart + distance)
                for ahead, apart in first:
                    _merge(ways, ahead + latency, apart + distance)
        tail, own = self.tail, self.tail[i]
        for src, before in coming:
            for ahead, apart in before:
                if not apart and ahead + own > tail[src]:
                    tail[src] = ahead + own
        self.out[i], self.into[i] = {}, {}
        self.gone[i] = None

    def turns_at(self, ii: int) -> bool:
        """Whether what waits for itself, by whatever way, may do so at this II."""
        return all(latency <= ii * distance for latency, distance in self.turns)

    def place(self, ii: int, starts: list[int]) -> None:
        """Put what was folded as early as those it waits for allow; the others stand."""
        if not self.gone:
            return
        order, preds = [i for i in self.compiled.graph.order if i in self.gone], self.compiled.preds
        moved = True
        for i in order:
            starts[i] = 0
        while moved:
            moved = False
            for i in order:
                first = start = starts[i]
                for other, latency, distance in preds[i]:
                    ready = starts[other] + latency - ii * distance
                    start = ready if ready > start else start
                if start > first:
                    starts[i], moved = start, True


def contracted(compiled: Compiled, leader: Sequence[int] | None = None) -> Contracted:
    """The dependences of a problem, nothing folded yet; `leader`: whom each one stands with."""
    leader = range(compiled.size) if leader is None else leader
    found = Contracted(
        compiled,
        [{} for _ in leader],
        [{} for _ in leader],
        list(compiled.completion),
    )
    add, out, into = found.add, found.out, found.into
    for edge in compiled.graph.edges:
        src, dst = leader[edge[0]], leader[edge[1]]
        if src == dst or dst in out[src]:
            add(src, dst, edge[2], edge[3])
        else:  # the first of the two, as most are
            out[src][dst] = [edge[2:]]
            into[dst][src] = None
    for i, of in enumerate(leader):
        if i != of:
            found.tail[of] = max(found.tail[of], found.tail[i])
    return found


def _merge(pairs: Pairs, latency: int, distance: int) -> None:
    """Add a path, unless another implies it; those that it implies go."""
    if pairs:
        for known, apart in pairs:
            if known >= latency and apart <= distance:
                return
        pairs[:] = [pair for pair in pairs if not (pair[0] <= latency and pair[1] >= distance)]
    pairs.append((latency, distance))
