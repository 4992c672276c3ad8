"""The K loop of a matrix product: two TMA loads feed one MMA into an accumulator."""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop


def make() -> Loop:
    """The loop."""
    loop = build("gemm", machine="b200-pipes")
    k = loop.live_in("k", "i32")
    a_tile = loop.storage("a_tile", "smem", "128x64xf16")
    b_tile = loop.storage("b_tile", "smem", "64x128xf16")
    acc = loop.storage("acc", "tmem", "128x128xf32", fixed=True)

    offset = loop.op("offset", "arith.muli", k, type="i32")
    a = loop.op("load_a", "async.tiled_tma_load", offset, type="128x64xf16", into=a_tile)
    b = loop.op("load_b", "async.tiled_tma_load", offset, type="64x128xf16", into=b_tile)
    loop.op("mma", "async.tcgen05_mma", a, b, type="128x128xf32", update=acc)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
