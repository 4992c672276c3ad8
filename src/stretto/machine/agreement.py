"""Figures that a machine's documents give more than once: each stands in one place of its file.

    [tier2.smem_bytes]  of = "budgets.smem.bytes"    read there: another budget, another row
    [[cells]]  at_least = "slots.dual_alu.capacity"    a fan-out that the capacity dominates
    [[tags]]   0x1C 7 on tp_smem_rd                    as family transport has, and encodings

So a figure that is changed changes results, or is refused with what it contradicts.
"""

from __future__ import annotations

from typing import Any, cast

from stretto.document import Cursor
from stretto.errors import DocumentError
from stretto.machine.machine import Machine


def figure(top: Cursor, row: Cursor) -> int:
    """The number of a row: its own, or that of the place it names."""
    if row.has("of"):
        if row.has("value"):
            hint = f"it stands in `{row.get('of').text()}`: change it there"
            raise row.get("value").fail("is given twice", hint)
        return _at(top, row.get("of"))
    number = row.get("value").natural()
    if row.has("at_least"):
        least = _at(top, row.get("at_least"))
        if number < least:
            path = row.get("at_least").text()
            message = f"is {number:,}; `{path}` is {least:,}, and has to be no more"
            raise row.get("value").fail(message, "change one of them")
    return number


def _at(top: Cursor, said: Cursor) -> int:
    """The number at a path of the file; of a list, its length."""
    value: Any = top.value
    for key in said.text().split("."):
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    if isinstance(value, list):
        return len(cast("list[Any]", value))
    if not isinstance(value, int) or isinstance(value, bool):
        hint = "expected a path such as slots.tma.capacity"
        raise said.fail("no number stands there", hint)
    return value


def check_latencies(top: Cursor, machine: Machine) -> None:
    """Families, the table by operation tag and the encodings that state a tag tell one latency.

    An encoding that holds the tag's slot for another time has a `note` that says why.
    """
    _check_families(top, machine)
    tags = {tag.tag: tag for tag in machine.tags}
    for encoding in machine.encodings:
        place = f"encodings.{encoding.name}"
        stated = [(f"{place}.charges[{i}]", tag) for i, tag in enumerate(encoding.charges)]
        if encoding.tag is not None:
            stated.append((f"{place}.tag", encoding.tag))
        for where, number in stated:
            if number not in tags:
                message = f"is {number:#04x}, which the tags section does not list"
                raise DocumentError(top.file, where, message, "add a row to `tags`")
        if encoding.tag is None:
            continue
        tag = tags[encoding.tag]
        for i, use in enumerate(encoding.uses):
            if use.slot not in tag.slots or use.duration.names or encoding.note:
                continue
            duration = use.duration.cost({})
            if duration != tag.latency:
                message = f"is {duration}; tag {tag.tag:#04x} has {tag.latency} on `{use.slot}`"
                where = f"{place}.uses[{i}].duration"
                hint = "make them equal, or say in a `note` why they differ"
                raise DocumentError(top.file, where, message, hint)


def _check_families(top: Cursor, machine: Machine) -> None:
    """A tag has the latency of the family of its slots."""
    families = {slot: family for family in machine.families for slot in family.slots}
    for i, tag in enumerate(machine.tags):
        for slot in tag.slots:
            family = families.get(slot)
            if family is not None and family.latency not in (None, tag.latency):
                message = f"is {tag.latency}; family `{family.name}` has {family.latency}"
                hint = f"make them equal, or take `{slot}` out of the family"
                raise DocumentError(top.file, f"tags[{i}].latency", message, hint)
