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
LONG = 1_000_000
"""Cycles of a block that tells the clock's rate, beside one that takes twice as long."""
LOADED_TWICE = (8, 24)
TWICE = 4
"""Pieces that a block loads before it loads them again: 16 KB by four warps."""
PASSED = (8, 40)
"""Waves of blocks in a shorter and a longer run."""
KEPT = (64, 128, 160, 192, 208, 224, 240, 256, 288, 320, 384)
"""KB that the warps of an SM go round in, to see what its cache keeps."""
SPANNED = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20)
"""Pieces of 32 KB that each SM goes round in, to see what the cache keeps that all SMs share."""
KERNELS = {
    "fetch": "fetches",
    "keep": "fetches",
    "hold": "fetches",
    "put": "puts",
    "meeting": "meetings",
    "follow": "spinning",
    "gather": "gathers",
    "again": "again",
    "works": "works",
    "burst": "bursts",
    "revisit": "revisits",
    "pass": "passing",
    "move": "moves",
}
GATHERED = ((1, 4, 8), (16, 32), (0, 1000, 3000, 9000))
"""Loads in flight, warps of an SM, and cycles of a pause, of blocks whose warps meet."""
HELD = (4, 6, 8, 10, 12, 14, 16)
"""Blocks of an SM that load 16 KB each, twice."""
VISITED = (2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28)
"""The same of one warp."""
VISITS, VISITED_PIECES = 8, 32
"""How often each of them does so, and in how many pieces."""
WORKING = (4, 8, 16, 32, 64)
"""Warps of an SM that compute."""


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
    found += [{"kind": "hold", "pieces": n, "warps": 16, "width": 4, "flight": 4} for n in SPANNED]
    found += [{"kind": "meeting", "width": 4, "flight": flight} for flight in (1, 2, 4, 8)]
    found += [{"kind": "follow", "warps": warps} for warps in (1, 2, 4, 8, 16)]
    return found + gathered() + passed_on()


def gathered():
    """Blocks of several warps that meet when all have what they asked for."""
    found = []
    flights, several, pauses = GATHERED
    for block in (1, 2, 4, 8, 16):
        for width, flight in ((4, 1), (2, 1), (2, 4), (2, 8)):
            found.append({"kind": "meeting", "block": block, "width": width, "flight": flight})
        for stores in (0, 1, 2):
            for flight in flights if stores < 2 else (4,):
                for warps in several:
                    for pause in pauses:
                        found.append({"kind": "gather", "source": "hbm", "block": block,
                                      "warps": warps, "width": 2, "flight": flight,
                                      "stores": stores, "pause": pause})  # fmt: skip
    return found + loaded_twice() + working()


def loaded_twice():
    """Blocks that load what they have loaded, and store it."""
    found = []
    for stores in (0, 1):
        for held in HELD:
            found.append({"kind": "again", "source": "hbm", "block": 4, "warps": 4 * held,
                          "width": 4, "stores": stores})  # fmt: skip
        for held in VISITED:
            found.append({"kind": "revisit", "source": "hbm", "warps": held, "stores": stores})
    for block, warps in ((4, 28), (4, 36), (8, 40), (8, 48), (8, 64)):
        for group in (1, 2, 4, 8):
            for common in (0, 1):
                found.append({"kind": "burst", "source": "hbm", "block": block, "warps": warps,
                              "group": group, "common": common, "pause": 200})  # fmt: skip
    return found


def working():
    """Warps that compute and load nothing."""
    return [
        {"kind": "works", "block": 4, "warps": warps, "elements": elements}
        for elements in (4, 16)
        for warps in WORKING
    ]


def passed_on():
    """Blocks that follow each other, and what they still have to store."""
    found = [
        {"kind": "pass", "warps": warps, "stores": stores, "spin": spin}
        for warps in (1, 2, 4, 8, 16)
        for stores in (0, 1, 4)
        for spin in (2000, 8000, 32000)
    ]
    return found + [
        {"kind": "move", "warps": warps, "width": 2, "flight": 4, "spin": spin}
        for warps in (4, 8, 16)
        for spin in (0, 1000, 3000, 9000, 27000)
    ]


def pieces(c):
    """What a block loads or stores before it begins anew, in trips."""
    if c["kind"] == "keep":
        return c["kilobytes"] * 1024 // (c["warps"] * LANES * c["width"] * 4)
    if c["kind"] == "hold":
        return c["pieces"]
    return {"l1": 1, "l2": 4, "hbm": TRIPS[1]}[c["source"]]


