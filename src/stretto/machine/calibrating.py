"""A machine from what microbenchmarks measured on somebody's own card.

    benchmarks/gpu/micro.py ──► results.jsonl ──► timings of waits, copies, products ──► my-gpu.toml

Each figure is read off one or two programs, which its `source` names; none is fitted to a kernel
that is predicted with it. What microbenchmarks cannot tell is taken from `h200`, which the file
extends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, cast

from stretto.errors import DocumentError
from stretto.machine import Machine, load_machine
from stretto.machine.thread_timings import loads_from

HUNDREDTHS = 100
ISSUE = 64
"""Cycles in which four schedulers issue one instruction for each element of a 64 x 128 tile."""
BESIDE = {"choose": 3.0, "narrow": 1.75, "softmax_rescale": 8.75}
"""Instructions an element of some programs: a comparison, a sum and a choice, for one."""
STEPS = 8
"""Operations in a row of the program `rows`, each of which waits for the one before."""

Figure = tuple[tuple[int, ...], str, str]
"""Values, meaning, source."""


class Results:
    """Rows of a results file, found by what they measured."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._rows: list[Mapping[str, Any]] = []
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row: Any = json.loads(line)
            except ValueError:
                raise DocumentError(file, f"line {number}", "is not JSON") from None
            if not isinstance(row, dict) or "kind" not in row:
                raise DocumentError(file, f"line {number}", "is no row of micro.py")
            self._rows.append(cast("Mapping[str, Any]", row))

    def row(self, **wanted: object) -> Mapping[str, Any]:
        """The row that measured this."""
        for row in self._rows:
            if all(row.get(name) == value for name, value in wanted.items()):
                if "error" in row:
                    told = " ".join(f"{name} {value}" for name, value in wanted.items())
                    raise DocumentError(self._file, "", f"{told} failed: {row['error']}")
                return row
        told = " ".join(f"{name} {value}" for name, value in wanted.items())
        hint = "measure again with benchmarks/gpu/micro.py, all of it"
        raise DocumentError(self._file, "", f"has no row of {told}", hint)

    def cycles(self, **wanted: object) -> float:
        """Cycles of that row."""
        return float(self.row(**wanted)["cycles"])


def timings_from(results: Results) -> dict[str, Figure]:
    """The timings that microbenchmarks tell."""
    own = {**_barriers(results), **_copies(results), **_products(results), **_beside(results)}
    return {**own, **loads_from(results)}


def _barriers(results: Results) -> dict[str, Figure]:
    def barrier(op: str, warps: int) -> float:
        return results.cycles(kind="barrier", op=op, warps=warps)

    wait, wide = barrier("wait", 4), barrier("wait", 8)
    arrive = barrier("arrive_wait", 4) - wait
    wider = barrier("arrive_wait", 8) - wide
    single = barrier("arrive_wait", 1) - barrier("wait", 1)
    hand = results.cycles(kind="hand_over", warps=4, other=1) / 2
    each = "of four warps, and for each warp more"
    return {
        "wait": (
            _whole(wait, (wide - wait) / 4),
            f"a wait for what is there: {each}",
            "barrier wait",
        ),
        "arrive": (
            _whole(arrive, (wider - arrive) / 4),
            f"an arrival before a wait: {each}",
            "barrier arrive_wait less wait",
        ),
        "wake": (
            _whole(hand - (arrive + single) / 2),
            "from an arrival until a waiter goes on",
            "hand_over of 4 warps and 1, less the arrivals",
        ),
        "expect": (
            _whole(single),
            "a barrier is told how many bytes come",
            "barrier arrive_wait less wait, 1 warp",
        ),
    }


def _copies(results: Results) -> dict[str, Figure]:
    def copy(rows: int, columns: int, what: str, source: str) -> float:
        return results.cycles(
            kind="copy", rows=rows, columns=columns, what=what, source=source, blocks="one"
        )

    small, large = 32 * 64 * 2, 128 * 128 * 2
    spans = copy(128, 128, "latency", "l2") - copy(32, 64, "latency", "l2")
    port = (large - small) / spans
    latency = {
        source: median(
            copy(rows, columns, "latency", source) - rows * columns * 2 / port
            for rows, columns in ((64, 64), (64, 128), (128, 64), (128, 128))
        )
        for source in ("l2", "hbm")
    }

    def rate(source: str, share: int, rows: int = 128, columns: int = 128, **more: object) -> float:
        asked = {"kind": "copies", "rows": rows, "columns": columns, "source": source, **more}
        parts = int(str(more.get("parts", 1)))
        found = [
            rows * columns * 2 * parts / results.cycles(**asked, share=share, ring=ring)
            for ring in (2, 4)
        ]
        return max(found)

    shared = {
        source: median(rate(source, share, 128, 64, parts=2, walk="across") for share in (8, 16))
        for source in ("l2", "hbm")
    }
    meaning = (
        "hundredths of bytes a cycle of an SM, all SMs loading tiles that 1, 4, 16, 132 of them "
        "load at once"
    )
    found: dict[str, Figure] = {
        "copy_issue": (_whole(copy(128, 64, "issue", "l2")), "a copy is issued", "copy issue"),
        "copy_port": (
            _whole(port),
            "bytes a cycle that an SM takes in at most",
            "copy latency, 32 KB less 4 KB",
        ),
    }
    found["copy_clock"] = (
        _whole(results.row(kind="copies", rows=128, columns=128, walk="down", ring=4)["mhz"]),
        "MHz of the SMs while rates were measured: memory has a clock of its own",
        "copies",
    )
    for source, first in latency.items():
        found[f"copy_latency_{source}"] = (
            _whole(first),
            f"until the first byte of a copy from {source.upper()}",
            "copy latency of one SM, less the bytes",
        )
        rates = (rate(source, 1, walk="down"), rate(source, 4, walk="down"), shared[source],
                 rate(source, 132, walk="down"))  # fmt: skip
        found[f"copy_rate_{source}"] = (
            _whole(*(r * HUNDREDTHS for r in rates)), meaning, "copies, the best ring"
        )  # fmt: skip
    return found


