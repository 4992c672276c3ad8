"""A machine from what microbenchmarks measured on somebody's own card.

    benchmarks/gpu/micro.py ──► results.jsonl ──► timings of waits, copies, products ──► my-gpu.toml

Each figure is read off one or two programs, which its `source` names; none is fitted to a kernel
that is predicted with it. What microbenchmarks cannot tell is taken from `h200`, which the file
extends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

from stretto.errors import DocumentError
from stretto.machine import Machine, load_machine
from stretto.machine.thread_timings import loads_from

HUNDREDTHS = 100
PIPES = (("multiply", 64), ("subtract", 64), ("higher", 128))
"""Programs that keep an arithmetic pipe busy, and the columns of their tiles."""
TILES = ((128, 128, 64, 4), (64, 64, 64, 6), (128, 64, 64, 4), (64, 128, 64, 6), (256, 128, 64, 2),
         (128, 256, 64, 3), (64, 256, 64, 4))  # fmt: skip
"""Rows of tiles that the programs `tiles` load, their columns, and how many are on their way."""
LOADING = "hundredths of bytes a cycle of an SM, all SMs loading"
NARROW = (128, 128, 32, 6)
"""Tiles of half the columns."""
DRIFTED, LONG = ((128, 64), (64, 128), (128, 128), (64, 64)), 4096
"""Rows of the tiles of both factors, and trips after which blocks are out of step."""
READ = "64, 96, 128"
"""Bytes of shared memory that the products beside which lanes meet read in a cycle."""
NARROWEST = 32
"""Columns of a product that waits for what it reads of shared memory."""
MET = 8
"""Columns of a tile that hardly has more to do than to bring lanes together."""
PIPED = (
    "hundredths of cycles of a scheduler's pipes for an instruction: arithmetic, integers, "
    "special functions, shared memory"
)
TAKEN = (
    "hundredths of cycles after which arithmetic takes what a product would have written, and by "
    "which that is later"
)
SCHEDULERS = 4
"""Of an SM; one of them accesses shared memory in a cycle."""
STEPS = 8
"""Operations in a row of the program `rows`, each of which waits for the one before."""

AGAIN = "measure again with benchmarks/gpu/micro.py, all of it"
LARGEST = 1e15
"""Of what is measured: far above any, and every sum of some is finite."""
RATES = ("copy_port", "copy_rate", "copy_clock", "copy_cached", "read", "load_rate", "load_clock")
"""Beginnings of figures that are divided by."""
PLAIN = re.compile(r"[\w .,:+()/-]{1,100}")
"""What names and versions are made of."""

Figure = tuple[tuple[int, ...], str, str]
"""Values, meaning, source."""


@dataclass(frozen=True)
class Row:
    """A row of a results file, and where it stands."""

    file: str
    line: int
    told: Mapping[str, Any]

    def number(self, name: str) -> float:
        """What was measured: a finite number."""
        value: object = self.told.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.fail(f"has {json.dumps(value)[:40]} as its `{name}`", "expected a number")
        if not abs(value) < LARGEST:  # NaN is not either
            told = f"has {value:g} as its `{name}`"
            raise self.fail(told, f"expected a number below {LARGEST:g}")
        return float(value)

    def amount(self, name: str) -> float:
        """The same, above 0."""
        value = self.number(name)
        if value <= 0:
            raise self.fail(f"has {value:g} as its `{name}`", "expected a number above 0")
        return value

    def text(self, name: str) -> str:
        """What was said, in one line that needs no quotes to be escaped."""
        value = self.told.get(name)
        if not isinstance(value, str) or not PLAIN.fullmatch(value):
            told = f"has {json.dumps(value)[:40]} as its `{name}`"
            raise self.fail(told, "expected letters, digits and dots")
        return value

    def fail(self, message: str, hint: str = AGAIN) -> DocumentError:
        """An error that names this row."""
        kind = str(self.told.get("kind"))[:40]
        return DocumentError(self.file, f"line {self.line}", f"{kind} {message}", hint)


class Results:
    """Rows of a results file, found by what they measured."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._rows: list[Row] = []
        self._asked: Row | None = None
        """The row that was asked for last."""
        for number, line in enumerate(text.splitlines(), 1):
            try:
                row: Any = json.loads(line)
            except (ValueError, RecursionError):
                raise DocumentError(file, f"line {number}", "is not JSON") from None
            if not isinstance(row, dict) or "kind" not in row:
                raise DocumentError(file, f"line {number}", "is no row of micro.py")
            self._rows.append(Row(file, number, cast("Mapping[str, Any]", row)))

    def row(self, **wanted: object) -> Row:
        """The row that measured this."""
        told = " ".join(f"{name} {value}" for name, value in wanted.items())
        for row in self._rows:
            if all(row.told.get(name) == value for name, value in wanted.items()):
                if "error" in row.told:
                    raise DocumentError(self._file, "", f"{told} failed: {row.told['error']}")
                self._asked = row
                return row
        raise DocumentError(self._file, "", f"has no row of {told}", AGAIN)

    def cycles(self, **wanted: object) -> float:
        """Cycles of that row."""
        return self.row(**wanted).amount("cycles")

    def measured(self, kind: str) -> list[Row]:
        """All rows of a kind that were measured."""
        self.row(kind=kind)
        return [row for row in self._rows if row.told["kind"] == kind and "error" not in row.told]

    def tell(self, figures: Callable[[Results], dict[str, Figure]]) -> dict[str, Figure]:
        """Figures that are read off these rows; DocumentError where these make no sense."""
        try:
            found = figures(self)
        except (ArithmeticError, ValueError):
            told = "tells nothing beside those that it is compared with: they are too much alike"
            raise (self._asked or Row(self._file, 1, {})).fail(told) from None
        for name, (values, _, source) in found.items():
            if name.startswith(RATES) and not all(values):
                told = f"rows of {source} make `{name}` 0, which has to be above"
                raise DocumentError(self._file, "", told, AGAIN)
        return found


