"""Autotuned kernels as they are, and with ours among their configurations: how long tuning takes.

    python benchmarks/gpu/tuners.py RESULTS.json TUTORIALS [NAME...]    matmul, attention, int8

TUTORIALS is the folder of Triton's tutorials (03 and 06 are taken); `int8` is the product of int8
and numbers of two bits in Liger Kernel. Each runs in processes of its own with empty caches: as it
is, and after `stretto.triton.install()`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

FILES = {"matmul": "03-matrix-multiplication", "attention": "06-fused-attention", "int8": ""}


def loaded(folder, name):
    """The module of a tutorial, whose benchmarks do not run."""
    import triton.testing

    if not FILES[name]:
        return import_module("liger_kernel.ops.experimental.mm_int8int2")
    triton.testing.Mark.run = lambda *_, **__: None
    number, _, rest = FILES[name].partition("-")
    found = next(Path(folder).glob(f"*{number}*{rest.replace('-', '?')}.py"))
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, f"tutorial_{name}.py").write_text(found.read_text("utf-8"), encoding="utf-8")
        sys.path.insert(0, scratch)
        return import_module(f"tutorial_{name}")


def case(torch, module, name):
    """A call that is tuned at first, and its autotuner."""
    half = {"device": "cuda", "dtype": torch.float16}
    if name == "matmul":
        a, b = torch.randn(4096, 4096, **half), torch.randn(4096, 4096, **half)
        return (lambda: module.matmul(a, b)), module.matmul_kernel
    if name == "int8":
        a = torch.randint(-8, 8, (4096, 4096), device="cuda", dtype=torch.int8)
        packed = torch.randint(0, 86, (1024, 4096), device="cuda", dtype=torch.uint8)
        return (lambda: module.matmul(a, packed)), module.matmul_kernel
    q, k, v = (torch.randn(4, 16, 4096, 128, **half) for _ in range(3))
    return (lambda: module.attention(q, k, v, True, 0.1, False)), module._attn_fwd


def one(folder, name, way):
    """One tutorial, one way; told on stdout."""
    import torch

    if way == "stretto":
        import stretto.triton

        stretto.triton.install()
    import triton

    triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))
    module = loaded(folder, name)
    call, tuner = case(torch, module, name)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    wanted = call().clone()
    torch.cuda.synchronize()
    tuning = time.perf_counter() - begin
    for _ in range(60 if way == "stretto" else 5):  # trials of what the tuner did not measure
        got = call()
        torch.cuda.synchronize()
    times = []
    for _ in range(15):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)
        begin.record()
        for _ in range(5):
            call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 200)
    found = {
        "tuning_s": tuning,
        "configurations": len(tuner.configs_timings),
        "us": statistics.median(times),
        "config": str(tuner.best_config),
        "difference": float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1)),
    }
    if way == "stretto":
        found["verdicts"] = [v.to_json() for v in stretto.triton.verdicts()]
    print(json.dumps(found))


def main():
    results, folder, *names = sys.argv[1:]
    found = {}
    for name in names or FILES:
        for way in ("stock", "stretto"):
            with tempfile.TemporaryDirectory() as scratch:
                caches = {"TRITON_CACHE_DIR": f"{scratch}/t", "STRETTO_CACHE": f"{scratch}/s"}
                words = [sys.executable, __file__, "--one", folder, name, way]
                done = subprocess.run(
                    words,
                    env={**os.environ, **caches},
                    capture_output=True,
                    text=True,
                    check=False,
                )
            if done.returncode:
                print(done.stderr[-3000:])
                continue
            told = json.loads(done.stdout.strip().rpartition("\n")[2])
            found.setdefault(name, {})[way] = told
            print(name, way, {k: v for k, v in told.items() if k != "verdicts"}, flush=True)
        Path(results).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        one(*sys.argv[2:])
    else:
        main()
