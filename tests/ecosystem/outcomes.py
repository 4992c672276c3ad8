"""What became of kernels: how far each came, and the page that tells it.

Outcome ──► table.json ──► compared with the next run
        └─► table.md       counts, reasons, a row a kernel
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LEVELS = (
    "not read", "read", "scheduled", "printed without overlap", "emitted", "compiled",
    "no extra spill",
)  # fmt: skip
"""How far a kernel came; each is worth more than those before it."""
COLUMNS = ("kernels", "all", *LEVELS[1:])
Told = dict[str, Any]


@dataclass
class Outcome:
    """What became of one kernel."""

    name: str
    triton: str = ""
    """Why Triton itself does not compile it; then it counts for nothing."""
    products: int = 0
    loops: int = 0
    level: str = LEVELS[0]
    overlap: str = ""
    """`agents`; `copies`, or `loads` into registers, in flight beyond their step; iterations
    `together`; or none."""
    consumers: int = 0
    spilled: int | None = None
    """Bytes, of ours."""
    own: int | None = None
    """Bytes that Triton's own compile spills."""
    reason: str = ""
    """What stopped it, as a user is told."""

    @property
    def kind(self) -> str:
        """`products`, `loops`, or `neither`: without a loop that reads memory nothing overlaps."""
        return "neither" if not self.loops else "products" if self.products else "loops"

    @property
    def rank(self) -> int:
        """How far it came, as a number."""
        return LEVELS.index(self.level)

    def to_json(self) -> Told:
        """What is committed of it."""
        return {k: v for k, v in asdict(self).items() if v not in ("", None)}


def kind_of(reason: str) -> str:
    """What reasons of one kind have in common: operations, no other names and no numbers."""
    reason = re.sub(r"`([^`]*)`", _operation_or_any, reason)
    return re.sub(r"(?<![\w.`])[-+]?\d[\d,.:]*", "N", reason)


def _operation_or_any(quoted: re.Match[str]) -> str:
    return quoted.group() if re.fullmatch(r"[a-z_]+\.[\w.]+", quoted.group(1)) else "`…`"


def summary(found: Iterable[Outcome]) -> list[str]:
    """How many came how far, of each kind."""
    lines = [
        f"| {' | '.join(COLUMNS)} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    counted = [one for one in found if not one.triton]
    for kind, told in (
        ("products", "with products"),
        ("loops", "with loops, no product"),
        ("neither", "without a loop that reads memory: left to Triton"),
    ):
        mine = [one for one in counted if one.kind == kind]
        reached = [sum(one.rank >= LEVELS.index(level) for one in mine) for level in LEVELS]
        only = sum(one.level == "printed without overlap" for one in mine)
        shown = (len(mine), reached[1], reached[2], only, *reached[4:])
        lines.append(f"| {told} | " + " | ".join(map(str, shown)) + " |")
    return lines


def recorded() -> int:
    """How many launches are kept."""
    files = sorted((Path(__file__).parent / "launches").glob("*.jsonl"))
    return sum(len(file.read_text("utf-8").splitlines()) for file in files)


def page(found: list[Outcome]) -> str:
    """The table as a page."""
    aside = [one for one in found if one.triton]
    reasons = Counter(
        (one.kind, kind_of(one.reason)) for one in found if one.reason and one.kind != "neither"
    )
    lines = [
        "# Kernels of public libraries, and how far each comes",
        "",
        "Written by `make ecosystem`; [README.md](README.md) says what the columns mean.",
        "",
        *summary(found),
        "",
        f"{recorded():,} launches are recorded, and {len(found):,} of them were put through;",
        f"Triton itself does not compile {len(aside)} of these.",
        "",
        "## Reasons",
        "",
        "| kernels | of | reason |",
        "|--:|---|---|",
        *(f"| {n} | {kind} | {_cell(why)} |" for (kind, why), n in reasons.most_common()),
        "",
        "## Kernels",
        "",
        "| kernel | products | loops | came to | by | spilled (Triton's own) | reason |",
        "|---|--:|--:|---|---|---|---|",
    ]
    for one in found:
        if one.triton:
            lines.append(f"| {one.name} | | | Triton fails | | | {_cell(one.triton)} |")
            continue
        by = f"{one.overlap}, {one.consumers} consumers" if one.consumers > 1 else one.overlap
        idle = one.kind == "neither" and one.rank == LEVELS.index("read")
        came = "nothing to overlap: left to Triton" if idle else one.level
        spilled = f"{'' if one.spilled is None else one.spilled} ({one.own})".strip()
        lines.append(
            f"| {one.name} | {one.products} | {one.loops} | {came} | {by} "
            f"| {spilled} | {_cell(one.reason)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def compared(found: list[Outcome], known: dict[str, dict[str, Any]]) -> list[str]:
    """Kernels that come less far than they did."""
    lost: list[str] = []
    for one in found:
        before = known.get(one.name)
        if before is None or before.get("triton") or one.kind == "neither":
            continue
        if LEVELS.index(before["level"]) > one.rank or one.triton:
            why = one.reason or one.triton
            lost.append(f"{one.name}: was `{before['level']}`, is `{one.level}`: {why}")
    return lost
