"""How long it takes to rank a thousand configurations, without running one.

    PYTHONPATH=src python benchmarks/gpu/ranked.py     (needs Triton, and no GPU; half a minute)

Attention forward at D 128 in 15 tiles, by 4 and 8 warps and in 2, 3 and 4 stages, a matrix product
in 90 tiles; each at six ring depths and with one and two consumers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

HEADS, LENGTH, SIZE = 16, 8192, 4096
DEPTHS, CONSUMERS, KEEP = 6, 2, 8


def asked():
    """By name: a kernel, its configurations, and its launch."""
    from matmul_descriptors import DUMPS, matmul_descriptors

    from attention_forward import attention_forward

    signature = {f"{name}_ptr": "*fp16" for name in "qkvo"} | {"lse_ptr": "*fp32"}
    signature |= {"scale": "fp32", "length": "i32", "total_rows": "i32"}
    tiles = {"BLOCK_M": [64, 128, 256], "BLOCK_N": [16, 32, 64, 128, 256], "D": [128],
             "CAUSAL": [False], "num_warps": [4, 8], "num_stages": [2, 3, 4]}  # fmt: skip

    def rows(meta):
        return LENGTH // meta["BLOCK_M"], HEADS

    yield "attention forward D 128", attention_forward, signature, tiles, rows, {"length": LENGTH}
    tiles = {"BLOCK_M": [64, 128, 256], "BLOCK_N": [16, 32, 64, 128, 256, 512],
             "BLOCK_K": [16, 32, 64, 128, 256]}  # fmt: skip

    def blocks(meta):
        return -(-SIZE // meta["BLOCK_M"]), -(-SIZE // meta["BLOCK_N"])

    signature = DUMPS["matmul_descriptors"]["signature"]
    yield "product", matmul_descriptors, signature, tiles, blocks, dict.fromkeys("MNK", SIZE)


def main():
    """Rank, and say how long it took."""
    from stretto.triton import rank

    for name, kernel, signature, tiles, grid, numbers in asked():
        count = DEPTHS * CONSUMERS
        for values in tiles.values():
            count *= len(values)
        begun = time.time()
        found = rank(
            kernel, "h200", signature=signature, configs=tiles, grid=grid, arguments=numbers,
            keep=KEEP,
        )  # fmt: skip
        took, best = time.time() - begun, found.best
        print(
            f"{name}: {count:,} configurations in {took:.1f} s; first {best.name}, "
            f"{best.made.consumers} consumers, rings of {best.depth}, "
            f"{best.prediction.seconds * 1e3:.3f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
