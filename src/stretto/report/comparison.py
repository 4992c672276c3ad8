"""Two schedules side by side: what each takes, and which operations stand elsewhere.

attention_forward: b200-pipes against b200-pipes with budgets.smem.bytes=65536
                          A         B  change
  II, cycles          1,325     1,456    +131  +10%
  smem, bytes        81,920    65,536  -16,384  -20%
  op      A stage, cycle   B stage, cycle
  load_k         0     2          0   131
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stretto.machine.machine import CYCLES
from stretto.report import assumption, columns, cut, wrapped

if TYPE_CHECKING:
    from stretto.schemas.comparison import Side

SCHEMA = "stretto.comparison/1"


@dataclass(frozen=True, slots=True)
class Row:
    """One number of both; None: a side does not say."""

    what: str
    unit: str
    a: float | None
    b: float | None

    @property
    def change(self) -> float | None:
        """From A to B."""
        return None if self.a is None or self.b is None else self.b - self.a


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two entries of documents of schedules."""

    a: dict[str, Any]
    b: dict[str, Any]

    @property
    def success(self) -> bool:
        """Whether both have a schedule."""
        return bool(self.a.get("success", True) and self.b.get("success", True))

    def rows(self) -> Iterator[Row]:
        """What can be counted on either side."""
        # Of two machines the figures may be of two kinds, and are then set beside each other only.
        units = list(dict.fromkeys(side.get("unit", CYCLES) for side in (self.a, self.b)))
        figures = " and ".join(units)
        for what, unit, way in (
            ("II", figures, ("ii",)),
            ("MII", figures, ("bounds", "mii")),
            ("stages", "", ("stage_count",)),
            (f"{figures} beside those of iterations", figures, ("prediction", "fixed")),
        ):
            yield Row(what, unit, _at(self.a, way), _at(self.b, way))
        for space in _names(self.a.get("memory", {}), self.b.get("memory", {})):
            way = ("memory", space, "used")
            yield Row(space, "bytes", _at(self.a, way), _at(self.b, way))
        way = ("pressure", "peak")
        yield Row("register pressure", "registers", _at(self.a, way), _at(self.b, way))
        busy = [{s["name"]: s for s in side.get("slots", ())} for side in (self.a, self.b)]
        for name in _names(*busy):
            shares = [_percent(side.get(name)) for side in busy]
            yield Row(f"{name} busy", "%", shares[0], shares[1])

    def moved(self) -> list[tuple[str, dict[str, Any] | None, dict[str, Any] | None]]:
        """The operations that are placed differently, or are on one side alone."""
        sides = [{op["name"]: op for op in side.get("ops", ())} for side in (self.a, self.b)]
        found = [(name, sides[0].get(name), sides[1].get(name)) for name in _names(*sides)]
        return [row for row in found if _place(row[1]) != _place(row[2])]

    def to_json(self) -> dict[str, Any]:
        """As an entry of `loops` in a comparison document."""
        return {
            "name": self.a["name"],
            "success": self.success,
            "a": _side(self.a),
            "b": _side(self.b),
            "rows": [
                {"what": r.what, "unit": r.unit, "a": r.a, "b": r.b, "change": r.change}
                for r in self.rows()
            ],
            "moved": [{"op": name, "a": _place(a), "b": _place(b)} for name, a, b in self.moved()],
        }

    def to_text(self) -> list[str]:
        """For people."""
        names = dict.fromkeys((self.a["name"], self.b["name"]))
        a, b = (side.get("machine") or "?" for side in (self.a, self.b))
        lines = wrapped(f"{' against '.join(names)}: A on {a}, B on {b}", "", "  ")
        for side, entry in zip("AB", (self.a, self.b), strict=True):
            why = entry.get("machine_why", "")
            told = assumption(entry.get("machine", ""), why)
            lines += wrapped(
                "; ".join(filter(None, (f"{side}: {_verdict(entry)}", told))), "  ", "  "
            )
        table = [["", "A", "B", "change"]]
        table += [_cells(row) for row in self.rows() if (row.a, row.b) != (None, None)]
        lines += columns(table, "  ", right=(1, 2))
        moved = self.moved()
        if not moved:
            return [*lines, "  every operation stands in the same place"]
        places = [["op", "A stage", "cycle", "B stage", "cycle", ""]]
        for name, one, other in moved:
            cells = [str(n) for n in (*_numbers(one), *_numbers(other))]
            places.append([cut(name), *cells, ""])
        return [*lines, *columns(places, "  ", right=(1, 2, 3, 4))]

    def report(self) -> str:
        """Text for people, as the command line prints it."""
        return "\n".join(self.to_text())

    def __repr__(self) -> str:
        """In a line."""
        numbers = [entry.get("ii") or "none" for entry in (self.a, self.b)]
        return f"<Comparison {self.a['name']}: II {numbers[0]} and {numbers[1]}>"


def _names(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys([*a, *b]))


def _at(entry: dict[str, Any], way: tuple[str, ...]) -> float | None:
    value: Any = entry
    for key in way:
        value = None if value is None else value.get(key)
    return value


def _percent(slot: dict[str, Any] | None) -> float | None:
    return None if slot is None else round(100 * slot["utilization"], 1)


def _place(op: dict[str, Any] | None) -> dict[str, int] | None:
    return (
        None if op is None else {key: op[key] for key in ("start", "stage", "cycle") if key in op}
    )


def _numbers(op: dict[str, Any] | None) -> tuple[object, object]:
    return ("-", "-") if op is None else (op.get("stage", "-"), op.get("cycle", "-"))


def _side(entry: dict[str, Any]) -> Side:
    proof: dict[str, Any] = entry.get("proof") or {}
    return {
        "name": entry["name"],
        "machine": entry.get("machine", ""),
        "machine_why": entry.get("machine_why", ""),
        "unit": entry.get("unit", CYCLES),
        "success": entry.get("success", True),
        "generator": entry.get("generator", ""),
        "optimal": proof.get("optimal", False),
        "errors": entry.get("errors", []),
    }


def _verdict(entry: dict[str, Any]) -> str:
    if not entry.get("success", True):
        return "; ".join(entry.get("errors", ())) or "no schedule"
    side = _side(entry)
    proved = "optimal" if side["optimal"] else "not proved optimal"
    by = f", {side['generator']}" if side["generator"] else ""
    return f"II {entry['ii']}, {proved}{by}"


def _cells(row: Row) -> list[str]:
    what = f"{row.what}, {row.unit}" if row.unit and row.unit not in row.what else row.what
    change = row.change
    if change is None:
        told = ""
    elif not change:
        told = "="
    else:
        told = f"{change:+,g}"
        if row.a and row.unit != "%":
            told += f"  {change / row.a:+.0%}"
    return [what, *("-" if value is None else f"{value:,g}" for value in (row.a, row.b)), told]
