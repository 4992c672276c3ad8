"""A first-order filter, h = c * h[-1] + x with a clamp: the carried chain sets the II.

Multiply, add and clamp follow one another (4 + 4 + 2 cycles) and must end before the next
iteration begins them; every slot has room to spare.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop


def make() -> Loop:
    """The loop."""
    loop = build("recurrence_bound", machine="blackwell")
    c = loop.live_in("c", "128xf32")
    limit = loop.live_in("limit", "128xf32")
    tile = loop.storage("tile", "smem", "128xf32")
    h = loop.carried("h", "128xf32")

    landed = loop.op("load", "async.tiled_tma_load", type="128xf32", into=tile)
    x = loop.op("read", "async.smem_read", landed, type="128xf32")
    decayed = loop.op("decay", "arith.mulf", c, h[-1], type="128xf32")
    added = loop.op("add", "arith.addf", decayed, x, type="128xf32")
    loop.op("clamp", "arith.minnumf", added, limit, defines=h)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
