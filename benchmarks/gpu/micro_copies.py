"""Measures copies by threads (cp.async) into a ring, on the GPU that is there; a few seconds.

    python benchmarks/gpu/micro_copies.py -o results.jsonl

    ask ──────► wait ──────► fence, all meet         cycles of each, read inside the kernel: means
    a tile      a group is   what others asked for   of trips, medians over blocks, all SMs busy
                there        is there

One JSON line for each tile, width of a copy, and number of groups that stay on their way.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", "build/gpu/triton-cache")

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
from copy_kernels import asking

TRIPS, WARPS, FIELDS = 64, 4, 4
TILES = ((64, 64), (128, 64), (32, 128))
WIDTHS = (2, 4, 8)
"""Elements of 16 bits that a thread copies at once."""
LEFT = (0, 1, 3)


def measured(rows, columns, width, left, blocks):
    """One line: cycles a trip."""
    stride = columns + (8 if width == WIDTHS[-1] else width)
    source = torch.zeros(blocks * 8 * rows * stride + 1024, dtype=torch.float16, device="cuda")
    out = torch.zeros((blocks, FIELDS), dtype=torch.int32, device="cuda")
    for _ in range(3):
        asking[(blocks,)](out, source, TRIPS, stride, rows, columns, width, left, num_warps=WARPS)
    torch.cuda.synchronize()
    told = out.double().median(dim=0).values / TRIPS
    asked, waited, met, trip = (round(float(n), 1) for n in told)
    return {
        "kind": "copies by threads", "rows": rows, "columns": columns, "bytes": 2 * width,
        "left": left, "blocks": blocks, "ask": asked, "wait": waited, "meet": met, "trip": trip,
    }  # fmt: skip


def main():
    """All of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    with asked.output.open("w") as file:
        for rows, columns in TILES:
            for width in WIDTHS:
                for left in LEFT:
                    for blocks in (1, sms):
                        line = measured(rows, columns, width, left, blocks)
                        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
