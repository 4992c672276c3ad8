"""Measures products of single warps (mma.sync) on the GPU that is there; about a minute.

    python benchmarks/gpu/warp_products.py -o results.jsonl

Cycles are read inside the kernels and are those of a trip, all SMs busy: two runs of different
lengths, so that what stands around a loop cancels; medians over blocks. `how` is what a trip does:

    steady   a product of factors in registers, added to the sum of the trip before
    read     the same, both factors read out of shared memory as the tensor cores take them
    fma      as steady, but threads multiply and add (f32)
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from datetime import date
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

from micro_kernels import SLOTS
from triton.experimental.gluon import language as gl
from warp_kernels import product, threads

BITS = {"f16": 16, "bf16": 16, "tf32": 32, "i8": 8, "f32": 32}
TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32, "i8": torch.int8,
         "f32": torch.float32}  # fmt: skip
SHAPES = ((16, 64, 64), (16, 128, 64), (32, 64, 64), (32, 128, 64), (64, 64, 64), (64, 128, 64))
SHORT, LONG = 200, 1000


def configurations():
    """What is measured."""
    for warps in (4, 8):
        for m, n, k in SHAPES:
            for type in ("f16", "tf32", "i8"):
                for how in ("steady", "read"):
                    yield {"type": type, "m": m, "n": n, "k": k, "warps": warps, "how": how}
    for type in ("f16", "bf16", "tf32", "i8"):
        shape = {"m": 16, "n": 8, "k": 512 // BITS[type], "warps": 1, "how": "steady"}
        yield {"type": type, **shape}
    for m, n, k in ((16, 16, 16), (32, 32, 16)):
        yield {"type": "f32", "m": m, "n": n, "k": k, "warps": 4, "how": "fma"}


def launch(c, sms, trips):
    """Median cycles over blocks, and the sum that is left."""
    m, n, k, warps = c["m"], c["n"], c["k"], c["warps"]
    whole = c["type"] == "i8"
    drawn = torch.Generator("cuda").manual_seed(1)
    a, b = (torch.randint(-3, 4, s, device="cuda", generator=drawn).to(TYPES[c["type"]])
            for s in ((m, k), (k, n)))  # fmt: skip
    total = torch.zeros((m, n), device="cuda", dtype=torch.int32 if whole else torch.float32)
    out = torch.zeros(sms * SLOTS.value, device="cuda", dtype=torch.int64)
    if c["how"] == "fma":
        threads[(sms,)](out, a, b, total, trips, m, n, k, num_warps=warps)
    else:
        rows = min(warps, m // 16)
        product[(sms,)](
            out, a, b, total, trips, m, n, k, rows, warps // rows, 32 // BITS[c["type"]],
            c["how"] == "read", gl.int32 if whole else gl.float32, num_warps=warps,
        )  # fmt: skip
    wanted = trips * (a.double() @ b.double())
    right = bool((total.double() == wanted).all())
    return statistics.median(out.view(sms, -1)[:, 0].tolist()), right


def main() -> None:
    """One JSON line a configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--only", default="", help="types, and one of every so many: 0/8")
    asked = parser.parse_args()
    every = list(configurations())
    if asked.only:
        first, _, step = asked.only.partition("/")
        every = every[int(first) :: int(step)]
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    with asked.output.open("w", encoding="utf-8") as lines:
        for c in every:
            launch(c, sms, SHORT)  # compiles
            short, _ = launch(c, sms, SHORT)
            long, right = launch(c, sms, LONG)
            cycles = round((long - short) / (LONG - SHORT), 2)
            told = {"kind": "warp_product", **c, "cycles": cycles, "right": right,
                    "date": date.today().isoformat()}  # fmt: skip
            lines.write(json.dumps(told) + "\n")
            lines.flush()


if __name__ == "__main__":
    main()
