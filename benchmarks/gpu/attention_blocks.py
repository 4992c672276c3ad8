"""Attention forward by persistent blocks, beside cuDNN and FlashAttention 3, over 20 sizes.

    attention_blocks.py emit build/gpu/blocks             (needs Triton)
    attention_blocks.py measure build/gpu/blocks out.jsonl fa3.so  (GPU; 2 min)
    attention_blocks.py table out.jsonl                   (prints the page's)

16,384 tokens in all, hidden size 2,048, fp16. Each answer is first held against float64. What is
compared runs in one process, in rounds whose order is drawn anew from the round's number, each turn
50 ms back to back; launches are bound before. Medians are told, all rounds are in the file.
FlashAttention 3 is a library that defines `_vllm_fa3_C::fwd`, called in its variable-length form.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

TOKENS, HIDDEN = 16_384, 2_048
LENGTHS = (1_024, 2_048, 4_096, 8_192, 16_384)
ROUNDS, TURN = 7, 50
PEERS = ("cuDNN", "FlashAttention 3")
CHOSEN = {
    (128, False): (128, 128, 2),
    (128, True): (128, 128, 2),
    (64, False): (256, 64, 4),
    (64, True): (128, 128, 2),
}
"""By D and mask: rows and columns of a tile, and consumers."""


def emit(folder):
    """Write the kernels."""
    from dump import ttir

    import attention_forward
    from stretto.api.emitting import emit as emitted
    from stretto.launching.compiling import compile_emitted

    folder.mkdir(parents=True, exist_ok=True)
    signature = {f"{name}_ptr": "*fp16" for name in "qkvo"} | {"lse_ptr": "*fp32"}
    signature |= {"scale": "fp32", "length": "i32", "total_rows": "i32"}
    for (d, causal), (rows, columns, consumers) in CHOSEN.items():
        tiles = {"BLOCK_M": rows, "BLOCK_N": columns, "D": d, "CAUSAL": causal}
        kernel, options = attention_forward.attention_forward, {"num_warps": 4, "num_stages": 3}
        text, beside = ttir(kernel=kernel, signature=signature, constexprs=tiles, options=options)
        with tempfile.TemporaryDirectory() as scratch:
            dump = Path(scratch) / "forward.ttir"
            dump.write_text(text)
            dump.with_suffix(".json").write_text(json.dumps(beside))
            wanted = {"consumers": consumers, "blocks": "persistent"}
            made = emitted(dump, "h200", **wanted, assemble=compile_emitted)
        (folder / f"{called(d, causal)}.py").write_text(made.source)
        print(called(d, causal), [a.ii for a in made.analyses], flush=True)


def called(d, causal):
    """A kernel's file."""
    return f"blocks_d{d}" + ("_causal" if causal else "")


def bound(kernel, problem, rows):
    """A launch that asks nothing of its arguments any more."""
    args = kernel.arguments(
        problem.q, problem.k, problem.v, problem.o, problem.lse, problem.scale, problem.length,
        problem.heads * problem.length,
    )  # fmt: skip
    blocks, tiles = kernel.work((problem.length // rows, problem.heads))
    compiled = kernel.attention_forward_kernel[blocks](*args, *tiles, **kernel.OPTIONS)
    run, warps = compiled[(*blocks, 1, 1)[:3]], kernel.OPTIONS["num_warps"]
    return lambda: run(*args, *tiles, warps)


def measure(folder, output, library):
    """All sizes."""
    import attention_grid
    import measure as common
    import torch

    operator = attention_grid.flash_attention_3(library)
    output.unlink(missing_ok=True)
    for d, causal in CHOSEN:
        kernel, rows = common.load(folder, called(d, causal)), CHOSEN[d, causal][0]
        small = common.Attention(d, causal, 37, 1_536)
        exact, *_ = small.reference()
        bound(kernel, small, rows)()
        torch.cuda.synchronize()
        error = common.error(small.o, exact)
        assert error < attention_grid.TOLERANCE, (d, causal, error)
        for length in LENGTHS:
            torch.manual_seed(0)
            problem = common.Attention(d, causal, TOKENS // length * (HIDDEN // d), length)
            runs = {"Stretto": bound(kernel, problem, rows)}
            others = attention_grid.runs_of(problem, kernel, operator)
            runs |= {name: run for name, run in others.items() if name in PEERS}
            guess = {name: attention_grid.seconds_of(run, 3) for name, run in runs.items()}
            times = {name: [] for name in runs}
            for number in range(ROUNDS):
                names = list(runs)
                random.Random(number).shuffle(names)
                for name in names:
                    runs[name]()
                    many = max(2, int(TURN / 1e3 / guess[name]))
                    times[name].append(attention_grid.seconds_of(runs[name], many) * 1e3)
            row = {"d": d, "causal": causal, "length": length, "error": error, "ms": times}
            with output.open("a") as file:
                file.write(json.dumps(row) + "\n")


def rate(row, name):
    """TFLOPS."""
    d, length = row["d"], row["length"]
    flops = (
        4 * TOKENS // length * (HIDDEN // d) * length * length * d * (0.5 if row["causal"] else 1)
    )
    return flops / statistics.median(row["ms"][name]) / 1e9


def ratio(row):
    """Stretto's rate by the better of the others'."""
    return rate(row, "Stretto") / max(rate(row, name) for name in PEERS if name in row["ms"])


def table(file):
    """The page's table, and what it comes to."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    found = {(row["d"], row["causal"], row["length"]): row for row in rows}
    print("| TFLOPS: Stretto / cuDNN / FlashAttention 3 | " + " | ".join(map(str, LENGTHS)) + " |")
    print("|---" * (1 + len(LENGTHS)) + "|")
    for d, causal in itertools.product((128, 64), (False, True)):
        cells = []
        for length in LENGTHS:
            row = found[d, causal, length]
            rates = " / ".join(f"{rate(row, name):.0f}" for name in ("Stretto", *PEERS))
            cells.append(f"{rates} ({ratio(row):.2f})")
        print(f"| D {d}{' causal' if causal else ''} | " + " | ".join(cells) + " |")
    ratios = [ratio(row) for row in rows]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    ahead = [sum(one >= least for one in ratios) for least in (1.0, 1.02)]
    print(f"\nAhead of both in {ahead[0]} of {len(ratios)} cells, by 2 % or more in {ahead[1]};")
    print(f"{min(ratios):.2f} to {max(ratios):.2f}, geometric mean {mean:.3f}.")


if __name__ == "__main__":
    what, first, *rest = sys.argv[1], *map(Path, sys.argv[2:])
    {"emit": emit, "measure": measure, "table": table}[what](first, *rest)
