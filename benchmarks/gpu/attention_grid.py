"""Attention forward over the whole grid of sizes, beside cuDNN, FlashAttention 3 and stock Triton.

    python benchmarks/gpu/kernels.py build/gpu/kernels 'forward_d*_128*'       (anywhere)
    python benchmarks/gpu/attention_grid.py build/gpu/kernels -o grid.json     (on a GPU; 6 min)

16,384 tokens in all, hidden size 2,048, fp16. Every kernel is first held against cuDNN's answer in
float32 of the same problem. What is compared runs in one process, in rounds whose order is drawn
anew from the round's number; `sustained` is 60 ms back to back, `cooled` a quarter of a second of
rest before 6 ms. Medians are told, all rounds are in the JSON, with the SM clock and the watts that
the driver reports meanwhile.

FlashAttention 3 is a shared library that defines `_vllm_fa3_C::fwd` (`--fa3 FILE.so`, or a zip that
has it), called in its variable-length form. Without one the column is left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

TOKENS, HIDDEN = 16_384, 2_048
LENGTHS = (1_024, 2_048, 4_096, 8_192, 16_384)
SUSTAINED, COOLED, REST = 0.060, 0.006, 0.25
"""Seconds of a turn, and of rest before one that is cooled."""
TOLERANCE = 2e-3
"""Relative error in the norm, against cuDNN."""
STOCK = ((128, 8, 2), (128, 8, 3), (64, 4, 3), (64, 8, 3))
"""Columns, warps and stages with which Triton compiles the same source: its best is told."""


class Meter:
    """Clock and power while something runs, as `nvidia-smi` reports them ten times a second."""

    def __init__(self):
        self.rows = []
        self._process = subprocess.Popen(
            [
                "nvidia-smi",
                "--query-gpu=clocks.sm,power.draw",
                "--format=csv,noheader,nounits",
                "--loop-ms=100",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            try:
                clock, watts = (float(part) for part in line.split(","))
            except ValueError:
                continue
            self.rows.append((time.time(), clock, watts))

    def between(self, begun, ended):
        """Medians of what was read in this time; None where nothing was."""
        rows = [row for row in self.rows if begun + 0.02 <= row[0] <= ended + 0.02]
        if not rows:
            return None
        return statistics.median(r[1] for r in rows), statistics.median(r[2] for r in rows)

    def close(self):
        """No more."""
        self._process.terminate()


def flash_attention_3(path):
    """The operator of the library, or None."""
    import torch

    if path is None:
        return None
    if path.suffix == ".zip":
        folder = tempfile.mkdtemp()
        with zipfile.ZipFile(path) as packed:
            packed.extractall(folder)
        (path,) = Path(folder).glob("*.so")
    torch.ops.load_library(str(path))
    return torch.ops._vllm_fa3_C.fwd.default


def runs_of(problem, kernel, operator):
    """What is compared: name to a call, and to the tensor that it leaves its answer in."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from attention_forward import attention_forward

    d, length, causal = problem.d, problem.length, problem.causal
    batch, heads = TOKENS // length, HIDDEN // d
    shaped = [t.view(batch, heads, length, d) for t in (problem.q, problem.k, problem.v)]

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*shaped, is_causal=causal)

    def own(run):
        def answer():
            run()
            return problem.o.view(batch, heads, length, d)

        return answer

    found = {"Stretto": own(problem.forward(kernel)), "cuDNN": cudnn}
    for columns, warps, stages in STOCK:
        grid = (length // 128, problem.heads)

        def stock(n=columns, w=warps, s=stages, grid=grid):
            attention_forward[grid](
                problem.q, problem.k, problem.v, problem.o, problem.lse, problem.scale, length,
                TOKENS * heads, BLOCK_M=128, BLOCK_N=n, D=d, CAUSAL=causal, num_warps=w,
                num_stages=s,
            )  # fmt: skip

        found[f"Triton {columns} w{warps} s{stages}"] = own(stock)
    if operator is not None:
        rows = [t.transpose(1, 2).contiguous().view(TOKENS, heads, d) for t in shaped]
        begins = torch.arange(0, TOKENS + 1, length, device="cuda", dtype=torch.int32)

        def flash():
            out = operator(
                *rows, None, None, None, None, begins, begins, None, None, None, length, length,
                None, None, None, None, None, None, None, None, None, d**-0.5, causal, -1, -1,
                0.0, True, None, 1, None, 0, None, 1, 0, None,
            )[0]  # fmt: skip
            return out.view(batch, length, heads, d).transpose(1, 2)

        found["FlashAttention 3"] = flash
    return found


def seconds_of(run, often):
    """Seconds of a call, over so many."""
    import torch

    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(often):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / often / 1e3


def right(runs):
    """The runs that agree with cuDNN, and the error of each."""
    import torch

    wanted = runs["cuDNN"]().float()
    good, errors = {}, {}
    for name, run in runs.items():
        try:
            off = (run().float() - wanted).norm() / wanted.norm()
            torch.cuda.synchronize()
            errors[name] = float(off)
        except Exception as failed:
            errors[name] = f"{type(failed).__name__}: {failed}"[:200]
            continue
        if errors[name] < TOLERANCE:
            good[name] = run
    return good, errors


def turns(runs, estimates, rounds, seconds, rest, meter):
    """Seconds of each in each round, and clock and watts where a turn is long enough to read."""
    times = {name: [] for name in runs}
    meters = {name: [] for name in runs}
    for number in range(rounds):
        names = list(runs)
        random.Random(number).shuffle(names)
        for name in names:
            time.sleep(rest)
            runs[name]()
            begun = time.time()
            times[name].append(seconds_of(runs[name], max(2, int(seconds / estimates[name]))))
            meters[name].append(meter.between(begun, time.time()))
    return times, meters


def best_stock(times):
    """The times with the fastest of Triton's settings alone, as `Triton`."""
    stock = {name: found for name, found in times.items() if name.startswith("Triton ")}
    rest = {name: found for name, found in times.items() if name not in stock}
    if stock:
        best = min(stock, key=lambda name: statistics.median(stock[name]))
        rest["Triton"] = stock[best]
    return rest


def cell(d, causal, length, kernel, operator, asked, meter):
    """A size: all rounds of all that is right."""
    import measure
    import torch

    torch.manual_seed(0)
    heads = TOKENS // length * (HIDDEN // d)
    problem = measure.Attention(d, causal, heads, length)
    runs, errors = right(runs_of(problem, kernel, operator))
    estimates = {name: seconds_of(run, 3) for name, run in runs.items()}
    stock = sorted((n for n in runs if n.startswith("Triton ")), key=lambda n: estimates[n])
    for name in stock[2:]:  # two of Triton's settings run on
        runs.pop(name)
    sustained, meters = turns(runs, estimates, asked.rounds, SUSTAINED, 0.0, meter)
    cooled, _ = turns(runs, estimates, asked.rounds, COOLED, REST, meter)
    flops = problem.flops
    row = {
        "d": d,
        "causal": causal,
        "length": length,
        "flops": flops,
        "errors": errors,
        "sustained": best_stock(sustained),
        "cooled": best_stock(cooled),
        "meter": {name: [m for m in found if m] for name, found in meters.items()},
    }
    told = {n: round(flops / statistics.median(t) / 1e12) for n, t in row["sustained"].items()}
    print(f"D {d}{' causal' if causal else ''} N {length}: {told}", flush=True)
    return row


def main():
    """Measure the grid."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where kernels.py wrote the kernels")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--fa3", type=Path, help="the library of FlashAttention 3, or a zip of it")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--suffix", default="128", help="of the kernels' names: columns of a tile")
    asked = parser.parse_args()
    import measure
    import torch

    import triton

    triton.set_allocator(
        lambda size, _align, _stream: torch.empty(size, device="cuda", dtype=torch.int8)
    )
    operator = flash_attention_3(asked.fa3)
    meter, rows = Meter(), []
    about = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "date": time.strftime("%Y-%m-%d"),
        "tokens": TOKENS,
        "hidden": HIDDEN,
        "rounds": asked.rounds,
    }
    for d, causal in itertools.product((128, 64), (False, True)):
        name = f"forward_d{d}_{asked.suffix}" + ("_causal" if causal else "")
        kernel = measure.load(asked.folder, name)
        for length in LENGTHS:
            rows.append(cell(d, causal, length, kernel, operator, asked, meter))
            asked.output.write_text(json.dumps({**about, "cells": rows}) + "\n")
    meter.close()
    ratios = [ratio(row) for row in rows]
    mean = math.exp(statistics.fmean(math.log(r) for r in ratios))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"Stretto / the better of the others: {spread}, mean {mean:.3f}")


def ratio(row):
    """How Stretto's rate compares with that of the better of cuDNN and FlashAttention 3."""
    times = {name: statistics.median(found) for name, found in row["sustained"].items()}
    peers = [times[name] for name in ("cuDNN", "FlashAttention 3") if name in times]
    return min(peers) / times["Stretto"]


if __name__ == "__main__":
    main()
