"""Layer normalization over tiles of rows: load, two reductions, scale and shift, store.

Statistics are computed in one pass over registers; loads and stores of neighbouring tiles overlap.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop

ROWS, COLUMNS = 16, 512
TILE, ROW = f"{ROWS}x{COLUMNS}", f"{ROWS}"


def make() -> Loop:
    """The loop."""
    loop = build("layernorm", machine="b200-pipes")
    index = loop.live_in("index", "i32")
    inverse_n = loop.live_in("inverse_n", f"{ROW}xf32")
    epsilon = loop.live_in("epsilon", f"{ROW}xf32")
    gamma = loop.live_in("gamma", f"{TILE}xf32")
    beta = loop.live_in("beta", f"{TILE}xf32")
    x_tile = loop.storage("x_tile", "smem", f"{TILE}xf16")
    y_tile = loop.storage("y_tile", "smem", f"{TILE}xf16")

    offset = loop.op("offset", "arith.muli", index, type="i32")
    landed = loop.op("load_x", "async.tiled_tma_load", offset, type=f"{TILE}xf16", into=x_tile)
    half = loop.op("read_x", "async.smem_read", landed, type=f"{TILE}xf16")
    x = loop.op("widen", "arith.extf", half, type=f"{TILE}xf32")
    total = loop.op("sum", "reduce.sum", x, type=f"{ROW}xf32")
    mean = loop.op("mean", "arith.mulf", total, inverse_n, type=f"{ROW}xf32")
    mean_wide = loop.op("mean_wide", "broadcast", mean, type=f"{TILE}xf32", view=True)
    centred = loop.op("centre", "arith.subf", x, mean_wide, type=f"{TILE}xf32")
    squared = loop.op("square", "arith.mulf", centred, centred, type=f"{TILE}xf32")
    spread = loop.op("sum_squares", "reduce.sum", squared, type=f"{ROW}xf32")
    variance = loop.op("variance", "math.fma", spread, inverse_n, epsilon, type=f"{ROW}xf32")
    inverse = loop.op("inverse_sd", "math.rsqrt", variance, type=f"{ROW}xf32")
    inverse_wide = loop.op("inverse_wide", "broadcast", inverse, type=f"{TILE}xf32", view=True)
    normal = loop.op("normalize", "arith.mulf", centred, inverse_wide, type=f"{TILE}xf32")
    y = loop.op("scale_shift", "math.fma", normal, gamma, beta, type=f"{TILE}xf32")
    y_half = loop.op("narrow", "arith.truncf", y, type=f"{TILE}xf16")
    staged = loop.op("write_y", "async.smem_write", y_half, type=f"{TILE}xf16", into=y_tile)
    loop.op("store_y", "async.tiled_tma_store", staged, offset)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
