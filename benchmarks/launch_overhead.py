"""What a launch costs the host: Triton's own, Triton's under the decorator, and ours.

    python benchmarks/launch_overhead.py [--launches 10000] [-o results.json]

Needs Triton and torch. Five tensors and ten numbers are given; `new` launches on five addresses
that were never launched on. All ways take turns in one run, in blocks of a hundred launches, and
each launch is timed alone; told are medians. Without a GPU the driver launches nothing: Triton's
own launcher runs up to the call of the driver.
"""

# Triton and torch have no types here.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver

import stretto.triton
import triton
from stretto.triton import hooks

BLOCK = 100
"""Launches in a row of one way."""
SIZE = 128
NUMBERS = (SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, SIZE, 3, 5)


@triton.jit
def fused(  # noqa: D103
    a_ptr, b_ptr, r_ptr, s_ptr, c_ptr, M, N, K, sa, sb, sr, ss, sc, alpha, beta,  # noqa: N803
    BLOCK_M: tl.constexpr = 128, BLOCK_N: tl.constexpr = 128, BLOCK_K: tl.constexpr = 64,  # noqa: N803
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        depth = k + tl.arange(0, BLOCK_K)
        inside = (rows[:, None] < M) & (depth[None, :] < K)
        a = tl.load(a_ptr + rows[:, None] * sa + depth[None, :], mask=inside, other=0.0)
        inside = (depth[:, None] < K) & (columns[None, :] < N)
        b = tl.load(b_ptr + depth[:, None] * sb + columns[None, :], mask=inside, other=0.0)
        total = tl.dot(a, b, total)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    r = tl.load(r_ptr + rows[:, None] * sr + columns[None, :], mask=inside, other=0.0)
    s = tl.load(s_ptr + rows[:, None] * ss + columns[None, :], mask=inside, other=0.0)
    total = total * alpha + r * beta + s
    at = c_ptr + rows[:, None] * sc + columns[None, :]
    tl.store(at, total.to(tl.float16), mask=inside)


class NothingLaunched:
    """A driver of Triton's own kind, whose last call does nothing."""

    def __init__(self) -> None:
        driver.compile_module_from_src = lambda **_: SimpleNamespace(launch=itertools.chain)
        driver.library_dirs = list
        self.launcher_cls = driver.CudaLauncher
        self.utils = SimpleNamespace(
            fill_tma_descriptor=itertools.chain,
            get_device_properties=lambda _: {"max_shared_mem": 232448},
            load_binary=lambda *_: ("module", 0, 168, 0, 1024),
        )
        self.get_current_target = lambda: GPUTarget("cuda", 90, 32)
        self.get_current_device = int
        self.get_current_stream = int


def tensors(count: int, device: str) -> list[tuple[Any, ...]]:
    """Five tensors a launch, no two at one address."""
    each = SIZE * SIZE
    step = each + 64
    whole = torch.zeros(5 * step + 64 * count, dtype=torch.float16, device=device)
    # The five of a launch lie apart; those of another launch begin 128 bytes further.
    return [
        tuple(
            whole[n * step + 64 * k : n * step + 64 * k + each].view(SIZE, SIZE) for n in range(5)
        )
        for k in range(count)
    ]


def copied(kernel: Any) -> Any:
    """The kernel anew: it has compiled nothing yet."""
    return type(kernel)(kernel.fn)


def ways() -> dict[str, Any]:
    """Kernels, compiled and decided."""
    given = (*tensors(1, DEVICE)[0], *NUMBERS)
    found = {"Triton": copied(fused), "theirs": copied(fused), "ours": copied(fused)}
    found["Triton"][1, 1](*given)
    for name in ("theirs", "ours"):
        stretto.triton.pipeline(trial=False, strict=True)(found[name])
        found[name][1, 1](*given)
    theirs = next(d for r in hooks.DISPATCHES if (d := r()) and d.function is found["theirs"])
    for kind in theirs._settled:  # as if a trial had said so
        theirs._settled[kind] = theirs._stock
    return found


def measured(launches: int) -> dict[str, dict[str, float]]:
    """Medians in microseconds."""
    kernels = ways()
    same = tensors(1, DEVICE) * BLOCK
    new = {name: iter(tensors(launches + 2 * BLOCK, DEVICE)) for name in kernels}
    times: dict[str, dict[str, list[int]]] = {n: {"same": [], "new": []} for n in kernels}
    clock = time.perf_counter_ns
    for turn in range(launches // BLOCK + 1):
        for name, kernel in kernels.items():
            for kind in ("same", "new"):
                some = same if kind == "same" else list(itertools.islice(new[name], BLOCK))
                kept = times[name][kind]
                for five in some:
                    begin = clock()
                    kernel[1, 1](*five, *NUMBERS)
                    end = clock()
                    if turn:  # the first block warms up
                        kept.append(end - begin)
                if DEVICE == "cuda":
                    torch.cuda.synchronize()
    return {n: {k: median(v) / 1000 for k, v in t.items()} for n, t in times.items()}


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=10_000)
    parser.add_argument("-o", "--output", type=Path)
    asked = parser.parse_args()
    if DEVICE == "cpu":
        triton.runtime.driver.set_active(NothingLaunched())
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("STRETTO_CACHE", folder)
        found = measured(asked.launches)
    print(f"microseconds a launch, medians of {asked.launches:,}, {DEVICE}")
    for name, each in found.items():
        print(f"{name:8}" + "".join(f"  {kind} {value:6.2f}" for kind, value in each.items()))
    if asked.output:
        about = {
            "gpu": torch.cuda.get_device_name() if DEVICE == "cuda" else None,
            "python": platform.python_version(),
            "triton": triton.__version__,
            "torch": torch.__version__,
            "launches": asked.launches,
        }
        asked.output.write_text(json.dumps({**about, "medians_us": found}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
