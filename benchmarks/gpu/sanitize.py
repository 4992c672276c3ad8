"""Emitted kernels under Triton's concurrency sanitizer (`TRITON_INSTRUMENTATION_MODE=consan`).

    python benchmarks/gpu/sanitize.py emit FOLDER    anywhere; needs Triton
    python benchmarks/gpu/sanitize.py run FOLDER     on a Hopper GPU, with torch

What the sanitizer adds grows with barriers, slots and steps that are written out, and takes minutes
to compile: so rings are short here, stages few, and every kernel has a process and a time of its
own. Two kernels have a bug that was put into their text; of these it must complain.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
SECONDS = 210
WORKERS = 12
KERNELS = (
    "gemm_128_c1",
    "gemm_128_c2",
    "forward_d64_64",
    "forward_d64_64_causal",
    "backward_kv_d64_64",
    "backward_q_d64_64_causal",
)
BUGS = {
    "gemm_128_c1_filled_early": ("def copy_agent(", "mbarrier.wait("),
    "gemm_128_c1_read_early": ("def compute_agent(", "mbarrier.wait("),
}
"""By name: in which function no line begins so."""


def without(source, function, begins):
    """The source without some lines of one function."""
    kept, inside, dropped = [], False, 0
    for line in source.splitlines():
        if line.startswith("def "):
            inside = line.startswith(function)
        if inside and line.strip().startswith(begins):
            dropped += 1
        else:
            kept.append(line)
    assert dropped, f"no line of {function} begins with {begins}"
    return "\n".join(kept) + "\n"


def emit_all(folder):
    """Short rings, two stages, and two kernels with bugs."""
    sys.path.insert(0, str(HERE))
    from kernels import configurations, ttir, write

    from stretto.api.emitting import emit
    from stretto.compile.candidates import STAGES

    folder.mkdir(parents=True, exist_ok=True)
    for name, (asked, options) in configurations().items():
        if name not in KERNELS:
            continue
        text, beside = ttir(**asked)
        with tempfile.TemporaryDirectory() as scratch, patch.dict(STAGES, {"specialized": (2,)}):
            dump = Path(scratch) / f"{name}.ttir"
            dump.write_text(text)
            dump.with_suffix(".json").write_text(json.dumps(beside))
            write(folder, name, emit(dump, **options, depth=2), asked["constexprs"])
    for name, (function, begins) in BUGS.items():
        whole = folder / name.removesuffix("_filled_early").removesuffix("_read_early")
        source = whole.with_suffix(".py").read_text()
        (folder / f"{name}.py").write_text(without(source, function, begins))
        (folder / f"{name}.json").write_text(whole.with_suffix(".json").read_text())


def one(folder, name):
    """In a process of its own: one small problem."""
    import torch
    from measure import LENGTHS, PRODUCTS, check

    import triton

    triton.set_allocator(
        lambda size, _align, _stream: torch.empty(size, device="cuda", dtype=torch.int8)
    )
    PRODUCTS[:] = [(128, 256, 320)]
    LENGTHS[:] = [256]
    found = check(folder, name)
    torch.cuda.synchronize()
    print(json.dumps(found))


def run(folder, name):
    """What the sanitizer says of one kernel, in a time of its own."""
    begun = time.time()
    environment = {**os.environ, "TRITON_INSTRUMENTATION_MODE": "consan"}
    command = [sys.executable, __file__, "one", str(folder), name]
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"name": name, "verdict": f"no answer in {SECONDS} s"}
    told = (done.stdout + done.stderr).strip().splitlines()
    complaints = sorted({line.strip()[:160] for line in told if "ssert" in line})[:4]
    verdict = "complains" if complaints else ("silent" if done.returncode == 0 else "failed")
    row = {"name": name, "verdict": verdict, "seconds": round(time.time() - begun)}
    return row | {"said": complaints or told[-2:]}


def main():
    """Emit, or run all of them side by side: compiling is what takes long."""
    folder = Path(sys.argv[2])
    if sys.argv[1] == "emit":
        emit_all(folder)
    elif sys.argv[1] == "one":
        one(folder, sys.argv[3])
    else:
        names = sorted(file.stem for file in folder.glob("*.py"))
        with ThreadPoolExecutor(WORKERS) as pool:
            rows = list(pool.map(lambda name: run(folder, name), names))
        for row in rows:
            print(json.dumps(row), flush=True)
        wrong = [r["name"] for r in rows if (r["verdict"] == "complains") != (r["name"] in BUGS)]
        wrong += [r["name"] for r in rows if r["verdict"] not in ("complains", "silent")]
        sys.exit(f"not as it should be: {', '.join(wrong)}" if wrong else 0)


if __name__ == "__main__":
    main()
