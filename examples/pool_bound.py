"""Five fused multiply-adds that each take both register-bank pairs: the pool sets the II.

The slot would admit four of them at once (5 x 4 / 4 = 5 cycles); the pool admits one (5 x 4 = 20).
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop import Facts
from stretto.loop.json import dump_loop


def make() -> Loop:
    """The loop."""
    loop = build("pool_bound", machine="blackwell")
    weight = loop.live_in("weight", "128xf32")
    tile = loop.storage("tile", "smem", "128xf32")

    landed = loop.op("load", "async.tiled_tma_load", type="128xf32", into=tile)
    x = loop.op("read", "async.smem_read", landed, type="128xf32")
    for i in range(5):
        loop.op(f"fma{i}", "math.fma", weight, x, type="128xf32", facts=Facts(bank_pairs=2))
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
