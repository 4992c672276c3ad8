"""Attention forward by persistent blocks, beside cuDNN and FlashAttention 3, over 20 sizes.

    attention_blocks.py emit build/gpu/blocks             (needs Triton; 2 min on 16 cores)
    attention_blocks.py measure build/gpu/blocks out.jsonl fa3.so  (GPU; 2 min)
    attention_blocks.py tuned 64 causal 4096              (GPU: what `tune="model"` takes)
    attention_blocks.py table out.jsonl                   (prints the page's)

`emit` writes all candidates, each with what the model predicts of it at each length; a size runs
the one that is predicted to be the fastest, so the choice is made before anything is measured.

16,384 tokens in all, hidden size 2,048, fp16. Each answer is first held against float64, over odd
numbers of tiles too. What is compared runs in one process, in rounds whose order is drawn anew from
the round's number; launches are bound before. `sustained` is 50 ms back to back, `cooled` 0.15 s of
rest before 6 ms. The clock and the watts are the driver's, read ten times a second. Medians are
told, all rounds are in the file. FlashAttention 3 is a library that defines `_vllm_fa3_C::fwd` (or
that, packed by xz), called in its variable-length form.
"""

from __future__ import annotations

import itertools
import json
import lzma
import math
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

TOKENS, HIDDEN = 16_384, 2_048
LENGTHS = (1_024, 2_048, 4_096, 8_192, 16_384)
ROUNDS, TURN = 7, 0.050
COOLED, BRIEF, REST = 3, 0.006, 0.15
"""Rounds of turns that are cooled, their length, and the rest before each."""
CHECKED = ((37, 1_536), (29, 1_280))
"""Heads and lengths that are held against float64."""
PEERS = ("cuDNN", "FlashAttention 3")
CLOCK = 1_755
"""MHz at which candidates are predicted."""
SETBACK = 1.25
"""Of a candidate that spills, as rankings have it."""
TILES = ((128, 128, 2), (128, 64, 2))
SMALL = ((256, 64, 4), (64, 128, 3), (64, 64, 3))
"""Rows and columns of a tile, and consumers; `SMALL` at D 64 alone. Three have neighbours."""


def kernels():
    """All candidates: D and mask, rows and columns of a tile, consumers, and blocks."""
    found = {}
    for d, causal, kind in itertools.product((128, 64), (False, True), ("given", "persistent")):
        for rows, columns, consumers in TILES + SMALL * (d == 64):
            if consumers == 3 and (causal or kind == "given"):
                continue  # neighbours need equal trip counts, and blocks that go over tiles
            name = f"d{d}_{'c' if causal else 'n'}_{rows}x{columns}_{consumers}_{kind}"
            found[name] = d, causal, rows, columns, consumers, kind
    return found


KERNELS = kernels()


def emit(folder):
    """Write the candidates, and what is predicted of each."""
    folder.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("spawn").Pool() as pool:
        made = pool.starmap(_emitted, [(folder, name) for name in KERNELS], chunksize=1)
    (folder / "predicted.json").write_text(json.dumps(dict(made), indent=1) + "\n")


