"""A program as it is, and under `python -m stretto.triton`: losses, times, time of all kernels.

    python benchmarks/gpu/real_program.py RESULTS.json [PROGRAM]      train.py, where none is named

Needs a GPU, torch, Triton, and what the program imports on PYTHONPATH. Both runs begin with empty
caches; a short one before them has files read and the GPU warm.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def run(words, **more):
    """Seconds of a process, what the program wrote, and what it said."""
    with tempfile.TemporaryDirectory() as scratch:
        told = Path(scratch) / "told.json"
        environment = {
            **os.environ,
            "TRITON_CACHE_DIR": f"{scratch}/triton",
            "STRETTO_CACHE": f"{scratch}/stretto",
            **more,
        }
        begin = time.perf_counter()
        done = subprocess.run(
            [sys.executable, *words, str(told)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - begin
        if done.returncode:
            sys.exit(done.stderr)
        return {"process_s": seconds, "said": done.stderr, **json.loads(told.read_text("utf-8"))}


def main():
    program = sys.argv[2] if sys.argv[2:] else str(HERE / "train.py")
    run([program], STEPS="12")
    found = {"stock": run([program])}
    makers = {"STRETTO_MAKERS": os.environ.get("STRETTO_MAKERS", "4")}
    found["stretto"] = run(["-m", "stretto.triton", "--summary", program], **makers)
    both = [found[who]["losses"] for who in ("stock", "stretto")]
    found["difference"] = max(abs(a - b) / abs(a) for a, b in zip(*both, strict=True))
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(found["stretto"]["said"])
    for who in ("stock", "stretto"):
        one = found[who]
        first, last = one["losses"][0], one["losses"][-1]
        print(
            f"{who:8} whole process {one['process_s']:6.1f} s, training {one['seconds']:6.1f} s,"
            f" a step {one['step_ms']:6.2f} ms, kernels {one['kernels_ms']:6.2f} ms,"
            f" loss {first:.4f} to {last:.4f}"
        )
    print(f"losses differ by {found['difference']:.2%} at most")


if __name__ == "__main__":
    main()
