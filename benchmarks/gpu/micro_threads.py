"""Microbenchmarks of what threads load and store themselves, and of blocks that follow each other.

    warp 0   ── 4 loads of 16 bytes a lane ──┐ all there ──┐ the next address
    warp 31  ── 4 loads of 16 bytes a lane ──┘             └── 4 loads ...

A block is one warp, and as many of them share an SM as the row says. Where the next address waits
for what was loaded, a trip is a latency, and what is in flight is known: bytes a cycle follow.
"""

from __future__ import annotations

LANES = 32
TRIPS = (8, 32)
SPIN = 2000
"""Cycles of a block that only lets time pass."""
WAVES = 24
KEPT = (64, 128, 160, 192, 208, 224, 240, 256, 288, 320, 384)
"""KB that the warps of an SM go round in, to see what its cache keeps."""
KERNELS = {
    "fetch": "fetches",
    "keep": "fetches",
    "put": "puts",
    "meeting": "meetings",
    "follow": "spinning",
}


def configurations():
    """What is measured."""
    found = []
    for source in ("l1", "l2", "hbm"):
        for warps in (1, 4, 8, 16, 32):
            for width, flight in ((4, 1), (4, 2), (4, 4), (4, 8), (2, 4), (1, 4)):
                if width == 4 or warps in (1, 32):
                    found.append({"kind": "fetch", "source": source, "warps": warps,
                                  "width": width, "flight": flight})  # fmt: skip
    for loads in (0, 1):
        for source in ("hbm",) if loads else ("l2", "hbm"):
            for warps in (8, 16, 32):
                for width, flight in ((4, 1), (4, 4), (1, 4)):
                    found.append({"kind": "put", "source": source, "warps": warps, "width": width,
                                  "flight": flight, "loads": loads})  # fmt: skip
    found += [{"kind": "keep", "kilobytes": n, "warps": 16, "width": 4, "flight": 1} for n in KEPT]
    found += [{"kind": "meeting", "width": 4, "flight": flight} for flight in (1, 2, 4, 8)]
    found += [{"kind": "follow", "warps": warps} for warps in (1, 2, 4, 8, 16)]
    return found


def pieces(c):
    """What a block loads or stores before it begins anew, in trips."""
    if c["kind"] == "keep":
        return c["kilobytes"] * 1024 // (c["warps"] * LANES * c["width"] * 4)
    return {"l1": 1, "l2": 4, "hbm": TRIPS[1]}[c["source"]]


def trips(c):
    """Of the shorter and the longer run; what is kept has to be loaded once before."""
    return (2 * pieces(c), 6 * pieces(c)) if c["kind"] == "keep" else TRIPS


def constants(c):
    """Of the kernel of a configuration, and its options."""
    if c["kind"] == "follow":
        return {}, {"num_warps": c["warps"]}
    found = {"FLIGHT": c["flight"], "WIDTH": c["width"]}
    if c["kind"] != "meeting":
        found["PIECES"] = pieces(c)
    if c["kind"] in ("fetch", "keep"):
        found["CACHED"] = int(c.get("source") != "l2")
    elif c["kind"] == "put":
        found["LOADS"] = c["loads"]
    return found, {"num_warps": 1}


def tensors(c, big):
    """Further arguments; `big` is of zeros."""
    if c["kind"] in ("meeting", "follow"):
        return {}
    half = big.numel() // 2
    if c["kind"] in ("fetch", "keep"):
        return {"source": big[:half]}
    return {"target": big[half:], "source": big[:half]}


def blocks_of(c, sms):
    """How many run."""
    if c["kind"] == "follow":
        return WAVES * sms * residents(c)
    return sms * c.get("warps", 1)


def residents(c):
    """Blocks that share an SM when nothing but threads limits them."""
    return min(32, 2048 // (LANES * c["warps"]))


def followed(c, sms, run):
    """Cycles from the end of a block to the beginning of the next in its place."""
    found = run(blocks_of(c, sms), SPIN)
    begins, ends = found[:, 5], found[:, 7]
    mhz = float((found[:, 6] - found[:, 4]).sum() / (ends - begins).sum() * 1e3)
    whole = float(ends.max() - begins.min()) * mhz / 1e3 / WAVES
    each = float((found[:, 6] - found[:, 4]).median())
    return {"cycles": round(whole - each, 1), "block": each, "mhz": round(mhz)}
