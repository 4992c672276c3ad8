"""The smallest body that touches TMA, tensor cores and both shared-memory transports.

The TMA load and the write share the shared-memory write transport: 8 + 7 cycles an iteration.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop


def make() -> Loop:
    """The loop."""
    loop = build("four_op", machine="blackwell")
    a = loop.live_in("a", "64x64xf16", loop.storage("a_tile", "smem", "64x64xf16"))
    b = loop.live_in("b", "64x128xf16", loop.storage("b_tile", "smem", "64x128xf16"))
    src = loop.live_in("src", "64x64xf16")
    landed = loop.storage("landed", "smem", "64x64xf16")
    written = loop.storage("written", "smem", "64x64xf16")
    acc = loop.storage("acc", "tmem", "64x128xf32", fixed=True)

    tile = loop.op("load", "async.tiled_tma_load", type="64x64xf16", into=landed)
    loop.op("write", "async.smem_write", src, type="64x64xf16", into=written)
    loop.op("wgmma", "async.wgmma", a, b, type="64x128xf32", update=acc)
    loop.op("read", "async.smem_read", tile, type="64x64xf16")
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
