"""Dependence graphs of HatScheT: GraphML with a resource model in XML beside it, as loops.

    X.graphml, X_RM.xml (or XRM.xml)  ──►  Loop, Machine

An edge says: start(target) >= start(source) + latency of the source's resource + delay - II ×
distance. An operation holds a unit of its resource for the blocking time, where units are limited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from stretto import Loop, Machine
from stretto.loop import Dependence, Op, Use
from stretto.machine import Slot


@dataclass(frozen=True)
class _Resource:
    latency: int
    units: int | None
    """None: as many as are asked for."""
    held: int


def graphs(folder: Path) -> Iterator[tuple[str, Loop, Machine]]:
    """Every graph below a folder: its path without the suffix, its loop, its machine."""
    for path in sorted(folder.rglob("*.graphml")):
        models = [path.with_name(path.stem + end) for end in ("_RM.xml", "RM.xml")]
        model = next((m for m in models if m.exists()), None)
        if model is None:
            raise FileNotFoundError(f"{path}: neither {models[0].name} nor {models[1].name}")
        name = path.relative_to(folder).with_suffix("").as_posix()
        yield name, *read_graph(name, path, model)


def read_graph(name: str, path: Path, model: Path) -> tuple[Loop, Machine]:
    """One graph and the machine of its resource model."""
    resources = _resources(model)
    root = ElementTree.parse(path).getroot()
    nodes = {_text(node, "id"): _data(node)["uses_resource"] for node in _each(root, "node")}
    ops = tuple(_op(node, resource, resources[resource]) for node, resource in nodes.items())
    stated = tuple(_dependence(edge, nodes, resources) for edge in _each(root, "edge"))
    slots = [(key, r.units) for key, r in resources.items() if r.units is not None and r.held]
    machine = Machine(
        name="hatschet",
        title=f"the resource model of {name}",
        slots=tuple(Slot(i + 1, key, units) for i, (key, units) in enumerate(slots)),
    )
    return Loop(name, ops, stated=stated), machine


def _op(node: str, resource: str, cost: _Resource) -> Op:
    limited = cost.units is not None and cost.held
    uses = (Use(resource, cost.held),) if limited else ()
    return Op(f"n{node}", resource, uses=uses, latency=cost.latency)


def _dependence(
    edge: ElementTree.Element, nodes: dict[str, str], resources: dict[str, _Resource]
) -> Dependence:
    source, target, data = _text(edge, "source"), _text(edge, "target"), _data(edge)
    latency = resources[nodes[source]].latency + int(data["delay"])
    return Dependence(f"n{source}", f"n{target}", latency, int(data["distance"]), kind="order")


def _resources(model: Path) -> dict[str, _Resource]:
    found: dict[str, _Resource] = {}
    for row in _each(ElementTree.parse(model).getroot(), "Resource"):
        units = int(_text(row, "limit"))
        held = int(_text(row, "blockingTime"))
        cost = _Resource(int(_text(row, "latency")), units if units > 0 else None, held)
        found[_text(row, "name")] = cost
    return found


def _each(root: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    """All elements of a name, in whatever namespace."""
    return (element for element in root.iter() if element.tag.rpartition("}")[2] == tag)


def _data(element: ElementTree.Element) -> dict[str, str]:
    return {_text(row, "key"): row.text or "" for row in _each(element, "data")}


def _text(element: ElementTree.Element, key: str) -> str:
    return element.attrib[key]
