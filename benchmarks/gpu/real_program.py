"""A program as it is, and under `python -m stretto.triton`: losses, times, time of all kernels.

    python benchmarks/gpu/real_program.py RESULTS.json [PROGRAM]      train.py, where none is named

    stock ─► stretto ─► stretto again, which finds what the first kept ─► stock again

Needs a GPU, torch, Triton, and what the program imports on PYTHONPATH. All but the second run of
ours begin with empty caches; a short run before them has files read and the GPU warm. Stock runs
first and last, since GPUs get warmer.
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


WAYS = ("stock", "stretto", "again", "stock_again")


def run(words, scratch, **more):
    """Seconds of a process, what the program wrote, and what it said."""
    told = Path(scratch) / "told.json"
    caches = {"TRITON_CACHE_DIR": f"{scratch}/triton", "STRETTO_CACHE": f"{scratch}/stretto"}
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words, str(told)],
        env={**os.environ, **caches, **more},
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
    makers = {"STRETTO_MAKERS": os.environ.get("STRETTO_MAKERS", "4")}
    found = {}
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as ours:
        run([program], first, STEPS="24")
        for way in WAYS:
            if way.startswith("stock"):
                with tempfile.TemporaryDirectory() as scratch:
                    found[way] = run([program], scratch)
            else:
                words = ["-m", "stretto.triton", "--summary", program]
                found[way] = run(words, ours, **makers)
                print(found[way]["said"], flush=True)
            one = found[way]
            print(
                f"{way:11} whole process {one['process_s']:6.1f} s, training"
                f" {one['seconds']:6.1f} s, a step {one['step_ms']:6.2f} ms, kernels"
                f" {one['kernels_ms']:6.2f} ms, loss {one['losses'][0]:.4f} to"
                f" {one['losses'][-1]:.4f}",
                flush=True,
            )
            Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for way in WAYS[1:]:
        both = [found[who]["losses"] for who in ("stock", way)]
        apart = max(abs(a - b) / abs(a) for a, b in zip(*both, strict=True))
        found[way]["difference"] = apart
        print(f"losses of {way} differ by {apart:.2%} at most from the first run's")
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