def trips(c):
    """Of the shorter and the longer run; what is kept has to be loaded once before."""
    return (2 * pieces(c), 6 * pieces(c)) if c["kind"] in ("keep", "hold") else TRIPS


def constants(c):
    """Of the kernel of a configuration, and its options."""
    if c["kind"] == "follow":
        return {}, {"num_warps": c["warps"]}
    if c["kind"] == "pass":
        return {"STORES": c["stores"]}, {"num_warps": c["warps"]}
    warps = {"num_warps": c.get("block", 1)}
    if c["kind"] == "revisit":
        return {"PIECES": VISITED_PIECES, "STORES": c["stores"]}, warps
    if c["kind"] == "burst":
        return {"GROUP": c["group"], "COMMON": c["common"]}, warps
    if c["kind"] == "works":
        return {"ELEMENTS": c["elements"]}, warps
    if c["kind"] == "again":
        return {"PIECES": TWICE, "WIDTH": c["width"], "STORES": c["stores"]}, warps
    found = {"FLIGHT": c["flight"], "WIDTH": c["width"]}
    if c["kind"] == "move":
        return found, {"num_warps": c["warps"]}
    if c["kind"] in ("fetch", "keep", "hold", "put"):
        found["PIECES"] = pieces(c)
    if c["kind"] in ("fetch", "keep", "hold"):
        found["CACHED"] = int(c["kind"] != "hold" and c.get("source") != "l2")
    elif c["kind"] == "put":
        found["LOADS"] = c["loads"]
    elif c["kind"] == "gather":
        found["STORES"] = c["stores"]
    return found, warps


def tensors(c, big):
    """Further arguments; `big` is of zeros."""
    if c["kind"] in ("meeting", "follow", "works"):
        return {}
    half = big.numel() // 2
    if c["kind"] == "pass":
        return {"target": big}
    if c["kind"] in ("fetch", "keep", "hold"):
        return {"source": big[:half]}
    return {"target": big[half:], "source": big[:half]}


def blocks_of(c, sms):
    """How many run."""
    if c["kind"] in ("follow", "pass", "move"):
        return (PASSED[1] if c["kind"] != "follow" else WAVES) * sms * residents(c)
    return sms * c.get("warps", 1) // c.get("block", 1) if c["kind"] != "meeting" else sms


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


def numbers_of(c):
    """Further numbers of a run."""
    if c["kind"] == "burst":
        return {"pause": c["pause"]}
    if c["kind"] != "gather":
        return {}
    return {"pause": c["pause"], "shift": c["pause"] * c["block"] // c["warps"]}


def told(c, run):
    """Cycles of a trip, by what the blocks wrote in a shorter and a longer run."""
    short, long = TRIPS if c["kind"] != "again" else LOADED_TWICE
    few, many = run(short), run(long)
    found = {}
    for name, at in (("cycles", 0), ("stored", 2), ("whole", 8)):
        found[name] = round(float(((many - few)[:, at] / (long - short)).median()), 1)
    span, times = many[:, 6] - many[:, 4], many[:, 7] - many[:, 5]
    return found | {"mhz": round(float(span.sum() / times.sum() * 1e3))}


def revisited(run):
    """Parts of what was loaded again that came from an SM's own cache, and from one at all."""
    found = run(VISITS)
    near, middle = (float(found[:, at].sum()) for at in (2, 8))
    count = len(found) * VISITS * VISITED_PIECES
    return {"cycles": float(found[:, 0].median()) / VISITS, "own": round(near / count, 4),
            "cached": round(middle / count, 4)}  # fmt: skip


def passed(c, sms, run):
    """Cycles from a block's last instruction to the next one's first, by the time of all.

    `run` says milliseconds of blocks and what they wrote."""
    each = sms * residents(c)
    run(each, c["spin"])
    mhz = LONG / (run(1, 2 * LONG)[0] - run(1, LONG)[0]) / 1e3
    few, many = (
        min((run(waves * each, c["spin"]) for _ in range(3)), key=lambda one: one[0])
        for waves in PASSED
    )
    whole = (many[0] - few[0]) * mhz * 1e3 / (PASSED[1] - PASSED[0])
    if c["kind"] == "pass":
        return {"cycles": round(whole - c["spin"], 1), "mhz": round(mhz)}
    inside, loading = (float(many[1][:, n].median()) for n in (0, 1))
    return {"cycles": round(whole - inside, 1), "loading": loading, "whole": round(whole, 1),
            "mhz": round(mhz)}  # fmt: skip