def _emitted(folder, name):
    from dump import ttir

    import attention_forward
    from stretto.api.emitting import emit as emitted
    from stretto.launching.compiling import compile_emitted
    from stretto.machine import load_machine
    from stretto.prediction.kernel_time import predict_kernel

    d, causal, rows, columns, consumers, kind = KERNELS[name]
    signature = {f"{name}_ptr": "*fp16" for name in "qkvo"} | {"lse_ptr": "*fp32"}
    signature |= {"scale": "fp32", "length": "i32", "total_rows": "i32"}
    tiles = {"BLOCK_M": rows, "BLOCK_N": columns, "D": d, "CAUSAL": causal}
    kernel, options = attention_forward.attention_forward, {"num_warps": 4, "num_stages": 3}
    text, beside = ttir(kernel=kernel, signature=signature, constexprs=tiles, options=options)
    with tempfile.TemporaryDirectory() as scratch:
        dump = Path(scratch) / "forward.ttir"
        dump.write_text(text)
        dump.with_suffix(".json").write_text(json.dumps(beside))
        wanted = {"consumers": consumers, "blocks": kind}
        made = emitted(dump, "h200", **wanted, assemble=compile_emitted)
    (folder / f"{name}.py").write_text(made.source)
    machine, cycles = load_machine("h200"), {}
    for length in LENGTHS:
        heads = TOKENS // length * (HIDDEN // d)
        grid = (length // rows, heads)
        given = {"length": length, "total_rows": heads * length}
        one = predict_kernel(made.subject, machine, grid, given, CLOCK)
        cycles[length] = round(one.cycles * (SETBACK if one.spills else 1.0))
    print(name, [a.ii for a in made.analyses], cycles, flush=True)
    return name, cycles


def chosen(folder, d, causal, length):
    """The candidate of a size that is predicted to be the fastest."""
    predicted = json.loads((folder / "predicted.json").read_text())
    mine = [name for name in predicted if KERNELS[name][:2] == (d, causal)]
    return min(mine, key=lambda name: predicted[name][str(length)])


def tuned(d, mask, length):
    """What the decorator takes for a size, and how far off its answer is."""
    import measure as common
    import torch

    import attention_forward
    import stretto.triton

    d, causal, length, begun = int(d), mask == "causal", int(length), time.time()
    tiles = dict.fromkeys((rows, columns) for rows, columns, _ in TILES + SMALL)
    configs = [{"BLOCK_M": m, "BLOCK_N": n, "D": d, "CAUSAL": causal} for m, n in tiles]
    options = {"tune": "model", "key": ["length"], "strict": True, "trial": False}
    decorated = stretto.triton.pipeline(configs=configs, **options)
    kernel = decorated(attention_forward.attention_forward)
    problem = common.Attention(d, causal, TOKENS // length * (HIDDEN // d), length)

    def grid(meta):
        return length // meta["BLOCK_M"], problem.heads

    tensors = (problem.q, problem.k, problem.v, problem.o, problem.lse)
    kernel[grid](*tensors, problem.scale, length, problem.heads * length)
    torch.cuda.synchronize()
    few = common.Attention(d, causal, 2, length)
    for mine, all_of in ((few.q, problem.q), (few.k, problem.k), (few.v, problem.v)):
        mine.copy_(all_of[: 2 * length])
    exact, *_ = few.reference()
    ((number, _),), (asked,) = kernel._chosen.values(), kernel._made
    return {
        "d": d, "causal": causal, "length": length, "config": configs[number],
        "consumers": asked.consumers, "depth": asked.depth, "blocks": asked.blocks,
        "error": common.error(problem.o[: 2 * length], exact),
        "seconds": round(time.time() - begun, 1),
    }  # fmt: skip


def bound(kernel, problem, rows):
    """A launch that asks nothing of its arguments any more."""
    args = kernel.arguments(
        problem.q, problem.k, problem.v, problem.o, problem.lse, problem.scale, problem.length,
        problem.heads * problem.length,
    )  # fmt: skip
    grid = (problem.length // rows, problem.heads)
    blocks, tiles = kernel.work(grid) if hasattr(kernel, "work") else (grid, ())
    compiled = kernel.attention_forward_kernel[blocks](*args, *tiles, **kernel.OPTIONS)
    run, warps = compiled[(*blocks, 1, 1)[:3]], kernel.OPTIONS["num_warps"]
    return lambda: run(*args, *tiles, warps)


def checked(folder, name):
    """The largest error of a kernel against float64."""
    import measure as common
    import torch

    d, causal, rows, *_ = KERNELS[name]
    kernel, errors = common.load(folder, name), []
    for heads, length in CHECKED:
        small = common.Attention(d, causal, heads, length)
        exact, *_ = small.reference()
        bound(kernel, small, rows)()
        torch.cuda.synchronize()
        errors.append(common.error(small.o, exact))
    return max(errors)


def check(folder, names):
    """The errors of kernels, each in a process of its own: they are compiled side by side."""
    asked = {
        name: subprocess.Popen(
            [sys.executable, __file__, "checked", str(folder), name],
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    }
    return {name: float(one.communicate()[0].split()[-1]) for name, one in asked.items()}


def unpacked(library):
    """A library, as a file that can be loaded."""
    if library.suffix != ".xz":
        return library
    made = Path(tempfile.mkdtemp()) / "fa3.so"
    made.write_bytes(lzma.decompress(library.read_bytes()))
    return made


def measure(folder, output, library):
    """All sizes."""
    import attention_grid
    import measure as common
    import torch

    operator = attention_grid.flash_attention_3(unpacked(library))
    output.unlink(missing_ok=True)
    sizes = list(itertools.product((128, 64), (False, True), LENGTHS))
    errors = check(folder, sorted({chosen(folder, *size) for size in sizes}))
    print(errors, flush=True)
    assert all(error < attention_grid.TOLERANCE for error in errors.values())
    meter = attention_grid.Meter()
    for d, causal, length in sizes:
        name = chosen(folder, d, causal, length)
        torch.manual_seed(0)
        problem = common.Attention(d, causal, TOKENS // length * (HIDDEN // d), length)
        kernel = common.load(folder, name)
        others = attention_grid.runs_of(problem, kernel, operator)
        runs = {name: bound(kernel, problem, KERNELS[name][2])}
        runs |= {name: run for name, run in others.items() if name in PEERS}
        guess = {name: attention_grid.seconds_of(run, 3) for name, run in runs.items()}
        turns = attention_grid.turns
        sustained, meters = turns(runs, guess, ROUNDS, TURN, 0.0, meter)
        cooled, _ = turns(runs, guess, COOLED, BRIEF, REST, meter)
        read = {name: [one for one in found if one] for name, found in meters.items()}
        row = {
            "d": d, "causal": causal, "length": length, "Stretto": name,
            "errors": {name: errors[name]}, "ms": _milliseconds(sustained),
            "cooled": _milliseconds(cooled), "clock and watts": read,
        }  # fmt: skip
        told = {name: round(rate(row, name)) for name in runs}
        print(d, causal, length, told, flush=True)
        with output.open("a") as file:
            file.write(json.dumps(row) + "\n")
    meter.close()


def _milliseconds(times):
    return {name: [round(1e3 * one, 5) for one in found] for name, found in times.items()}


def rate(row, name, mode="ms"):
    """TFLOPS."""
    d, length = row["d"], row["length"]
    flops = (
        4 * TOKENS // length * (HIDDEN // d) * length * length * d * (0.5 if row["causal"] else 1)
    )
    return flops / statistics.median(row[mode][row.get(name, name)]) / 1e9


def ratio(row, mode="ms"):
    """Stretto's rate by the better of the others'."""
    return rate(row, "Stretto", mode) / max(rate(row, name, mode) for name in PEERS)


def table(file, mode="ms"):
    """The page's table, and what it comes to."""
    rows = [json.loads(line) for line in Path(file).read_text().splitlines()]
    found = {(row["d"], row["causal"], row["length"]): row for row in rows}
    print("| TFLOPS: Stretto / cuDNN / FlashAttention 3 | " + " | ".join(map(str, LENGTHS)) + " |")
    print("|---" * (1 + len(LENGTHS)) + "|")
    for d, causal in itertools.product((128, 64), (False, True)):
        cells = []
        for length in LENGTHS:
            row = found[d, causal, length]
            rates = " / ".join(f"{rate(row, name, mode):.0f}" for name in ("Stretto", *PEERS))
            cells.append(f"{rates} ({ratio(row, mode):.2f})")
        print(f"| D {d}{' causal' if causal else ''} | " + " | ".join(cells) + " |")
    ratios = [ratio(row, mode) for row in rows]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    ahead = [sum(one >= least for one in ratios) for least in (1.0, 1.02)]
    told = "sustained" if mode == "ms" else mode
    print(f"\n{told}: ahead of both in {ahead[0]} of {len(ratios)}, by 2 % or more in {ahead[1]};")
    print(f"{min(ratios):.2f} to {max(ratios):.2f}, geometric mean {mean:.3f}.")


if __name__ == "__main__":
    what, first, *rest = sys.argv[1], Path(sys.argv[2]), *sys.argv[3:]
    if what == "checked":
        print(checked(first, *rest))
    elif what == "tuned":
        print(json.dumps(tuned(sys.argv[2], *rest)))
    elif what == "measure":
        measure(first, *map(Path, rest))
    else:
        {"emit": emit, "table": table}[what](first, *rest)
