"""Writes the pages that the browser tests open: shipped kernels, and loops made to be awkward.

pages.py FOLDER  ──►  attention_forward.html, thousand.html, hostile.html, ...
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import stretto
from stretto.loop import Dependence, Op, Use
from stretto.report.html import page

ROOT = Path(__file__).parents[2]
HOSTILE = '</script><script>document.title="broken"</script><img src=x onerror=alert(1)>&amp;\u2028'


def document(loop: stretto.Loop, file: str = "", text: str = "", **options: Any) -> dict[str, Any]:
    """The document of one loop, with its source."""
    found = stretto.schedule(loop, **options)
    return {
        "schema": "stretto.schedule/1",
        "success": found.success,
        "version": stretto.__version__,
        "source": {"file": file, "text": text},
        "loops": [found.to_json()],
    }


def example(name: str) -> dict[str, Any]:
    """A shipped kernel with its text."""
    path = ROOT / "examples" / name
    return document(_only(path), str(path), path.read_text(encoding="utf-8"))


def _only(path: Path) -> stretto.Loop:
    (loop,) = stretto.read(path).loops
    return loop


def chains(count: int, width: int = 10, prefix: str = "op") -> stretto.Loop:
    """A loop of so many operations: chains beside each other, one closed by a recurrence."""
    slots = ("TMA", "TC", "CUDA", "SFU")
    names = [f"{prefix}{i}" for i in range(count)]
    ops = tuple(
        Op(name, "copy", latency=3 + i % 5, uses=(Use(slots[i % 4], 1 + i % 3),))
        for i, name in enumerate(names)
    )
    chained = [Dependence(names[i - width], names[i], 3 + i % 5) for i in range(width, count)]
    back = Dependence(names[width], names[0], 2, distance=1)
    return stretto.Loop("made", ops, stated=(*chained, back), machine="b200-pipes")


def named(*names: str) -> stretto.Loop:
    """A chain of operations with these names."""
    ops = tuple(Op(name, "copy", latency=3, uses=(Use("TMA", 1),)) for name in names)
    chained = tuple(Dependence(a, b, 3) for a, b in pairwise(names))
    return stretto.Loop("named", ops, stated=chained, machine="b200-pipes")


def measured() -> dict[str, Any]:
    """A kernel with what might have been measured of it: a tenth slower than predicted."""
    found = example("gemm.mlir")
    loop = found["loops"][0]
    loop["measured"] = {
        "unit": "cycles",
        "events": [
            {
                "op": op["name"],
                "agent": op["agent"],
                "iteration": i,
                "start": (op["start"] + loop["ii"] * i) * 11 // 10,
                "end": (op["start"] + loop["ii"] * i + op["completion"]) * 11 // 10,
            }
            for op in loop["ops"]
            for i in range(4)
        ],
    }
    return found


PAGES: dict[str, Callable[[], dict[str, Any]]] = {
    "attention_forward": lambda: example("attention_forward.mlir"),
    "attention_forward_d128": lambda: example("triton/attention_forward_d128.ttir"),
    "attention_backward": lambda: example("attention_backward.mlir"),
    "sixty": lambda: document(chains(60)),
    "thousand": lambda: document(chains(1000, width=25)),
    "hostile": lambda: document(chains(12, width=3, prefix=HOSTILE), HOSTILE, HOSTILE),
    "objects": lambda: document(named("__proto__", "constructor", "toString", "a\x01b", "1")),
    "measured": measured,
    "failed": lambda: document(chains(12, width=3), max_ii=2),
}


def leaflets(folder: Path) -> None:
    """The pages of `bench` and `sweep`, made in this process."""
    loops = list(stretto.generate_loops(8, seed=1, ops=9))
    gemm = ROOT / "examples" / "triton" / "matmul_descriptors.ttir"
    budgets = {"budgets.smem.bytes": [49152, 116224, 232448]}
    with ThreadPoolExecutor(1) as pool:
        bench = stretto.bench(loops, repeat=1, executor=pool)
        sweep = stretto.sweep(gemm, settings=budgets, executor=pool, cache=False)
    (folder / "bench.html").write_text(bench.to_html(), encoding="utf-8")
    (folder / "sweep.html").write_text(sweep.to_html(), encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    leaflets(folder)
    for name, make in PAGES.items():
        (folder / f"{name}.html").write_text(page(make()), encoding="utf-8")
