"""One step of FlashAttention backward: fixed keys and values against the next 64 queries.

Five matrix products: scores and their gradient are computed anew, the gradients of keys and values
accumulate in tensor memory, and the gradient of the queries leaves in every step.
"""

from pathlib import Path

from stretto import Loop, build
from stretto.loop.json import dump_loop

KEYS, QUERIES, DEPTH = 128, 64, 64
SCORES = f"{KEYS}x{QUERIES}"


def make() -> Loop:
    """The loop."""
    loop = build("attention_backward", machine="b200-pipes")
    step = loop.live_in("step", "i32")
    base = loop.live_in("base", "i32")
    scale = loop.live_in("scale", "f32")
    keys, queries = f"{KEYS}x{DEPTH}xbf16", f"{QUERIES}x{DEPTH}xbf16"
    k = loop.live_in("k", keys, loop.storage("k_tile", "smem", keys))
    v = loop.live_in("v", keys, loop.storage("v_tile", "smem", keys))
    q_tile = loop.storage("q_tile", "smem", queries)
    do_tile = loop.storage("do_tile", "smem", queries)
    lse_tile = loop.storage("lse_tile", "smem", f"{QUERIES}xf32")
    delta_tile = loop.storage("delta_tile", "smem", f"{QUERIES}xf32")
    ds_tile = loop.storage("ds_tile", "smem", f"{SCORES}xbf16")
    dq_tile = loop.storage("dq_tile", "smem", f"{QUERIES}x{DEPTH}xf32")
    s_acc = loop.storage("s_acc", "tmem", f"{SCORES}xf32")
    p_tile = loop.storage("p_tile", "tmem", f"{SCORES}xbf16")
    dp_acc = loop.storage("dp_acc", "tmem", f"{SCORES}xf32")
    dq_acc = loop.storage("dq_acc", "tmem", f"{QUERIES}x{DEPTH}xf32")
    dk_acc = loop.storage("dk_acc", "tmem", f"{KEYS}x{DEPTH}xf32", fixed=True)
    dv_acc = loop.storage("dv_acc", "tmem", f"{KEYS}x{DEPTH}xf32", fixed=True)

    # Addresses and tiles.
    load, mma = "async.tiled_tma_load", "async.tcgen05_mma"
    row = loop.op("row", "arith.muli", step, type="i32")
    where = loop.op("where", "arith.addi", base, row, type="i32")
    q = loop.op("load_q", load, where, type=queries, into=q_tile)
    do = loop.op("load_do", load, where, type=queries, into=do_tile)
    lse_landed = loop.op("load_lse", load, where, type=f"{QUERIES}xf32", into=lse_tile)
    delta_landed = loop.op("load_delta", load, where, type=f"{QUERIES}xf32", into=delta_tile)

    # The probabilities again, from the scores and the saved log-sum-exp.
    q_t = loop.op("q_transposed", "transpose", q, type=f"{DEPTH}x{QUERIES}xbf16", view=True)
    s_raw = loop.op("kq", mma, k, q_t, type=f"{SCORES}xf32", into=s_acc)
    s = loop.op("load_s", "async.tmem_load", s_raw, type=f"{SCORES}xf32")
    s_scaled = loop.op("scale_s", "arith.mulf", s, scale, type=f"{SCORES}xf32")
    lse = loop.op("read_lse", "async.smem_read", lse_landed, type=f"{QUERIES}xf32")
    lse_row = loop.op("lse_row", "expand_dims", lse, type=f"1x{QUERIES}xf32", view=True)
    lse_wide = loop.op("lse_wide", "broadcast", lse_row, type=f"{SCORES}xf32", view=True)
    shifted = loop.op("shift_s", "arith.subf", s_scaled, lse_wide, type=f"{SCORES}xf32")
    p = loop.op("p", "math.exp2", shifted, type=f"{SCORES}xf32")
    p_half = loop.op("narrow_p", "arith.truncf", p, type=f"{SCORES}xbf16")
    p_stored = loop.op("store_p", "async.tmem_store", p_half, type=f"{SCORES}xbf16", into=p_tile)

    # Gradient of the values: dV += P dO.
    loop.op("dv", mma, p_stored, do, type=f"{KEYS}x{DEPTH}xf32", update=dv_acc)

    # Gradient of the scores: dS = P * (V dO' - delta).
    do_t = loop.op("do_transposed", "transpose", do, type=f"{DEPTH}x{QUERIES}xbf16", view=True)
    dp_raw = loop.op("dp", mma, v, do_t, type=f"{SCORES}xf32", into=dp_acc)
    dp = loop.op("load_dp", "async.tmem_load", dp_raw, type=f"{SCORES}xf32")
    delta = loop.op("read_delta", "async.smem_read", delta_landed, type=f"{QUERIES}xf32")
    delta_row = loop.op("delta_row", "expand_dims", delta, type=f"1x{QUERIES}xf32", view=True)
    delta_wide = loop.op("delta_wide", "broadcast", delta_row, type=f"{SCORES}xf32", view=True)
    centred = loop.op("shift_dp", "arith.subf", dp, delta_wide, type=f"{SCORES}xf32")
    ds = loop.op("ds", "arith.mulf", p, centred, type=f"{SCORES}xf32")
    ds_half = loop.op("narrow_ds", "arith.truncf", ds, type=f"{SCORES}xbf16")
    ds_shared = loop.op(
        "write_ds", "async.smem_write", ds_half, type=f"{SCORES}xbf16", into=ds_tile
    )

    # Gradient of the keys: dK += dS Q.
    loop.op("dk", mma, ds_shared, q, type=f"{KEYS}x{DEPTH}xf32", update=dk_acc)

    # Gradient of the queries: dQ = dS' K, scaled and sent out.
    ds_t = loop.op(
        "ds_transposed", "transpose", ds_shared, type=f"{QUERIES}x{KEYS}xbf16", view=True
    )
    dq_type = f"{QUERIES}x{DEPTH}xf32"
    dq_raw = loop.op("dq", mma, ds_t, k, type=dq_type, into=dq_acc)
    dq = loop.op("load_dq", "async.tmem_load", dq_raw, type=dq_type)
    dq_scaled = loop.op("scale_dq", "arith.mulf", dq, scale, type=dq_type)
    staged = loop.op("write_dq", "async.smem_write", dq_scaled, type=dq_type, into=dq_tile)
    loop.op("store_dq", "async.tiled_tma_store", staged, where)
    return loop.finish()


if __name__ == "__main__":
    Path(__file__).with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
