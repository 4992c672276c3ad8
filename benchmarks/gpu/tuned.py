"""Configurations chosen at the launch: the model's first, the best of the first 8, the best of all.

    PYTHONPATH=src python benchmarks/gpu/tuned.py -o tuned.jsonl      (on the GPU; six minutes)

Each kernel is a process of its own; while one compiles another measures, never two at a time. Every
choice is then asked for once more by another process, which is to find it without a ranking, and
which times all of them in turns: a card that is warm is slower by a tenth.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

HEADS, LENGTH, SIZE, NORM = 16, 8192, 8192, (16384, 8192)
MOST = {"layer_norm": 64}
"""Configurations of a kernel that are measured to tell the best of all."""
SEVERAL = 24
ROUNDS = 7
TILES = {
    "attention_d128": {"BLOCK_M": [64, 128], "BLOCK_N": [64, 128], "D": [128], "CAUSAL": [False]},
    "attention_d64": {"BLOCK_M": [64, 128], "BLOCK_N": [64, 128], "D": [64], "CAUSAL": [False]},
    "matmul": {"BLOCK_M": [128, 256], "BLOCK_N": [128, 256], "BLOCK_K": [64]},
    "layer_norm": {"BLOCK": [512, 1024, 2048, 4096], "num_warps": [2, 4, 8, 16]},
}


def problem(name):
    """A kernel, its arguments and grid, and how far off its answer is."""
    import measure
    import torch

    match name:
        case "matmul":
            from matmul_descriptors import matmul_descriptors

            p = measure.Gemm(SIZE, SIZE, SIZE)
            b = p.b.T.contiguous()

            def tiles(meta):
                return SIZE // meta["BLOCK_M"], SIZE // meta["BLOCK_N"]

            args = (p.a, b, p.c, SIZE, SIZE, SIZE)
            return matmul_descriptors, args, tiles, lambda: measure.error(p.c, (p.a @ b).double())
        case "layer_norm":
            from layer_norm import layer_norm

            p = measure.Norm(*NORM)

            def off():
                wanted = torch.nn.functional.layer_norm(
                    p.x[:64].double(), (p.columns,), p.gamma.double(), p.beta.double(), 1e-5
                )
                return measure.error(p.y[:64], wanted)

            return layer_norm, p.args, (p.rows,), off
        case _:
            from attention_forward import attention_forward

            d = int(name.rsplit("_d", 1)[1])
            p = measure.Attention(d, causal=False, heads=HEADS, length=LENGTH)

            def off():
                q, k, v = (p.heads_of(t)[:1].float() for t in (p.q, p.k, p.v))
                scores = q[:, -256:] @ k.transpose(1, 2) / d**0.5
                return measure.error(p.heads_of(p.o)[:1, -256:], (scores.softmax(-1) @ v).double())

            args = (p.q, p.k, p.v, p.o, p.lse, p.scale, LENGTH, HEADS * LENGTH)
            return attention_forward, args, lambda meta: (LENGTH // meta["BLOCK_M"], HEADS), off


@contextmanager
def alone(file):
    """While nobody else measures."""
    with open(file, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def chosen(name, how, lock, until):
    """One kernel, its configuration chosen in one way: what was taken, how long that took, and how
    it is launched."""
    import torch

    import triton
    from stretto.caching import cache_folder
    from stretto.triton import pipeline

    # Where nothing can be measured Triton's own kernel runs, and builds its descriptors there.
    triton.set_allocator(lambda size, _, __: torch.empty(size, device="cuda", dtype=torch.int8))
    kernel, args, grid, off = problem(name)

    def bench(call):
        if time.time() > until:
            raise TimeoutError("no time is left")
        call()
        torch.cuda.synchronize()
        with alone(lock):
            return triton.testing.do_bench(call, warmup=10, rep=50, return_mode="median")

    folder = cache_folder() / "tuned"
    before = set(folder.glob("*.json"))
    tuned = pipeline(tune=how, configs=TILES[name], do_bench=bench)(kernel)
    begun = time.time()
    tuned[grid](*args)
    torch.cuda.synchronize()
    first = time.time() - begun
    with alone(lock):
        again = triton.testing.do_bench(
            lambda: tuned[grid](*args), warmup=10, rep=100, return_mode="median"
        )
    row = {"kernel": name, "tune": how, "first_launch_s": round(first, 2), "ms": round(again, 4),
           "error_of": off()}  # fmt: skip
    new = set(folder.glob("*.json")) - before
    row["remembered"] = not new
    for file in new:
        document = json.loads(file.read_text())
        row |= {name: document[name] for name in ("chosen", "measured_ms", "failed")}
        row["configs"] = [
            [one["of"], one["consumers"], one["rings"], one["seconds"]]
            for one in document["ranking"]["predictions"]
        ]
    return row, lambda: tuned[grid](*args)


def family(name, lock, until):
    """All ways of one kernel, and then in turns."""
    every = f"measure:{MOST.get(name, SEVERAL)}"
    calls = {}
    for how in (every, "measure:8", "model"):
        try:
            row, calls[how] = chosen(name, how, lock, until)
        except Exception as failed:
            row = {"kernel": name, "tune": how, "error": f"{type(failed).__name__}: {failed}"}
        print(json.dumps(row), flush=True)
    print(json.dumps({"kernel": name, "in_turns_ms": in_turns(calls, lock)}), flush=True)


def in_turns(calls, lock):
    """Milliseconds of each, one after the other and then again: medians."""
    import triton

    times = {how: [] for how in calls}
    with alone(lock):
        for _ in range(ROUNDS):
            for how, call in calls.items():
                times[how].append(
                    triton.testing.do_bench(call, warmup=10, rep=30, return_mode="median")
                )
    return {how: round(statistics.median(of), 4) for how, of in times.items()}


def told(rows):
    """What the model loses, by kernel: the last time that all ran in turns."""
    for name in TILES:
        turns = [row["in_turns_ms"] for row in rows if row["kernel"] == name and "tune" not in row]
        if not turns or "model" not in turns[-1]:
            yield f"{name}: not all ways ran"
            continue
        best = min(turns[-1].values())
        for how, took in turns[-1].items():
            yield f"{name}: {how} {took:.4f} ms, {took / best - 1:+.1%}"


def main():
    """Every kernel in a process of its own, twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("tuned.jsonl"))
    parser.add_argument("--seconds", type=float, default=150, help="for measuring, at most")
    parser.add_argument("--only", default="")
    parser.add_argument("--family", help=argparse.SUPPRESS)
    parser.add_argument("--lock", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.family:
        family(asked.family, asked.lock, time.time() + asked.seconds)
        return
    rows = []
    with tempfile.TemporaryDirectory() as scratch, asked.output.open("w") as file:
        lock = str(Path(scratch, "lock"))
        for seconds in (asked.seconds, asked.seconds / 3):
            running = []
            for name in (n for n in TILES if asked.only in n):
                # A folder for each: what was compiled for one way serves the others.
                env = {**os.environ, "STRETTO_CACHE": str(Path(scratch, name)),
                       "TRITON_CACHE_DIR": str(Path(scratch, f"{name}-triton"))}  # fmt: skip
                words = ["--family", name, "--lock", lock, "--seconds", str(seconds)]
                command = [sys.executable, __file__, *words]
                running.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE))
            for process in running:
                try:
                    said, _ = process.communicate(timeout=seconds + 40)
                except subprocess.TimeoutExpired:
                    process.kill()
                    said, _ = process.communicate()
                for line in said.decode().splitlines():
                    if line.startswith("{"):
                        file.write(line + "\n")
                        file.flush()
                        rows.append(json.loads(line))
    print(*told(rows), sep="\n")
    again = [row["first_launch_s"] for row in rows if row.get("remembered")]
    if again:
        print(f"{len(again)} choices remembered by another process, first launches in at most "
              f"{max(again):.1f} s")  # fmt: skip


if __name__ == "__main__":
    main()
