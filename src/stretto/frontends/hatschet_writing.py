"""A loop as HatScheT reads it: a graph in GraphML, and the model of its resources in XML.

    Prepared  ──►  X.graphml, X_RM.xml, and what they cannot say

An operation there uses one resource, which has one latency. A slot becomes a resource of the
smallest latency that anybody sees of its operations; what a dependence asks for beyond that is its
delay. What is read back is the same problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from stretto.errors import listed
from stretto.frontends.flattening import FlatLoop, FlatOp, flatten
from stretto.frontends.hatschet import DATA, PRECEDENCE, UNLIMITED, Resource
from stretto.resources.prepare import Prepared


@dataclass(frozen=True, slots=True)
class HatschetTexts:
    """The two files of a graph."""

    graph: str
    model: str
    losses: tuple[str, ...]


def write_graphml(ready: Prepared) -> HatschetTexts:
    """The graph, the model, and what was lost."""
    flat = flatten(ready)
    resource_of, several = _resources(flat)
    losses = list(flat.losses)
    if several:
        losses.append(f"of several slots that are held, one is: {listed(several)}")
    graph = ['<?xml version="1.0" encoding="UTF-8"?>', "<graphml>"]
    graph.append(f'  <graph edgedefault="directed" id={quoteattr(flat.name)}>')
    ids = {op.name: i for i, op in enumerate(flat.ops)}
    for op in flat.ops:
        graph.append(f'    <node id="{ids[op.name]}">')
        graph += _data(name=op.name, uses_resource=resource_of[op.name].name)
        graph.append("    </node>")
    for i, edge in enumerate(flat.edges):
        ends = f'source="{ids[edge.src]}" target="{ids[edge.dst]}"'
        graph.append(f'    <edge id="e{i}" {ends}>')
        graph += _data(
            distance=str(edge.distance),
            delay=str(edge.latency - resource_of[edge.src].latency),
            deptype=DATA if edge.kind == "flow" else PRECEDENCE,
        )
        graph.append("    </edge>")
    graph += ["  </graph>", "</graphml>"]
    model = ['<?xml version="1.0" encoding="UTF-8"?>', "<ModelInformation>", "  <Resources>"]
    model += [_row(row) for row in dict.fromkeys(resource_of.values())]
    model += ["  </Resources>", "</ModelInformation>"]
    return HatschetTexts("\n".join(graph) + "\n", "\n".join(model) + "\n", tuple(losses))


def _data(**rows: str) -> list[str]:
    return [f'      <data key="{key}">{escape(text)}</data>' for key, text in rows.items()]


def _row(row: Resource) -> str:
    limit = UNLIMITED if row.limit is None else row.limit
    return (
        f'    <Resource name={quoteattr(row.name)} latency="{row.latency}" limit="{limit}" '
        f'blockingTime="{row.held}" physicalDelay="0.0"/>'
    )


def _resources(flat: FlatLoop) -> tuple[dict[str, Resource], list[str]]:
    """The resource of each operation; and the operations that hold more than they can say."""
    seen = flat.earliest()
    users: dict[tuple[str, bool], list[FlatOp]] = {}
    several: list[str] = []
    for op in flat.ops:
        limited = [slot for slot, _ in op.holds if flat.limits[slot] is not None]
        if len(limited) > 1:
            several.append(op.name)
        chosen = limited or [slot for slot, _ in op.holds]
        slot = max(chosen, key=lambda slot: flat.held[slot] / (flat.limits[slot] or 1), default="")
        users.setdefault((slot or op.kind, bool(slot)), []).append(op)
    taken = {name for name, is_slot in users if is_slot}
    found: dict[str, Resource] = {}
    for (name, is_slot), ops in users.items():
        latency = min(seen[op.name] for op in ops)
        called = name
        while not is_slot and called in taken:
            called += "_"
        taken.add(called)
        row = (
            Resource(called, latency, flat.limits[name], flat.held[name])
            if is_slot
            else Resource(called, latency, None, 0)
        )
        found |= {op.name: row for op in ops}
    return {op.name: found[op.name] for op in flat.ops}, several