def timings_from(results: Results) -> dict[str, Figure]:
    """The timings that microbenchmarks tell."""
    found: dict[str, Figure] = {}
    for figures in (_barriers, _copies, _products, _beside, _code, loads_from):
        found |= results.tell(figures)
    return found


def _barriers(results: Results) -> dict[str, Figure]:
    def turn(arrives: int, waits: int, warps: int) -> float:
        shape = {"product": 1, "n": 128, "k": 64, "warps": warps}
        return results.cycles(kind="turn", arrives=arrives, waits=waits, **shape)

    def barrier(op: str, warps: int) -> float:
        return results.cycles(kind="barrier", op=op, warps=warps)

    wait, wide = (turn(2, 1, warps) - turn(2, 0, warps) for warps in (4, 8))
    arrive, wider = (turn(2, 0, warps) - turn(1, 0, warps) for warps in (4, 8))
    settle = turn(1, 0, 4) - turn(0, 0, 4) - arrive
    first, single = (barrier("arrive_wait", w) - barrier("wait", w) for w in (4, 1))
    hand = results.cycles(kind="hand_over", warps=4, other=1) / 2
    each = "of four warps, and for each warp more"
    return {
        "wait": (
            _whole(wait, (wide - wait) / 4),
            f"a wait for what is there: {each}",
            "turn of two arrivals, with a wait less without",
        ),
        "arrive": (
            _whole(arrive, (wider - arrive) / 4),
            f"an arrival: {each}",
            "turn of two arrivals less of one",
        ),
        "settle": (
            _whole(settle),
            "what follows a wait for products, until warps have met",
            "turn of an arrival less of none, less an arrival",
        ),
        "wake": (
            _whole(hand - (first + single) / 2),
            "from an arrival until a waiter goes on",
            "hand_over of 4 warps and 1, less arrivals before waits",
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

    def alone(source: str, columns: int = 128, walk: str = "down") -> float:
        shape = {"rows": 128, "columns": columns, "walk": walk, "share": 1}
        return 128 * columns * 2 / min(
            results.cycles(kind="copies", **shape, source=source, ring=ring) for ring in (2, 4)
        )  # fmt: skip

    apart = alone("l2", 32, "across") / alone("l2", 64, "across")
    found: dict[str, Figure] = {
        "copy_issue": (_whole(copy(128, 64, "issue", "l2")), "a copy is issued", "copy issue"),
        "copy_port": (
            _whole(port),
            "bytes a cycle that an SM takes in at most",
            "copy latency, 32 KB less 4 KB",
        ),
        "copy_cached": (
            _whole(_cached(results)),
            "bytes that are found in L2 when they are walked over again and again",
            "walked, less than half way to HBM",
        ),
    }
    found["copy_clock"] = (
        _whole(
            results.row(kind="copies", rows=128, columns=128, walk="down", ring=4).amount("mhz")
        ),
        "MHz of the SMs while copies were measured: memory and L2 have clocks of their own",
        "copies",
    )
    for source, first in latency.items():
        found[f"copy_latency_{source}"] = (
            _whole(first),
            f"until the first byte of a copy from {source.upper()}",
            "copy latency of one SM, less the bytes",
        )
        found[f"copy_rate_{source}"] = (
            _whole(alone(source) * HUNDREDTHS),
            f"{LOADING} tiles of their own from {source.upper()}",
            "copies, the best ring",
        )
    return found | _shared_copies(results, port, apart)


def _shared_copies(results: Results, port: float, narrow_alone: float) -> dict[str, Figure]:
    """Of tiles that several blocks load."""

    def shared(a: int, b: int, columns: int, ring: int, **more: int) -> float:
        shape = {"a": a, "b": b, "columns": columns, "ring": ring, "pace": 0} | more
        return (a + b) * columns * 2 / results.cycles(kind="tiles", **shape)

    def drifted(a: int, b: int) -> float:
        shape = {"a": a, "b": b, "columns": 64, "ring": 6, "lag": 1, "trips": LONG}
        return a * 128 / (results.cycles(kind="tiles", **shape) - b * 128 / port)

    def outside(**shape: int) -> float:
        cool, hot = (results.row(kind="heated", **shape, pause=pause) for pause in (None, 0))
        slower = 1 - hot.amount("mhz") / cool.amount("mhz")
        if slower <= 0:
            told = (
                f"ran at {hot.number('mhz'):g} MHz and at {cool.number('mhz'):g} without products"
            )
            raise hot.fail(f"{told}: their clock has to fall")
        return (1 - hot.amount("cycles") / cool.amount("cycles")) / slower

    fastest = max(shared(*tiles) for tiles in TILES)
    narrow = max(shared(*NARROW), shared(*NARROW, lag=1)) / fastest
    return {
        "copy_rate_shared": (
            _whole(fastest * HUNDREDTHS),
            f"{LOADING} tiles that several load at once, while they are in step",
            "tiles, the fastest of all shapes",
        ),
        "copy_rate_apart": (
            _whole(median(drifted(a, b) for a, b in DRIFTED) * HUNDREDTHS),
            f"{LOADING} tiles that others load too, once they are out of step",
            "tiles of long runs, ring of 6, less what neighbours share",
        ),
        "copy_outside": (
            _whole(min(1.0, outside(share=4, ring=4, tiles=4)) * HUNDREDTHS),
            "hundredths of the time of such tiles, while in step, that no clock of the SMs changes",
            "heated, products without a pause and none",
        ),
        "copy_narrow": (
            _whole(narrow * HUNDREDTHS, narrow_alone * HUNDREDTHS),
            "hundredths of a rate for tiles of rows of 64 bytes: that several load, and others",
            "tiles of 32 columns beside the fastest; copies of 32 columns beside 64",
        ),
    }


def _cached(results: Results) -> int:
    """Bytes of the largest walk that takes less than half of what HBM takes more than L2."""
    rows = sorted(results.measured("walked"), key=lambda row: row.amount("bytes"))
    small, large = (row.amount("cycles") for row in (rows[0], rows[-1]))
    if small >= large:
        told = f"of {large:g} cycles is the largest, and the smallest has {small:g}"
        raise rows[-1].fail(f"{told}: walk over less than L2 has, and over more")
    half = (small + large) / 2
    return int(max(row.number("bytes") for row in rows if row.amount("cycles") < half))


def _products(results: Results) -> dict[str, Figure]:
    def product(how: str, n: int, k: int) -> float:
        return results.cycles(kind="product", how=how, n=n, k=k, registers=0, warps=4)

    shapes = [(n, k) for n in (64, 128, 256) for k in (64, 128)]
    late = median(product("single", n, k) - product("steady", n, k) for n, k in shapes)
    issue = 128 * 128 / product("issue", 128, 128)
    read = (64 + NARROWEST) * 128 * 2 / product("steady", NARROWEST, 128)
    store = results.cycles(kind="store", how="tma", n=128, warps=4)
    kept = results.cycles(kind="store", how="smem", n=128, warps=4)
    info = results.row(kind="info")
    return {
        "product_issue": (
            _whole(0, issue),
            "a product is issued: cycles, and elements of its right factor a cycle more",
            "product issue",
        ),
        "read": (
            _whole(read),
            "bytes of shared memory a cycle that products read at most",
            f"product steady of {NARROWEST} columns, both factors there",
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
        "sms": ((int(info.amount("sms")),), "SMs", "the driver"),
        "l2": ((int(info.amount("l2_bytes")),), "bytes of the L2 cache", "the driver"),
    }


def _beside(results: Results) -> dict[str, Figure]:
    def arithmetic(op: str, n: int, beside: str, **more: int) -> float:
        shape = {"d": 128} | more
        return results.cycles(kind="arithmetic", op=op, n=n, beside=beside, **shape)

    def slowed(op: str, n: int) -> float:
        return arithmetic(op, n, "products", p=128, k=128, registers=0)

    left = median(arithmetic(op, n, "two") / 2 / slowed(op, n) for op, n in PIPES)
    special = arithmetic("exponent", 128, "alone") / slowed("exponent", 128)
    met = arithmetic("maximum", MET, "alone")
    longer = [
        arithmetic("maximum", MET, "products", p=p, k=128, registers=registers) - met
        for p, registers in ((128, 1), (128, 0), (64, 0))
    ]
    further = arithmetic("maximum", MET, "two", d=64, tall=2) - arithmetic("maximum", MET, "two")
    return {
        "beside": (
            _whole(left * HUNDREDTHS),
            "hundredths of the arithmetic pipes that a running product leaves to others",
            f"arithmetic {', '.join(op for op, _ in PIPES)}: two agents, beside products",
        ),
        "special": (
            _whole(special * HUNDREDTHS),
            "hundredths of the special function units that a running product leaves to others",
            "arithmetic exponent, alone and beside products",
        ),
        "meeting": (
            _whole(met, *longer),
            f"lanes meet: alone, and cycles more beside products that read {READ} bytes a cycle",
            "arithmetic maximum of 8 columns",
        ),
        "further": (
            _whole(further),
            "lanes meet: cycles more for each two rows of a thread beyond the first two",
            f"arithmetic maximum of {MET} columns and twice the rows: two agents",
        ),
        "elements": (
            _whole(*(arithmetic(op, 128, "two") / 2 for op in ("subtract", "higher"))),
            "8,192 elements are added to others; are compared or chosen",
            "arithmetic subtract, higher: two agents, each",
        ),
        "lag": (
            _whole(arithmetic("rows", 128, "alone") / STEPS),
            "from one operation to the next that takes its elements",
            "arithmetic rows, of 8 steps",
        ),
    }


def _code(results: Results) -> dict[str, Figure]:
    """Of instructions of one scheduler: tiles of 128 columns have 32 more of them than of 64."""

    def alone(op: str, n: int) -> float:
        return results.cycles(kind="arithmetic", op=op, n=n, d=128, beside="alone")

    def beside(op: str, n: int, what: str = "cycles") -> float:
        shape = {"op": op, "n": n, "d": 128, "beside": "products", "p": 128, "k": 128}
        return results.row(kind="arithmetic", registers=1, **shape).number(what)

    def more(by: Callable[[str, int], float], op: str, instructions: int = 32) -> float:
        return (by(op, 128) - by(op, 64)) / instructions * HUNDREDTHS

    def turn(n: int, k: int, registers: int) -> float:
        shape = {"how": "steady", "n": n, "k": k, "registers": registers}
        both = results.cycles(kind="products", beside="steady", **shape)
        return both / 2 - results.cycles(kind="product", warps=4, **shape)

    arithmetic, compared, special = (more(alone, op) for op in ("multiply", "higher", "exponent"))
    slower = (more(beside, "higher") + more(beside, "choose", 64)) / 2
    dense, busy = beside("multiply", 128), beside("multiply", 128, "products")
    product = results.cycles(kind="product", how="steady", n=128, k=128, registers=1, warps=4)
    shapes = [(n, k, registers) for n in (64, 128) for k in (64, 128) for registers in (0, 1)]
    wide = "128 columns less 64"
    return {
        "code_pipes": (
            _whole(arithmetic, compared, special, SCHEDULERS * HUNDREDTHS),
            PIPED,
            f"arithmetic multiply, higher, exponent, {wide}; four schedulers share the memory",
        ),
        "code_beside": (
            _whole(arithmetic, slower, more(beside, "exponent"), SCHEDULERS * HUNDREDTHS),
            "the same while a product runs",
            f"arithmetic higher, choose, exponent beside products, {wide}",
        ),
        "code_writes": (
            _whole(HUNDREDTHS**2 / more(beside, "sum", 64)),
            "hundredths of results a cycle that a running product lets into registers",
            f"arithmetic sum beside products, {wide}",
        ),
        "code_taken": (
            _whole(
                (dense / 64 - 1) * HUNDREDTHS, (busy - product) * dense / busy / 64 * HUNDREDTHS
            ),
            TAKEN,
            "arithmetic multiply of 128 columns and products beside each other",
        ),
        "code_turn": (
            _whole(median(turn(*shape) for shape in shapes)),
            "the tensor core goes over to the products of another agent",
            "products steady beside steady, half of it less product steady",
        ),
    }


def _whole(*numbers: float) -> tuple[int, ...]:
    return tuple(max(0, round(number)) for number in numbers)


def measured_on(results: Results) -> str:
    """When and on what."""
    info = results.row(kind="info")
    when, gpu, triton = map(info.text, ("date", "gpu", "triton"))
    return f"on {when} on an {gpu} with {info.amount('sms'):.0f} SMs, Triton {triton}"


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
