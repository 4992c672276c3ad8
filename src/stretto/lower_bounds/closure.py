"""The distance closure: longest paths between all pairs of operations, at one II.

              load   mma  store
    load        0     8     24       mma must start 8 cycles after load,
    mma         ·     0     16       store 16 after mma;
    store       ·     ·      0       · is "no path", which is no number

Built only when somebody needs it; NumPy is loaded then and not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.deadline import NEVER, Deadline
from stretto.loop import Loop
from stretto.lower_bounds.distances import below_recurrence
from stretto.problem import Graph, dependence_graph

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAFE = 1 << 62
"""Path weights below this stay exact in 64-bit integers, sums of two included."""


@dataclass(frozen=True, eq=False)
class Closure:
    """Longest paths at one II. Rows are sources, columns destinations, in program order."""

    ii: int
    index: dict[str, int]
    """Row and column of each operation."""
    reach: NDArray[np.bool_]
    """Whether there is a path; every operation reaches itself."""
    longest: NDArray[Any]
    """Its weight; meaningless where `reach` is false."""

    def distance(self, src: str, dst: str) -> int | None:
        """How much later than `src` (in one iteration's terms) `dst` must start; None: no path."""
        row, column = self.index[src], self.index[dst]
        return int(self.longest[row, column]) if self.reach[row, column] else None


def closure(loop: Loop, ii: int) -> Closure:
    """The closure of a resolved loop; an II below the recurrence bound is an InfeasibleError.

    Bellman-Ford from all sources at once: each relaxation of an arc is one vector operation
    over the sources, and sweeps in topological order end after a few rounds. Weights too large
    for 64-bit integers are kept as Python integers, slower and as exact.
    """
    graph = dependence_graph(loop)
    error = below_recurrence(graph, ii)
    if error is not None:
        raise error
    reach, longest = longest_paths(graph, ii)
    return Closure(ii, dict(loop.index), reach.T, longest.T)


def longest_paths(
    graph: Graph, ii: int, deadline: Deadline = NEVER
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Reach and weight by destination (row) and source (column), at an II that has them."""
    import numpy as np  # heavy, and only this function needs it

    size = len(graph.names)
    heaviest = max((e.latency + ii * e.distance for e in graph.edges), default=0)
    dtype = np.int64 if heaviest * (size + 1) < _SAFE else object
    reach = np.eye(size, dtype=np.bool_)
    longest: NDArray[Any] = np.zeros((size, size), dtype=dtype)
    fresh = [True] * size
    while any(fresh):
        for node in graph.order:
            if not fresh[node]:
                continue
            deadline.check()
            fresh[node] = False
            for other, latency, distance in graph.succs[node]:
                candidate = longest[node] + (latency - ii * distance)
                farther = np.asarray(candidate > longest[other], dtype=np.bool_)
                better = reach[node] & (farther | ~reach[other])
                if better.any():
                    np.copyto(longest[other], candidate, where=better)
                    reach[other] |= better
                    fresh[other] = True
    return reach, longest