def _products(results: Results) -> dict[str, Figure]:
    def product(how: str, n: int, k: int) -> float:
        return results.cycles(kind="product", how=how, n=n, k=k, registers=0, warps=4)

    shapes = [(n, k) for n in (64, 128, 256) for k in (64, 128)]
    late = median(product("single", n, k) - product("steady", n, k) for n, k in shapes)
    issue = 128 * 128 / product("issue", 128, 128)
    store = results.cycles(kind="store", how="tma", n=128, warps=4)
    kept = results.cycles(kind="store", how="smem", n=128, warps=4)
    info = results.row(kind="info")
    return {
        "product_issue": (
            _whole(0, issue),
            "a product is issued: cycles, and elements of its right factor a cycle more",
            "product issue",
        ),
        "product_latency": (
            _whole(late),
            "from the last cycle of the tensor core until the sum may be read",
            "product single less steady",
        ),
        "store": (
            _whole(store - kept, 64 * 128 * 2),
            "until a copy out has read shared memory: cycles, of so many bytes",
            "store tma less smem",
        ),
        "block": (
            _whole(results.cycles(kind="launch", name="starting")),
            "from the beginning of a block to that of its agents",
            "launch starting",
        ),
        "sms": ((int(info["sms"]),), "SMs", "the driver"),
        "l2": ((int(info["l2_bytes"]),), "bytes of the L2 cache", "the driver"),
    }


def _beside(results: Results) -> dict[str, Figure]:
    def arithmetic(op: str, n: int, beside: str) -> float:
        return results.cycles(kind="arithmetic", op=op, n=n, d=128, beside=beside)

    left = median(ISSUE * count / arithmetic(op, 128, "products") for op, count in BESIDE.items())
    special = arithmetic("exponent", 128, "products") * left / (8 * ISSUE)
    meeting = median(
        (arithmetic("softmax", n, "products") - arithmetic("softmax", n, "alone")) / 2
        for n in (32, 64, 128)
    )
    return {
        "beside": (
            _whole(left * HUNDREDTHS),
            "hundredths of the issue slots that a running product leaves to others",
            f"arithmetic {', '.join(BESIDE)} beside products, by their instructions",
        ),
        "special": (
            _whole(special * HUNDREDTHS),
            "hundredths of an issue slot for each cycle of the special function units",
            "arithmetic exponent beside products",
        ),
        "meeting": (
            _whole(meeting),
            "cycles more of a reduction while products run",
            "arithmetic softmax, which has two, beside products less alone",
        ),
        "lag": (
            _whole(arithmetic("rows", 128, "alone") / STEPS),
            "from one operation to the next that takes its elements",
            "arithmetic rows, of 8 steps",
        ),
    }


def _whole(*numbers: float) -> tuple[int, ...]:
    return tuple(max(0, round(number)) for number in numbers)


def measured_on(results: Results) -> str:
    """When and on what."""
    info = results.row(kind="info")
    return f"on {info['date']} on an {info['gpu']} with {info['sms']} SMs, Triton {info['triton']}"


def sections(figures: Mapping[str, Figure]) -> list[str]:
    """Timings as TOML."""
    lines: list[str] = []
    for name, (values, meaning, source) in figures.items():
        told = f"value = {values[0]}" if len(values) == 1 else f"values = {list(values)}"
        lines += [
            f"[timings.{name}]",
            told,
            f'meaning = "{meaning}"',
            f'source = "micro {source}"',
            "",
        ]
    return lines


def calibrated(file: str, text: str, base: str = "h200") -> Sequence[str]:
    """The lines of a machine file that extends a machine by what was measured."""
    results = Results(file, text)
    figures = timings_from(results)
    said = measured_on(results)
    return [
        f"# Written by `stretto machines --calibrate` from what was measured {said}.",
        "",
        f'extends = "{base}"',
        "",
        "[machine]",
        'name = "my-gpu"',
        f'title = "{base}, with the timings of this card"',
        f'measured = "{said}"',
        "",
        *sections(figures),
        *_inherited(load_machine(base), figures),
    ]


def _inherited(base: Machine, figures: Mapping[str, Figure]) -> list[str]:
    """What these microbenchmarks do not tell, row by row, and where each has it from."""
    rows = [(f"timings.{f.name}", f.source) for f in base.timings if f.name not in figures]
    rows += [(f"encodings.{row.name}", row.source) for row in base.encodings]
    return [
        f"# Not measured by these programs, and as in {base.name}:",
        *(f"# {name}: {source or 'not stated'}" for name, source in rows),
    ]
