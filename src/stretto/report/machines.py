"""Machines, listed and in detail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stretto.machine import Encoding, Figure, Machine
from stretto.report import as_json, columns, notes, wrapped

if TYPE_CHECKING:
    from stretto.schemas import machine
    from stretto.schemas.machine import ListedMachine, MachineDocument, MachinesDocument

SCHEMA = "stretto.machine/1"
LIST_SCHEMA = "stretto.machines/1"


def machine_to_json(machine: Machine) -> MachineDocument:
    """A machine as a document: everything its file states."""
    return {
        "schema": SCHEMA,
        "success": True,
        "name": machine.name,
        "title": machine.title,
        "slots": as_json(machine.slots),
        "pools": as_json(machine.pools),
        "demands": {pool: formula.text for pool, formula in machine.demands},
        "budgets": as_json(machine.budgets),
        "products": as_json(machine.products),
        "agents": as_json(machine.agents),
        "encodings": [_encoding(encoding) for encoding in machine.encodings],
        "families": as_json(machine.families),
        "tags": as_json(machine.tags),
        "cells": as_json(machine.cells),
        "tier2": as_json(machine.tier2),
        "anchors": as_json(machine.anchors),
        "ceilings": as_json(machine.ceilings),
        "fences": as_json(machine.fences),
        "costs": as_json(machine.costs),
        "limits": as_json(machine.limits),
        "timings": as_json(machine.timings),
        "measured": machine.measured,
        "unit": machine.unit,
        "pipelining": as_json(machine.pipelining),
        "fallback": machine.fallback,
        "warnings": as_json(machine.notes),
    }


def _encoding(encoding: Encoding) -> machine.Encoding:
    return {
        "name": encoding.name,
        "opcodes": list(encoding.opcodes),
        "tag": encoding.tag,
        "charges": list(encoding.charges),
        "uses": [
            {
                "slot": use.slot,
                "offset": use.offset,
                "duration": _number(use.duration.text),
                "occupancy": use.occupancy,
            }
            for use in encoding.uses
        ],
        "latency": _number(encoding.latency.text),
        "demands": {pool: _number(formula.text) for pool, formula in encoding.demands},
        "when": encoding.when.text if encoding.when else None,
        "needs": [{"condition": n.condition.text, "why": n.why} for n in encoding.needs],
        "source": encoding.source,
        "note": encoding.note,
    }


def _number(text: str) -> int | str:
    """A cost: a number where the file has a number, else the formula."""
    return int(text) if text.isdigit() else text


def list_to_text(machines: list[Machine]) -> list[str]:
    """One line a machine."""
    rows = [(machine.name, f"{len(machine.slots)} slots", machine.title) for machine in machines]
    said = [f"{machine.name}: {note}" for machine in machines for note in machine.notes]
    return [
        *columns(rows),
        *notes(said),
        "",
        "`stretto machines NAME` shows one; `--machine FILE.toml` adds yours.",
    ]


def list_to_json(machines: list[Machine]) -> MachinesDocument:
    """The same as a document."""
    rows: list[ListedMachine] = [
        {"name": m.name, "title": m.title, "slots": len(m.slots), "warnings": list(m.notes)}
        for m in machines
    ]
    return {"schema": LIST_SCHEMA, "success": True, "machines": rows}


def machine_to_text(machine: Machine) -> list[str]:
    """Everything its file states, as tables."""
    lines = wrapped(f"{machine.name}: {machine.title}") + notes(machine.notes)
    lines += wrapped(f"durations and latencies are {machine.unit}", "  ", "  ")
    if machine.measured:
        lines += wrapped(f"measured {machine.measured}", "  ", "  ")
    lines += ["", "slots"]
    rows = [("id", "name", "capacity", "kind", "fuses", "anchor", "role")]
    for slot in machine.slots:
        rows.append(
            (
                str(slot.id),
                slot.name,
                "unlimited" if slot.capacity is None else str(slot.capacity),
                slot.kind + ("*" if slot.primary else ""),
                str(slot.fusion_cap) if slot.fusion_cap > 1 else "-",
                "-" if slot.anchor is None else str(slot.anchor),
                slot.role,
            )
        )
    lines += columns(rows, "  ", right=(0, 2, 4, 5))
    if any(slot.primary for slot in machine.slots):
        lines.append("  * one of the primary slots of the pressure model")
    if machine.pools:
        lines += ["", "pools"]
        lines += columns([(p.name, str(p.cap), p.role) for p in machine.pools], "  ", right=(1,))
    if machine.budgets:
        lines += ["", "budgets"]
        sizes = [
            (b.space, "unlimited" if b.bytes is None else f"{b.bytes:,}", "bytes")
            for b in machine.budgets
        ]
        lines += columns(sizes, "  ", right=(1,))
    lines += _products(machine) + _agents(machine) + _latencies(machine) + _capacities(machine)
    for title, figures in (
        ("latency ceilings", machine.ceilings),
        ("fences", machine.fences),
        ("anchors beside those of the slots", machine.anchors),
        ("weights of the cost order", machine.costs),
        ("limits", machine.limits),
        ("timings of whole kernels", machine.timings),
    ):
        lines += _figures(title, figures)
    if machine.encodings:
        lines += ["", "encodings"]
        for encoding in machine.encodings:
            told = f"{encoding.name}: {_uses_text(encoding)}; ready after {encoding.latency.text}"
            told += f"; when {encoding.when.text}" if encoding.when else ""
            told += f"; tag {_hex(encoding.tags)}" if encoding.tags else ""
            lines += wrapped(told, "  ", "    ")
            lines += wrapped(", ".join(encoding.opcodes), "      ")
    return lines


def _products(machine: Machine) -> list[str]:
    """What front ends lower products of tiles to."""
    rows = [("name", "opcode", "rows", "sums in", "left in", "right in", "waited for by")]
    for product in machine.products:
        factors = (" or ".join(product.a), " or ".join(product.b))
        wait = (product.wait or "-") + (", in its step" if product.in_step else "")
        many = f"{product.rows} × n" if product.rows > 1 else "any"
        rows.append((product.name, product.opcode, many, product.accumulator, *factors, wait))
    held = [
        f"  {product.name} holds left factors that no step changes, up to {product.held} registers"
        for product in machine.products
        if product.held
    ]
    return ["", "products", *columns(rows, "  "), *held] if machine.products else []


def _agents(machine: Machine) -> list[str]:
    """Who issues what."""
    rows = [("name", "issues", "warps", "registers", "replicas")]
    for agent in machine.agents:
        sizes = (str(agent.warps), str(agent.registers), str(agent.replicas))
        rows.append((agent.name, ", ".join(agent.issues), *sizes))
    return ["", "agents", *columns(rows, "  ", right=(2, 3))] if machine.agents else []


def _latencies(machine: Machine) -> list[str]:
    """The latency families, and the table by operation tag."""
    lines: list[str] = []
    if machine.families:
        rows = [("family", "latency", "slots")]
        for family in machine.families:
            latency = "anchor" if family.latency is None else str(family.latency)
            rows.append((family.name, latency, ", ".join(family.slots) or "-"))
        lines += ["", "latency families", *columns(rows, "  ", right=(1,))]
    if machine.tags:
        rows4 = [("tag", "latency", "family", "slots")]
        for tag in machine.tags:
            rows4.append((_hex([tag.tag]), str(tag.latency), tag.family, ", ".join(tag.slots)))
        lines += ["", "latencies by operation tag", *columns(rows4, "  ", right=(1,))]
    return lines


def _capacities(machine: Machine) -> list[str]:
    """The published capacity vector, and the hard inequalities beside it."""
    lines: list[str] = []
    if machine.cells:
        rows = [("cell", "value", "meaning", "honoured by")]
        for c in machine.cells:
            rows.append((str(c.index), str(c.value), c.meaning, c.enforced_by))
        lines += ["", "capacity vector", *columns(rows, "  ", right=(0, 1))]
    return lines + _figures("tier-2 capacities", machine.tier2)


def _figures(title: str, figures: Sequence[Figure]) -> list[str]:
    rows = [(f.name, ", ".join(f"{v:,}" for v in f.values), f.meaning) for f in figures]
    return ["", title, *columns(rows, "  ", right=(1,))] if rows else []


def _hex(tags: Iterable[int]) -> str:
    return ", ".join(f"0x{tag:02X}" for tag in tags)


def _uses_text(encoding: Encoding) -> str:
    uses = [
        f"{use.slot} for {use.duration.text}" + (f" from {use.offset}" if use.offset else "")
        for use in encoding.uses
    ]
    return ", ".join(uses) or "holds nothing"
