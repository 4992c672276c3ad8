"""The smallest body that touches TMA, tensor cores and both shared-memory transports.

The TMA load and the write share the shared-memory write transport: 8 + 7 cycles an iteration.
The schedule beside it is written by hand and meets that bound.
"""

import json
from pathlib import Path

from stretto import Loop, ScheduleAnalysis, build, prepare
from stretto.loop.json import dump_loop
from stretto.lower_bounds import compute_bounds
from stretto.solution import SCHEMA, Proof, Schedule
from stretto.solution.json import analysis_to_json
from stretto.solution.views import analyse

II = 15
STARTS = {"load": 0, "write": 8, "wgmma": 0, "read": 8}


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


def schedule() -> ScheduleAnalysis:
    """A schedule whose II is the resource bound."""
    ready = prepare(make())
    bounds = compute_bounds(ready.loop, ready.machine)
    proof = Proof(optimal=bounds.mii == II, lower_bound=bounds.mii, method="bound")
    return analyse(
        ready.loop,
        ready.machine,
        Schedule(II, STARTS),
        bounds=bounds,
        proof=proof,
        generator="by hand",
    )


if __name__ == "__main__":
    here = Path(__file__)
    here.with_suffix(".json").write_text(dump_loop(make()), encoding="utf-8")
    ready = prepare(make())
    entry = analysis_to_json(schedule(), ready.loop, ready.machine)
    text = json.dumps({"schema": SCHEMA, "success": True, "loops": [entry]}, indent=2)
    here.with_suffix(".schedule.json").write_text(text + "\n", encoding="utf-8")
