"""Dependence graphs of HatScheT: GraphML, with the model of its resources in XML beside it.

    X.graphml                                    X_RM.xml, or XRM.xml
    <node id="7">                                <Resource name="mult" latency="4" limit="2"
      <data key="name">p</data>                            blockingTime="1"/>
      <data key="uses_resource">mult</data>
    <edge source="7" target="9">  delay 1, distance 0, deptype Data
                │
                ▼
    p: mult, holds a unit of it for 1 cycle, ready after 4;   start(9) >= start(7) + 4 + 1 - II × 0

A limit of -1 is no limit. What is no part of the problem (costs in area, physical delays) is left
out, and a note says so where it matters: the chaining of operations inside a cycle is not modelled.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from stretto.errors import DocumentError, listed
from stretto.files import STDIN, read_text
from stretto.frontends import Source
from stretto.frontends.xml_text import Element, parse_xml, whole
from stretto.loop import Dependence, Loop, Note, Op, Place, Use
from stretto.machine.written import written_machine

MODELS = ("_RM.xml", "RM.xml")
"""How the name of a model ends that stands beside X.graphml, after X."""
UNLIMITED = -1
DATA, PRECEDENCE = "Data", "Precedence"


@dataclass(frozen=True, slots=True)
class Resource:
    """What one kind of operation costs."""

    name: str
    latency: int
    limit: int | None
    """Units; None: any number."""
    held: int
    """Cycles that an operation holds a unit."""
    chained: bool = False
    """Whether it states how much of a cycle it takes."""


def read_graphml(file: str, text: str) -> Source:
    """The loop of a graph, with the machine that the model beside it describes."""
    root = parse_xml(file, text)
    if root.tag != "graphml":
        raise root.fail(f"is <{root.tag}>", "expected <graphml>; a model is read with its graph")
    graphs = list(root.each("graph"))
    if len(graphs) != 1:
        raise root.fail(f"has {len(graphs)} graphs", "expected one")
    model = _model_of(file)
    resources = read_model(*read_text(model))
    name = graphs[0].attributes.get("id") or PurePath(file).stem
    keys = _keys(root)
    ops, ids = _ops(graphs[0], keys, resources, model)
    if not ops:
        raise graphs[0].fail("has no node", "a loop needs an operation")
    stated = tuple(_dependence(edge, keys, ids) for edge in graphs[0].each("edge"))
    used = {op.kind: resources[op.kind] for op in ops}
    slots = {key: row.limit for key, row in used.items() if row.held}
    slots = slots or dict.fromkeys(list(used)[:1])  # a machine has one at least
    machine = written_machine(name, f"the resource model {PurePath(model).name}", slots)
    notes = tuple(Note(Place(name), told) for told in _left_out(model, used.values()))
    return Source(file, (Loop(name, ops, stated=stated, machine=machine),), notes)


def _left_out(model: str, rows: Iterable[Resource]) -> list[str]:
    """That a delay inside a cycle is somebody else's concern, where the model states one."""
    chained = [row.name for row in rows if row.chained]
    if not chained:
        return []
    told = f"{PurePath(model).name} states physical delays ({listed(chained)})"
    return [f"{told}; how operations share a cycle is not modelled"]


def _chained(row: Element) -> bool:
    try:
        return float(row.attributes.get("physicalDelay", "0")) > 0
    except ValueError:
        raise row.fail("`physicalDelay` is no number") from None


def _model_of(file: str) -> str:
    """The file of the model that belongs to a graph."""
    if file == STDIN:
        hint = "give the graph by its path: the model is sought beside it"
        raise DocumentError(file, "", "has no resource model", hint)
    stem = os.path.join(os.path.dirname(file), PurePath(file).stem)
    wanted = [stem + end for end in MODELS]
    for name in wanted:
        if os.path.exists(name):
            return name
    names = " or ".join(PurePath(name).name for name in wanted)
    raise DocumentError(
        file, "", "has no resource model", f"a graph is read by its path, with {names} beside it"
    )


