"""Measures what one SM does in how many cycles, on the GPU that is there; about three minutes.

    python benchmarks/gpu/micro.py -o results.jsonl [--only TEXT]
    stretto machines --calibrate results.jsonl -o my-gpu.toml

Cycles are read inside the kernels and are those of a trip: two runs of different lengths, so that
what stands around a loop cancels; medians over blocks. One JSON line a configuration.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", "build/gpu/triton-cache")
sys.path.insert(0, str(Path(__file__).resolve().parent))

import isolated
import micro_threads

SINGLE = (
    "multiply",
    "subtract",
    "fused",
    "higher",
    "divide",
    "choose",
    "exponent",
    "maximum",
    "sum",
    "rows",
    "narrow",
)
BLOCKS = ("scaled_maximum", "exponent_sum", "exponent_sum_narrow", "softmax", "softmax_rescale")
WORK = (*SINGLE, *BLOCKS)
PRODUCTS = ((128, 128, 0), (128, 128, 1), (128, 64, 0), (64, 128, 1), (64, 128, 0))
"""Beside which arithmetic is measured: n, k, and whether the left factor is in registers."""
PAIRS = ((128, 128, 64), (64, 64, 64), (128, 64, 64), (64, 128, 64), (256, 128, 64), (128, 256, 64),
         (64, 256, 64), (128, 128, 32), (128, 128, 128))  # fmt: skip
"""Rows of the tiles of both factors, and their columns."""


def arithmetic():
    """Operations, columns of their tiles, and of the sum that is rescaled; and how many times two
    rows a thread has."""
    yield from ((op, n, 128, 1) for n in (64, 128) for op in WORK)
    yield from (("softmax_rescale", n, 64, 1) for n in (64, 128))
    yield ("softmax", 256, 64, 1)
    yield from ((op, 32, 128, 1) for op in ("maximum", "softmax", "softmax_rescale"))
    # Hardly more than lanes that are brought together.
    yield from (("maximum", 8, 128, 1), ("sum", 8, 128, 1))
    # As many elements in fewer columns and more rows, of which each has to be brought together.
    yield from ((op, 64, 64, 2) for op in ("multiply", "exponent", "maximum", "sum", *BLOCKS))
    yield from (("maximum", 8, 64, 2), ("rows", 64, 64, 2), ("softmax", 32, 64, 2))


def configurations():
    """What is measured."""
    found = [{"kind": "info"}]
    # Products: issue, latency and rate by shape and source of A, for one and two warpgroups.
    for n in (32, 64, 128, 256):
        for k in (64, 128):
            for registers in (0, 1):
                for how in ("steady", "single", "issue"):
                    for warps in (4, 8) if how == "steady" else (4,):
                        found.append({"kind": "product", "how": how, "n": n, "k": k,
                                      "registers": registers, "warps": warps})  # fmt: skip
                for how in ("steady", "single", "issue") if n <= 128 else ():
                    for beside in ("steady", "softmax_rescale") if n > 32 else ("steady",):
                        found.append({"kind": "products", "how": how, "n": n, "k": k,
                                      "registers": registers, "beside": beside})  # fmt: skip
    # Arithmetic: alone, in one agent of twice the warps, two agents, beside another's products.
    for op, n, d, tall in arithmetic():
        what = {"kind": "arithmetic", "op": op, "n": n, "d": d, "tall": tall}
        for beside in ("alone", "wide", "two"):
            found.append({**what, "beside": beside})
        for p, k, registers in PRODUCTS:
            found.append({**what, "beside": "products", "p": p, "k": k, "registers": registers})
    for n in (64, 128):
        for d in (64, 128):
            for agents in (1, 2):
                found.append({"kind": "alternate", "n": n, "d": d, "agents": agents})
    # What the assembler makes of work between a product and its wait; orders of attention's step.
    for p, k in ((128, 64), (128, 128), (64, 128)):
        for op in ("multiply", "exponent", "sum", "softmax"):
            for agents in (1, 2):
                found.append({"kind": "mixed", "op": op, "n": 128, "p": p, "k": k,
                              "agents": agents})  # fmt: skip
    for m, n, d in ((64, 128, 64), (64, 128, 128), (64, 64, 64), (64, 64, 128), (128, 64, 64),
                    (64, 256, 64), (64, 32, 128)):  # fmt: skip
        for order in ("text", "scores", "rescaled") if n < 256 else ("text",):
            for barriers in (0, 1, 2):
                for agents, late in ((1, 0), (2, 0), (2, 600)):
                    found.append({"kind": "ahead", "order": order, "barriers": barriers, "m": m,
                                  "n": n, "d": d, "agents": agents, "late": late})  # fmt: skip
    for offset in (0, 64, 128, 256, 384, 512):
        for registers in (0, 1):
            found.append({"kind": "overlap", "offset": offset, "registers": registers, "n": 128,
                          "k": 128})  # fmt: skip
    # What a ring's turn costs an agent, with a product in it and without.
    for product, n, k in ((0, 128, 64), (1, 128, 64), (1, 64, 64), (1, 128, 128), (1, 32, 128),
                          (1, 128, 32)):  # fmt: skip
        for warps in (1, 4, 8) if not product else (4, 8):
            for arrives in (0, 1, 2):
                for waits in (0, 1, 2):
                    if product or arrives or waits:
                        found.append({"kind": "turn", "product": product, "n": n, "k": k,
                                      "warps": warps, "arrives": arrives,
                                      "waits": waits})  # fmt: skip
    # Copies in: latency by tile and source, and rates with all SMs busy, by how many share.
    for rows, columns in ((32, 64), (64, 64), (64, 128), (128, 64), (128, 128), (256, 64)):
        for what in ("issue", "latency"):
            for source in ("l2", "hbm"):
                for blocks in ("one", "all"):
                    found.append({"kind": "copy", "rows": rows, "columns": columns, "what": what,
                                  "source": source, "blocks": blocks})  # fmt: skip
    for rows, columns, walk in ((128, 64, "across"), (64, 64, "across"), (128, 32, "across"),
                                (128, 128, "down"), (64, 128, "down"),
                                (128, 64, "down")):  # fmt: skip
        for share in (1, 4, 16, 132):
            for ring in (1, 2, 4):
                for source in ("l2", "hbm"):
                    found.append({"kind": "copies", "rows": rows, "columns": columns, "walk": walk,
                                  "share": share, "ring": ring, "source": source})  # fmt: skip
    # How much is walked over again and again from the cache; copies of SMs that are slowed down.
    for megabytes in range(32, 84, 4):
        tiles = round(megabytes * 2**20 / (64 * 128 * 2 * 33))
        found.append({"kind": "walked", "rows": 64, "columns": 128, "walk": "down", "share": 4,
                      "ring": 1, "tiles": tiles, "bytes": tiles * 64 * 128 * 2 * 33})  # fmt: skip
    for share, ring, tiles in ((1, 1, 4), (1, 4, 4), (4, 4, 4), (4, 1, 256), (4, 4, 256)):
        for pause in (0, 256, 1024, 4096, None):
            found.append({"kind": "heated", "rows": 128, "columns": 64, "walk": "down",
                          "share": share, "ring": ring, "tiles": tiles,
                          "pause": pause})  # fmt: skip
    # As products of matrices load them: eight rows of tiles, as many columns as make all SMs.
    for a, b, columns in PAIRS:
        for ring in (1, 2, 3, 4, 6):
            for pace in (0, a * b * columns // 2048):
                for lag in (0, 1):
                    if (a + b) * columns * 2 * ring <= 200 * 1024 and (ring > 2 or not pace + lag):
                        found.append({"kind": "tiles", "a": a, "b": b, "columns": columns,
                                      "ring": ring, "pace": pace, "lag": lag,
                                      "skew": 0})  # fmt: skip
    for skew in (64, 256, 1024, 4096):
        for ring in (4, 6):
            found.append({"kind": "tiles", "a": 128, "b": 128, "columns": 64, "ring": ring,
                          "pace": 512, "lag": 1, "skew": skew})  # fmt: skip
    # The same for long: blocks that nothing holds back fall out of step.
    for a, b in ((128, 64), (64, 128), (128, 128), (64, 64)):
        for ring in (4, 6):
            found.append({"kind": "tiles", "a": a, "b": b, "columns": 64, "ring": ring, "pace": 0,
                          "lag": 1, "skew": 0, "trips": LONG_WALK})  # fmt: skip
    # Copies out.
    for n in (64, 128, 256):
        for how in ("smem", "tma", "direct"):
            for warps in (4, 8):
                found.append({"kind": "store", "how": how, "n": n, "warps": warps})
    found += micro_threads.configurations()
    for warps in (1, 4, 8):
        for op in ("arrive", "wait", "expect", "arrive_wait", "group", "fence"):
            found.append({"kind": "barrier", "op": op, "warps": warps})
    for warps, other in ((4, 1), (4, 4), (8, 1)):
        found.append({"kind": "hand_over", "warps": warps, "other": other})
    for name in ("nothing", "starting"):
        found.append({"kind": "launch", "name": name})
    return found


def limited(second):
    """Options of two agents: registers of each."""
    return {} if second == "alone" else {"maxnreg": 240}


def repeated(configuration):
    """The kernel of a configuration, its constants and options: what compiles without a GPU."""
    import micro_kernels as kernels
    import mixed_kernels
    import turn_kernels

    c = configuration
    if c["kind"] in micro_threads.KERNELS:
        import thread_kernels

        kernel = getattr(thread_kernels, micro_threads.KERNELS[c["kind"]])
        return kernel, *micro_threads.constants(c)
    match c["kind"]:
        case "product" | "products":
            second = c.get("beside", "alone")
            constants = {"FIRST": c["how"], "SECOND": second, "REGISTERS": c["registers"],
                         "TALL": 1, "N": 128 if second == "softmax_rescale" else c["n"],
                         "P": c["n"], "K": c["k"], "D": 64}  # fmt: skip
            options = {"num_warps": c.get("warps", 4)}
            return kernels.pair, constants, options | limited(second)
        case "arithmetic":
            first, second, warps = {
                "alone": (c["op"], "alone", 4),
                "wide": (c["op"], "alone", 8),
                "two": (c["op"], c["op"], 4),
                "products": ("steady", c["op"], 4),
            }[c["beside"]]
            constants = {"FIRST": first, "SECOND": second, "REGISTERS": c.get("registers", 0),
                         "TALL": c["tall"], "N": c["n"], "P": c.get("p", 64),
                         "K": c.get("k", 64), "D": c["d"]}  # fmt: skip
            options = {"num_warps": warps}
            return kernels.pair, constants, options | limited(second)
        case "alternate":
            constants = {"AGENTS": c["agents"], "N": c["n"], "D": c["d"]}
            return turn_kernels.alternates, constants, {"num_warps": 4, "maxnreg": 240}
        case "mixed":
            constants = {"AGENTS": c["agents"], "OP": c["op"], "N": c["n"], "P": c["p"],
                         "K": c["k"]}  # fmt: skip
            return mixed_kernels.mixed, constants, {"num_warps": 4, "maxnreg": 240}
        case "ahead":
            constants = {"AGENTS": c["agents"], "ORDER": c["order"], "BARRIERS": c["barriers"],
                         "LATE": c["late"], "M": c["m"], "N": c["n"], "D": c["d"]}  # fmt: skip
            # What another agent needs beside two of 240 registers a thread.
            most = 168 if c["barriers"] == 2 and c["agents"] == 2 else 240
            return mixed_kernels.ahead, constants, {"num_warps": 4, "maxnreg": most}
        case "overlap":
            constants = {"OFFSET": c["offset"], "REGISTERS": c["registers"], "N": c["n"],
                         "K": c["k"]}  # fmt: skip
            return turn_kernels.overlap, constants, {"num_warps": 4, "maxnreg": 240}
        case "turn":
            constants = {"PRODUCT": c["product"], "ARRIVES": c["arrives"], "WAITS": c["waits"],
                         "N": c["n"], "K": c["k"]}  # fmt: skip
            return turn_kernels.turns, constants, {"num_warps": c["warps"]}
        case "tiles":
            constants = {"ROWS": ROWS, "COLUMNS": c["columns"], "TILES": TILES_WALKED,
                         "RING": c["ring"], "PACE": c["pace"], "LAG": c["lag"],
                         "SKEW": c["skew"]}  # fmt: skip
            return turn_kernels.tiles, constants, {"num_warps": 1}
        case "copy":
            tiles = TILES[c["source"]]
            constants = {"TILES": tiles, "ROWS": c["rows"], "COLUMNS": c["columns"],
                         "WHAT": c["what"]}  # fmt: skip
            return kernels.copy_single, constants, {"num_warps": 1}
        case "copies" | "walked" | "heated":
            constants = {"SHARE": c["share"], "WALK": c["walk"], "RING": c["ring"],
                         "TILES": walked_over(c)}  # fmt: skip
            if c["kind"] != "heated":
                return kernels.copies, constants, {"num_warps": 1}
            return kernels.heated, constants | {"PAUSE": c["pause"] or 0}, {"num_warps": 4}
        case "store":
            return kernels.stores, {"HOW": c["how"], "N": c["n"]}, {"num_warps": c["warps"]}
        case "barrier":
            return kernels.barriers, {"OP": c["op"]}, {"num_warps": c["warps"]}
        case "hand_over":
            options = {"num_warps": c["warps"], "maxnreg": 128}
            return kernels.hand_over, {"OTHER": c["other"]}, options
        case _:
            return getattr(kernels, c["name"]), {}, {"num_warps": 4}


TILES = {"l2": 4, "hbm": 128}
"""Tiles that each group of blocks walks over before it begins anew."""


def walked_over(c):
    """How many that are."""
    return c["tiles"] if "tiles" in c else TILES[c["source"]]


WALKS = 4
"""How often tiles are walked over, the first time without a count."""
LONG_WALK = 4096
"""Tiles of a run that is long enough for blocks to fall out of step."""
LONG = 256 * 2000
"""Cycles for which products run beside arithmetic that is measured."""
HEAT, COPYING, HEATED = 1 << 23, 1500, 10
"""Cycles for which products heat the SMs, of a copy at most, and how often that is done."""
HEATING = 4 * 64 * 256 * 64 // 2048
"""Cycles of products between pauses."""
TILES_WALKED, ROWS = 128, 8
"""The same of tiles as a product of matrices loads them, and their rows at a time."""
TWO_AGENTS = ("product", "products", "arithmetic", "alternate", "mixed", "ahead", "heated")
"""Kinds whose kernels take the trips of a first and of a second agent."""
kept = {}


def keep(key, make):
    """Something that several configurations need."""
    if key not in kept:
        kept[key] = make()
    return kept[key]


def tensors(c, sms):
    """Further arguments, and how many blocks run."""
    import torch
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

    def described(tensor, block):
        layout = gl.NVMMASharedLayout.get_default_for(list(block), gl.float16)
        return TensorDescriptor.from_tensor(tensor, list(block), layout)

    sink = keep("sink", lambda: torch.rand(1 << 24, device="cuda") * 0.5)
    big = keep("big", lambda: torch.zeros(1 << 30, dtype=torch.float16, device="cuda"))
    if c["kind"] in ("copy", "copies", "walked", "heated"):
        rows, columns, tiles = c["rows"], c["columns"], walked_over(c)
        if c.get("walk") == "across":
            shape = (rows * 132, columns * tiles)
        else:
            shape = (rows * 132 * tiles, columns)
        made = {"a_desc": described(big[: shape[0] * shape[1]].view(shape), (rows, columns))}
        given = {"sink": sink} if c["kind"] == "heated" else {}
        return made | given, 1 if c.get("blocks") == "one" else sms
    if c["kind"] == "tiles":
        span = c["columns"] * TILES_WALKED
        passes = c.get("trips", WALKS * TILES_WALKED) // TILES_WALKED + 1
        passed = -(-sms // ROWS) * c["b"] * passes
        a = big[: ROWS * c["a"] * span].view(ROWS * c["a"], span)
        b = big[-passed * span :].view(passed, span)
        return {
            "a_desc": described(a, (c["a"], c["columns"])),
            "b_desc": described(b, (c["b"], c["columns"])),
        }, sms
    if c["kind"] == "store":
        shape = (16 * c["warps"] * sms, c["n"])
        tile = (16 * c["warps"], c["n"])
        # Not where threads find addresses to follow later.
        written = keep("written", lambda: torch.zeros(1 << 23, dtype=torch.float16, device="cuda"))
        made = described(written[: shape[0] * shape[1]].view(shape), tile)
        return {"sink": sink, "c_desc": made}, sms
    if c["kind"] in micro_threads.KERNELS:
        numbers = big.view(torch.int32)
        return micro_threads.tensors(c, numbers), micro_threads.blocks_of(c, sms)
    if c["kind"] in TWO_AGENTS:
        return {"sink": sink, "c": 0.125}, sms
    if c["kind"] in ("turn", "overlap"):
        return {"sink": sink}, sms
    return {}, sms


def flushing():
    """More than the L2 cache holds."""
    import torch

    return torch.zeros(1 << 28, dtype=torch.int32, device="cuda")


def launched(blocks, kernel, given, constants, options, **trips):
    """One run; what the blocks wrote."""
    import torch

    out = keep(("out", blocks), lambda: torch.zeros(blocks * 16, dtype=torch.int64, device="cuda"))
    out.zero_()
    kernel[(blocks,)](out=out, **trips, **given, **constants, **options)
    torch.cuda.synchronize()
    return out.cpu().view(blocks, 16).double()


def middle(values):
    """Median, 5 % and 95 %."""
    import torch

    parts = torch.tensor([0.5, 0.05, 0.95], dtype=torch.float64)
    return [round(x, 1) for x in torch.quantile(values.double().flatten(), parts).tolist()]


def slope(c, blocks, short, long, names, who=0, **more):
    """Cycles a trip from two lengths."""
    kernel, constants, options = repeated(c)
    given, _ = tensors(c, SMS)
    runs = []
    for trips in (short, short, long, long):
        if c.get("source") == "hbm":
            keep("flush", flushing).add_(1)
        told = dict.fromkeys(names, trips) | more
        runs.append(launched(blocks, kernel, given, constants, options, **told))
    each = (runs[3][:, 2 * who] - runs[1][:, 2 * who]) / (long - short)
    cycles, low, high = middle(each)
    mean = round(float(each.double().mean()), 1)
    span = runs[3][:, 6] - runs[3][:, 4]
    times = runs[3][:, 7] - runs[3][:, 5]
    good = times > 0
    mhz = round(float(span[good].sum() / times[good].sum() * 1e3)) if bool(good.any()) else None
    return {"cycles": cycles, "low": low, "high": high, "mean": mean, "mhz": mhz}


def drifted(c, blocks):
    """Cycles a trip of a long run: the median of three."""
    kernel, constants, options = repeated(c)
    given, _ = tensors(c, SMS)
    runs = [launched(blocks, kernel, given, constants, options, trips=c["trips"]) for _ in range(4)]
    told = sorted(middle(found[:, 0] / found[:, 1]) for found in runs[1:])
    cycles, low, high = told[1]
    last = runs[-1]
    mhz = float((last[:, 6] - last[:, 4]).sum() / (last[:, 7] - last[:, 5]).sum() * 1e3)
    return {"cycles": cycles, "low": low, "high": high, "mhz": round(mhz)}


def heated(c, blocks):
    """Cycles a trip of one long run, after others that have warmed the GPU up."""
    import torch

    kernel, constants, options = repeated(c)
    given, _ = tensors(c, SMS)
    pause = c["pause"]
    products = 0 if pause is None else HEAT // (HEATING + pause)
    told = {"first_trips": HEAT // COPYING, "second_trips": products}
    out = keep(("out", blocks), lambda: torch.zeros(blocks * 16, dtype=torch.int64, device="cuda"))
    for _ in range(HEATED):
        kernel[(blocks,)](out=out, **told, **given, **constants, **options)
    found = launched(blocks, kernel, given, constants, options, **told)
    cycles, low, high = middle(found[:, 0] / found[:, 1])
    mhz = float((found[:, 6] - found[:, 4]).sum() / (found[:, 7] - found[:, 5]).sum() * 1e3)
    busy = float(HEATING * products / found[:, 2].max()) if products else 0.0
    return {"cycles": cycles, "low": low, "high": high, "mhz": round(mhz), "busy": round(busy, 2)}


SMS = 132


def run(c):
    """One configuration."""
    import torch

    global SMS
    properties = torch.cuda.get_device_properties(0)
    SMS = properties.multi_processor_count
    if c["kind"] == "info":
        import triton

        return {
            "gpu": properties.name,
            "sms": SMS,
            "l2_bytes": properties.L2_cache_size,
            "triton": triton.__version__,
            "torch": torch.__version__,
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
    if c["kind"] == "launch":
        return launch(c)
    _, blocks = tensors(c, SMS)
    match c["kind"]:
        case "product":
            return slope(c, blocks, 64, 256, ["first_trips"], second_trips=0)
        case "products":
            return slope(c, blocks, 64, 256, ["first_trips"], second_trips=1200)
        case "arithmetic" if c["beside"] in ("alone", "wide"):
            return slope(c, blocks, 64, 256, ["first_trips"], second_trips=0)
        case "arithmetic" if c["beside"] == "two":
            return slope(c, blocks, 64, 256, ["first_trips"], second_trips=1024)
        case "arithmetic":
            # Products run all the while, and then what they take beside it.
            each = 64 * c["p"] * c["k"] // 2048
            beside = slope(c, blocks, 64, 256, ["second_trips"], 1, first_trips=LONG // each)
            more = slope(c, blocks, 64, 192, ["first_trips"], 0, second_trips=6000)
            return beside | {"products": more["cycles"]}
        case "ahead" if c["barriers"] == 2:
            return slope(c, blocks, 64, 256, ["first_trips", "second_trips"])
        case "alternate" | "mixed" | "ahead":
            return slope(c, blocks, 64, 256, ["first_trips"], second_trips=1024)
        case "overlap":
            more = {
                name: slope(c, blocks, 32, 128, ["trips"], who)["cycles"]
                for name, who in (("second", 1), ("issue", 4), ("second_issue", 5))
            }
            return slope(c, blocks, 32, 128, ["trips"]) | more
        case "tiles" if "trips" in c:
            return drifted(c, blocks)
        case "tiles":
            return slope(c, blocks, TILES_WALKED, WALKS * TILES_WALKED, ["trips"])
        case "copies":
            trips = 96 if c["source"] == "hbm" else 256
            return slope(c, blocks, trips // 3, trips, ["trips"])
        case "walked":
            return slope(c, blocks, c["tiles"], WALKS * c["tiles"], ["trips"])
        case "heated":
            return heated(c, blocks)
        case "fetch" | "keep" | "hold" | "put" | "meeting":
            return slope(c, blocks, *micro_threads.trips(c), ["trips"])
        case "works":
            return slope(c, blocks, 64, 256, ["trips"])
        case "gather" | "again" | "burst":
            return micro_threads.told(c, functools.partial(flushed, c, blocks))
        case "revisit":
            return micro_threads.revisited(functools.partial(flushed, c, blocks))
        case "pass" | "move":
            return micro_threads.passed(c, SMS, functools.partial(lasting, c))
        case "follow":
            kernel, constants, options = repeated(c)
            one = functools.partial(launched, kernel=kernel, given={}, constants=constants,
                                    options=options)  # fmt: skip
            return micro_threads.followed(c, SMS, lambda n, cycles: one(n, cycles=cycles))
        case _:
            return slope(c, blocks, 32, 128, ["trips"])


def flushed(c, blocks, trips):
    """One run of so many trips, of what no cache has."""
    kernel, constants, options = repeated(c)
    given, _ = tensors(c, SMS)
    keep("flush", flushing).add_(1)
    more = micro_threads.numbers_of(c)
    return launched(blocks, kernel, given, constants, options, trips=trips, **more)


def lasting(c, blocks, cycles):
    """Milliseconds of blocks that last so long beside what they load, and what they wrote."""
    import torch

    kernel, constants, options = repeated(c)
    given, most = tensors(c, SMS)
    out = keep(("out", most), lambda: torch.zeros(most * 16, dtype=torch.int64, device="cuda"))
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    kernel[(blocks,)](out=out, cycles=cycles, **given, **constants, **options)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end), out[: blocks * 16].view(blocks, 16).double()


def launch(c):
    """Microseconds of kernels in a row, by their number of blocks."""
    import torch

    kernel, constants, options = repeated(c)
    found = {}
    for blocks in (SMS, 4 * SMS, 16 * SMS):
        out = torch.zeros(blocks * 16, dtype=torch.int64, device="cuda")
        for _ in range(20):
            kernel[(blocks,)](out=out, **constants, **options)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for _ in range(200):
            kernel[(blocks,)](out=out, **constants, **options)
        end.record()
        torch.cuda.synchronize()
        found[str(blocks)] = round(begin.elapsed_time(end) * 5, 2)
        told = out.cpu().view(blocks, 16)
    cycles = middle((told[:, 6] - told[:, 4])[told[:, 6] > 0]) if c["name"] == "starting" else None
    return {"microseconds": found, "cycles": cycles and cycles[0]}


def compile_one(c):
    """Into the cache, by a run of nothing."""
    if c["kind"] == "info":
        return
    kernel, constants, options = repeated(c)
    given, _ = tensors(c, SMS)
    import torch

    out = torch.zeros(16, dtype=torch.int64, device="cuda")
    names = {"launch": (), "follow": ("cycles",), "pass": ("cycles",), "move": ("cycles",),
             "gather": ("trips", "pause", "shift"), "burst": ("trips", "pause")}  # fmt: skip
    names |= dict.fromkeys(TWO_AGENTS, ("first_trips", "second_trips"))
    trips = dict.fromkeys(names.get(c["kind"], ("trips",)), 64)
    kernel.warmup(out=out, **trips, **given, **constants, **options, grid=(1,))


def main():
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("micro.jsonl"))
    parser.add_argument(
        "--only", default="", help="configurations that contain one of these texts (commas)"
    )
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--list", action="store_true", help="say what would be measured")
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    texts = asked.only.split(",")
    wanted = [
        c
        for c in configurations()
        if c["kind"] == "info" or any(text in json.dumps(c) for text in texts)
    ]
    if asked.list:
        print("\n".join(map(json.dumps, wanted)))
    elif asked.warm:
        part, parts = map(int, asked.warm.split("/"))
        isolated.warm(wanted, compile_one, part, parts)
    elif asked.work is not None:
        isolated.work(wanted, run, asked.work)
    else:
        words = ["--only", asked.only]
        print(f"compiled in {isolated.warmed(__file__, words, asked.processes):.0f} s", flush=True)
        begun = time.time()
        with asked.output.open("w") as file:
            for number, row in isolated.rows(__file__, words, len(wanted)):
                file.write(json.dumps({**wanted[number], **row}) + "\n")
                file.flush()
                if "error" in row:
                    print(f"{wanted[number]}: {row['error']}", flush=True)
        print(f"{len(wanted)} configurations in {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
