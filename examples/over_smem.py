"""A matrix product with tiles so large that their rings do not fit at the smallest II.

At II 2048 each tile lives 844 + 2048 cycles, two copies of 64 KiB each: 262,144 bytes against
232,448. One ring must shrink to a single copy, which asks for an II of 2892.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop


def make() -> Loop:
    """The loop."""
    loop = build("over_smem", machine="b200-pipes")
    a_tile = loop.storage("a_tile", "smem", "256x128xf16")
    b_tile = loop.storage("b_tile", "smem", "128x256xf16")
    acc = loop.storage("acc", "tmem", "256x256xf32", fixed=True)

    a = loop.op("load_a", "async.tiled_tma_load", type="256x128xf16", into=a_tile)
    b = loop.op("load_b", "async.tiled_tma_load", type="128x256xf16", into=b_tile)
    loop.op("mma", "async.tcgen05_mma", a, b, type="256x256xf32", update=acc)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
