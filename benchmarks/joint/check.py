"""Checks answers of `stretto assign --json` by absolute time; needs nothing but Python.

    python3 benchmarks/joint/check.py answer.json     a line a loop; exit code 1 if one is wrong

It looks at each cycle of the steady state, each value and each ring, and shares no code with what
made the answer.

    once        every operation of the loop starts once, at cycle 0 or later
    slots       no slot is held by more than its capacity in any cycle
    flow        a value is there when it is read: start + latency of its maker
    agents      who holds the issue slot of a warpgroup belongs to it, and reads no tile from the
                registers of another
    rings       nothing is overwritten before its last reader is done; rings fit their memory
    registers   tiles that live at once fit the registers of their warpgroup
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from typing import Any

Problem = dict[str, Any]
BITS = re.compile(r"(\d+)(?!.*\d)")


def size(kind: str | None) -> int:
    """Bytes of a tile such as 128x64xf32; 0 of a scalar or of nothing."""
    *shape, element = (kind or "").split("x")
    found = BITS.search(element)
    if not shape or found is None:
        return 0
    count = 1
    for length in shape:
        count *= int(length)
    return count * int(found[1]) // 8


class Checked:
    """One loop with its answer."""

    def __init__(self, entry: Problem) -> None:
        self.entry, self.loop = entry, entry["loop"]
        self.ii: int = entry["ii"]
        self.ops: dict[str, Problem] = {op["name"]: op for op in self.loop["ops"]}
        self.starts = {row["name"]: row["start"] for row in entry["schedule"]["ops"]}
        self.values = {value["name"]: value for value in self.loop.get("values", [])}
        self.maker = {r: op["name"] for op in self.loop["ops"] for r in op.get("results", [])}
        self.depths = {row["name"]: row for row in entry["schedule"]["storages"]}
        self.storages = {row["name"]: row for row in self.loop.get("storages", [])}
        self.groups: dict[str, int | None] = entry["resources"]["registers"]
        self.wrong: list[str] = []

    def done(self, name: str) -> int:
        """When an operation of iteration 0 holds and delivers nothing more."""
        op = self.ops[name]
        ends = [use.get("offset", 0) + use["duration"] for use in op.get("uses", [])]
        return self.starts[name] + max([op.get("latency", 0), *ends])

    def root(self, value: str) -> str:
        """The value that a name is a view of."""
        while (of := self.values.get(value, {}).get("view_of")) is not None:
            value = of
        return value

    def once(self) -> None:
        """Every operation has its start."""
        names = Counter(row["name"] for row in self.entry["schedule"]["ops"])
        if names != Counter(list(self.ops)) or any(start < 0 for start in self.starts.values()):
            self.wrong.append("not every operation starts once, at cycle 0 or later")

    def slots(self) -> None:
        """No slot is held by too many."""
        held: dict[tuple[str, int], int] = defaultdict(int)
        for name, op in self.ops.items():
            for use in op.get("uses", []):
                first = self.starts[name] + use.get("offset", 0)
                for cycle in range(first, first + use["duration"]):
                    held[use["slot"], cycle % self.ii] += use.get("occupancy", 1)
        for (slot, cycle), count in held.items():
            most = self.entry["resources"]["slots"][slot]
            if most is not None and count > most:
                self.wrong.append(f"{slot} is held {count} times in cycle {cycle}")
                return

    def flow(self) -> None:
        """Values are there when they are read."""
        for name, op in self.ops.items():
            for operand in op.get("operands", []):
                maker = self.maker.get(operand["value"])
                if maker is None:
                    continue
                latency = operand.get("latency", self.ops[maker].get("latency", 0))
                there = self.starts[maker] + latency - self.ii * operand.get("distance", 0)
                if self.starts[name] < there:
                    self.wrong.append(f"{name} reads {operand['value']} {there} too early")

    def agents(self) -> None:
        """Each warpgroup does its own, from its own registers."""
        for name, op in self.ops.items():
            mine = op.get("agent")
            for use in op.get("uses", []):
                if (
                    use["slot"] in self.groups
                    and use["duration"]
                    and mine not in (None, use["slot"])
                ):
                    self.wrong.append(f"{name} of {mine} holds {use['slot']}")
            if mine not in self.groups:
                continue
            for operand in op.get("operands", []):
                value = self.root(operand["value"])
                row = self.values.get(value, {})
                other = self.ops.get(self.maker.get(value, ""), {}).get("agent")
                in_registers = row.get("storage") is None and size(row.get("type"))
                if in_registers and other in self.groups and other != mine:
                    self.wrong.append(f"{name} of {mine} reads {value} in registers of {other}")

    def rings(self) -> None:
        """Slots of rings are written again when their last reader is done; memories suffice."""
        used: dict[str, int] = defaultdict(int)
        for name, storage in self.storages.items():
            depth = self.depths[name]["ring_depth"]
            used[storage["space"]] += storage["bytes"] * depth
            writers = [op for op in self.ops.values() if name in op.get("writes", [])]
            if storage.get("fixed") or not writers:
                continue
            first = min(self.starts[op["name"]] for op in writers)
            last = max(self.done(op["name"]) for op in writers)
            for op in self.ops.values():
                for access in op.get("reads", []):
                    if access["storage"] == name:
                        later = self.ii * access.get("distance", 0)
                        last = max(last, self.done(op["name"]) + later)
            if last - first > depth * self.ii:
                self.wrong.append(f"{name} lives {last - first} cycles in {depth} slots")
        for space, most in self.entry["resources"]["bytes"].items():
            if most is not None and space != "register" and used[space] > most:
                self.wrong.append(f"{used[space]} bytes of {space}; there are {most}")

    def registers(self) -> None:
        """Tiles in registers fit, in every cycle of the steady state."""
        for group, room in self.groups.items():
            if room is None:
                continue
            live = [0] * self.ii
            for value, row in self.values.items():
                maker = self.ops.get(self.maker.get(value, ""))
                if maker is None or maker.get("agent") != group or row.get("storage"):
                    continue
                if row.get("view_of") is not None or not size(row.get("type")):
                    continue
                begin = self.starts[maker["name"]] + maker.get("latency", 0)
                for cycle in range(begin, self._last_read(value)):
                    live[cycle % self.ii] += size(row["type"])
            if max(live, default=0) > room:
                self.wrong.append(f"{max(live)} bytes of tiles in {group}; it has {room}")

    def _last_read(self, value: str) -> int:
        reads = [0]
        for op in self.ops.values():
            for operand in op.get("operands", []):
                if self.root(operand["value"]) == value:
                    reads.append(self.starts[op["name"]] + self.ii * operand.get("distance", 0))
        return max(reads)


def check(entry: Problem) -> list[str]:
    """Everything that is wrong with the answer for a loop."""
    checked = Checked(entry)
    checked.once()
    if not checked.wrong:
        for rule in (checked.slots, checked.flow, checked.agents, checked.rings, checked.registers):
            rule()
    return checked.wrong


def main() -> int:
    """Every loop of every file."""
    failed = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        for entry in document["loops"]:
            wrong = check(entry) if entry["success"] else entry["errors"]
            failed += bool(wrong)
            told = "; ".join(wrong) or f"II {entry['ii']}, at least {entry['lower']}"
            print(f"{path}: {entry['name']}: {told}")
    return 1 if failed or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())
