"""One step of FlashAttention forward: a query tile against the next 64 keys and values.

Three recurrences run through the loop: the running maximum m, the running sum l, and the output
accumulator in tensor memory, which is loaded, rescaled, stored and added to in every step.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop

ROWS, KEYS, DEPTH = 128, 64, 128


def make(rows: int = ROWS, keys: int = KEYS, depth: int = DEPTH) -> Loop:
    """The loop, for tiles of so many queries and keys, and heads of so many numbers."""
    scores, output, column = f"{rows}x{keys}", f"{rows}x{depth}", f"{rows}"
    loop = build("attention_forward", machine="b200-pipes")
    step = loop.live_in("step", "i32")
    base = loop.live_in("base", "i32")
    scale = loop.live_in("scale", "f32")
    q_tile = loop.storage("q_tile", "smem", f"{output}xbf16")
    q = loop.live_in("q", f"{output}xbf16", q_tile)
    k_tile = loop.storage("k_tile", "smem", f"{keys}x{depth}xbf16")
    v_tile = loop.storage("v_tile", "smem", f"{keys}x{depth}xbf16")
    s_acc = loop.storage("s_acc", "tmem", f"{scores}xf32")
    p_tile = loop.storage("p_tile", "tmem", f"{scores}xbf16")
    o_acc = loop.storage("o_acc", "tmem", f"{output}xf32", fixed=True)
    m = loop.carried("m", f"{column}xf32")
    o = loop.carried("o", f"{output}xf32", o_acc)
    l = loop.carried("l", f"{column}xf32")  # noqa: E741 - the paper's name

    # Addresses and tiles.
    row = loop.op("row", "arith.muli", step, type="i32")
    where = loop.op("where", "arith.addi", base, row, type="i32")
    load = "async.tiled_tma_load"
    k = loop.op("load_k", load, where, type=f"{keys}x{depth}xbf16", into=k_tile)
    v = loop.op("load_v", load, where, type=f"{keys}x{depth}xbf16", into=v_tile)

    # Scores and their running maximum.
    k_t = loop.op("k_transposed", "transpose", k, type=f"{depth}x{keys}xbf16", view=True)
    s_raw = loop.op("qk", "async.tcgen05_mma", q, k_t, type=f"{scores}xf32", into=s_acc)
    s = loop.op("load_s", "async.tmem_load", s_raw, type=f"{scores}xf32")
    s_max = loop.op("row_max", "reduce.max", s, type=f"{column}xf32")
    s_max_scaled = loop.op("scale_max", "arith.mulf", s_max, scale, type=f"{column}xf32")
    loop.op("new_max", "arith.maxnumf", m[-1], s_max_scaled, defines=m)
    drop = loop.op("max_drop", "arith.subf", m[-1], m, type=f"{column}xf32")
    alpha = loop.op("alpha", "math.exp2", drop, type=f"{column}xf32")

    # Probabilities and their running sum.
    s_scaled = loop.op("scale_s", "arith.mulf", s, scale, type=f"{scores}xf32")
    m_column = loop.op("m_column", "expand_dims", m, type=f"{rows}x1xf32", view=True)
    m_wide = loop.op("m_wide", "broadcast", m_column, type=f"{scores}xf32", view=True)
    shifted = loop.op("shift", "arith.subf", s_scaled, m_wide, type=f"{scores}xf32")
    p = loop.op("p", "math.exp2", shifted, type=f"{scores}xf32")
    p_sum = loop.op("row_sum", "reduce.sum", p, type=f"{column}xf32")
    l_scaled = loop.op("rescale_l", "arith.mulf", l[-1], alpha, type=f"{column}xf32")
    loop.op("new_l", "arith.addf", l_scaled, p_sum, defines=l)

    # The output accumulator: rescale what is there, then add P times V.
    alpha_column = loop.op("alpha_column", "expand_dims", alpha, type=f"{rows}x1xf32", view=True)
    alpha_wide = loop.op("alpha_wide", "broadcast", alpha_column, type=f"{output}xf32", view=True)
    o_old = loop.op("load_o", "async.tmem_load", o[-1], type=f"{output}xf32")
    o_scaled = loop.op("rescale_o", "arith.mulf", o_old, alpha_wide, type=f"{output}xf32")
    o_kept = loop.op("store_o", "async.tmem_store", o_scaled, type=f"{output}xf32", into=o_acc)
    p_half = loop.op("narrow_p", "arith.truncf", p, type=f"{scores}xbf16")
    p_stored = loop.op("store_p", "async.tmem_store", p_half, type=f"{scores}xbf16", into=p_tile)
    loop.op("pv", "async.tcgen05_mma", p_stored, v, o_kept, update=o_acc, defines=o)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