def read_model(file: str, text: str) -> dict[str, Resource]:
    """The resources of a model, by name."""
    root = parse_xml(file, text)
    found: dict[str, Resource] = {}
    for row in root.each("Resource"):
        name = row.get("name")
        limit = row.number("limit", UNLIMITED)
        if limit < 1 and limit != UNLIMITED:
            raise row.fail(f"`limit` is {limit}", "expected a number of units, or -1 for any")
        latency, held = row.number("latency", 0), row.number("blockingTime", 1)
        for what, number in (("latency", latency), ("blockingTime", held)):
            if number < 0:
                raise row.fail(f"`{what}` is {number}", "expected a whole number of at least 0")
        if any(child.tag.startswith("Reservation") for child in row.children):
            raise row.fail(f"resource `{name}` has a reservation table", "only units are read")
        if name in found:
            raise row.fail(f"resource `{name}` stands twice")
        units = None if limit == UNLIMITED else limit
        found[name] = Resource(name, latency, units, held, _chained(row))
    if not found:
        raise root.fail("has no <Resource>", "expected the resource model of a graph")
    return found


# Nodes and edges --------------------------------------------------------------------------


def _keys(root: Element) -> dict[str, str]:
    """What the keys of `data` mean: themselves, unless the file declares them."""
    return {
        key.get("id"): key.attributes["attr.name"]
        for key in root.children
        if key.tag == "key" and "attr.name" in key.attributes
    }


def _data(element: Element, keys: dict[str, str]) -> dict[str, str]:
    rows = (row for row in element.children if row.tag == "data")
    return {keys.get(row.get("key"), row.get("key")): row.text for row in rows}


@dataclass(frozen=True, slots=True)
class _Ends:
    """What an edge has to know of a node."""

    name: str
    latency: int


def _ops(
    graph: Element, keys: dict[str, str], resources: dict[str, Resource], model: str
) -> tuple[tuple[Op, ...], dict[str, _Ends]]:
    """An operation a node: under its name, or under its id where that is taken."""
    nodes = [(node, _data(node, keys)) for node in graph.each("node")]
    named = [data.get("name", "") for _, data in nodes]
    unique = len(set(named)) == len(named) and all(named)
    ops: list[Op] = []
    ids: dict[str, _Ends] = {}
    for node, data in nodes:
        id = node.get("id")
        if id in ids:
            raise node.fail(f"node `{id}` stands twice")
        kind = data.get("uses_resource", "")
        if kind not in resources:
            told = f"uses resource `{kind}`" if kind else "uses no resource"
            raise node.fail(f"node `{id}` {told}", f"{model} has {listed(resources)}")
        row, name = resources[kind], data["name"] if unique else f"n{id}"
        uses = (Use(kind, row.held),) if row.held else ()
        ops.append(Op(name, kind, uses=uses, latency=row.latency))
        ids[id] = _Ends(name, row.latency)
    return tuple(ops), ids


def _dependence(edge: Element, keys: dict[str, str], ids: dict[str, _Ends]) -> Dependence:
    data = _data(edge, keys)
    ends: list[_Ends] = []
    for end in ("source", "target"):
        id = edge.get(end)
        if id not in ids:
            raise edge.fail(f"`{end}` is `{id}`", "expected the id of a node")
        ends.append(ids[id])
    delay, distance = (whole(edge, key, data.get(key, "0")) for key in ("delay", "distance"))
    if distance < 0:
        raise edge.fail(f"`distance` is {distance}", "expected a whole number of at least 0")
    latency = ends[0].latency + delay
    if latency < 0:
        told = f"{ends[0].latency} of `{ends[0].name}` and a delay of {delay}"
        raise edge.fail(f"the latency is {latency} ({told})", "expected at least 0")
    kind = "flow" if data.get("deptype", PRECEDENCE) == DATA else "order"
    return Dependence(ends[0].name, ends[1].name, latency, distance, kind)
