"""On a GPU: are the emitted kernels right, and how fast beside others?

    python benchmarks/gpu/kernels.py build/gpu/kernels     (anywhere; needs Triton)
    python benchmarks/gpu/measure.py build/gpu/kernels -o results.json

Needs torch and Triton and a Hopper GPU. First every kernel is checked against float64, and what it
is compared with is compiled, in processes that may hang or die without harm to the rest. Then what
is compared runs in interleaved rounds of one run, since the clock falls as the card warms; medians
are told, all rounds are in the JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import statistics
import sys
import threading
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

import isolated

LOG2E = math.log2(math.e)
SILENCE = 120
"""Seconds for one kernel to be made, compiled and checked beside all others."""
ROUNDS = 5
TOLERANCE = 1e-2
PRODUCTS = [(256, 512, 64), (384, 768, 192), (300, 520, 1000), (1024, 2048, 1024)]
LENGTHS = [128, 256, 384, 1024]
"""What is checked: M, N and K of products, rows of attention."""


def load(folder, name):
    """An emitted file as a module."""
    spec = importlib.util.spec_from_file_location(f"emitted_{name}", folder / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


def told(folder, name):
    """What stands beside it."""
    return json.loads((folder / f"{name}.json").read_text())


def error(found, expected):
    """Relative, in the norm."""
    return float((found.double() - expected).norm() / expected.norm())


# Problems -------------------------------------------------------------------------------------


class Attention:
    """Heads of queries, keys and values."""

    def __init__(self, d, causal, heads, length, dtype="float16"):
        import torch

        self.d, self.causal, self.heads, self.length = d, causal, heads, length
        rows = heads * length
        kind = getattr(torch, dtype)
        self.q, self.k, self.v, self.do = (
            torch.randn(rows, d, device="cuda", dtype=kind) for _ in range(4)
        )
        self.o, self.dq, self.dk, self.dv = (
            torch.full_like(self.q, float("nan")) for _ in range(4)
        )
        self.lse = torch.full((rows,), float("nan"), device="cuda")
        self.delta = torch.zeros(rows, device="cuda")
        self.scale = LOG2E / d**0.5
        self.flops = 4 * heads * length * length * d * (0.5 if causal else 1)

    def heads_of(self, tensor):
        return tensor.view(self.heads, self.length, self.d)

    def reference(self):
        """Forward and backward in float64."""
        import torch

        q, k, v = (self.heads_of(t).double().requires_grad_() for t in (self.q, self.k, self.v))
        s = q @ k.transpose(1, 2) / self.d**0.5
        if self.causal:
            hidden = torch.ones(self.length, self.length, device="cuda", dtype=torch.bool).triu(1)
            s = s.masked_fill(hidden, float("-inf"))
        o = s.softmax(-1) @ v
        o.backward(self.heads_of(self.do).double())
        self.lse.copy_((s.logsumexp(-1) * LOG2E).reshape(-1))
        self.delta.copy_((o * self.heads_of(self.do)).sum(-1).reshape(-1))
        return (t.detach().reshape(-1, self.d) for t in (o, q.grad, k.grad, v.grad))

    def forward(self, kernel):
        rows, grid = self.heads * self.length, (self.length // 128, self.heads)
        args = (self.q, self.k, self.v, self.o, self.lse, self.scale, self.length, rows, grid)
        return lambda: kernel.launch(*args)

    def cutile(self, kernel):
        q, k, v, o = (self.heads_of(t) for t in (self.q, self.k, self.v, self.o))
        grid = (self.length // 128, self.heads)
        return lambda: kernel.launch(q, k, v, o, self.scale, grid)

    def backward(self, kernel, which):
        rows, grid = self.heads * self.length, (self.length // 128, self.heads)
        made = (self.dk, self.dv) if which == "kv" else (self.dq,)
        rest = (self.lse, self.delta, self.scale, self.length, rows, grid)
        return lambda: kernel.launch(self.q, self.k, self.v, self.do, *made, *rest)


class Gemm:
    """C = A × Bᵀ."""

    def __init__(self, m, n, k):
        import torch

        self.sizes = (m, n, k)
        self.a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        self.b = torch.randn(n, k, device="cuda", dtype=torch.float16)
        self.c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
        self.flops = 2 * m * n * k

    def launch(self, kernel, blocks=132):
        given = [
            types.SimpleNamespace(base=t, shape=list(t.shape), strides=list(t.stride()))
            for t in (self.a, self.b, self.c)
        ]
        return lambda: kernel.launch(*given, *self.sizes, (blocks,))


class Norm:
    """Rows to be normalized."""

    def __init__(self, rows, columns):
        import torch

        self.rows, self.columns = rows, columns
        self.x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
        self.y = torch.full_like(self.x, float("nan"))
        self.gamma, self.beta = (torch.randn(columns, device="cuda") for _ in range(2))
        self.mean, self.rstd = (torch.zeros(rows, device="cuda") for _ in range(2))

    @property
    def args(self):
        tensors = (self.x, self.y, self.gamma, self.beta, self.mean, self.rstd)
        return (*tensors, self.columns, self.columns, 1e-5)


# Right? -----------------------------------------------------------------------------------------


def check(folder, name):
    """Relative errors, by problem."""
    import torch

    kernel, found = load(folder, name), {}
    if name.startswith("gemm"):
        for sizes in PRODUCTS:
            gemm = Gemm(*sizes)
            gemm.launch(kernel, 5)()
            found[str(sizes)] = error(gemm.c, gemm.a.double() @ gemm.b.double().T)
        return found
    if name.startswith("layer_norm"):
        for sizes in ((3, 2500), (8, 1000), (4, 8192)):
            norm = Norm(*sizes)
            kernel.launch(*norm.args, (norm.rows,))
            wanted = torch.nn.functional.layer_norm(
                norm.x.double(), (norm.columns,), norm.gamma.double(), norm.beta.double(), 1e-5
            )
            found[str(sizes)] = error(norm.y, wanted)
        return found
    d = 64 if "d64" in name else 128
    shipped = name.startswith(("backward", "cutile_attention_forward"))
    half = "bfloat16" if shipped else "float16"
    for length in LENGTHS:
        problem = Attention(d, "causal" in name, 2, length, half)
        o, dq, dk, dv = problem.reference()
        if name.startswith("backward"):
            problem.backward(kernel, "kv" if "_kv" in name else "q")()
            pairs = [(problem.dk, dk), (problem.dv, dv)] if "_kv" in name else [(problem.dq, dq)]
            found[str(length)] = max(error(*pair) for pair in pairs)
        else:
            run = problem.cutile if name.startswith("cutile") else problem.forward
            run(kernel)()
            found[str(length)] = error(problem.o, o)
    return found


def jobs(names, tutorial, check):
    """What is done before anything is measured, the longest first."""
    checks = [("check", name) for name in names]
    if check:
        return checks
    found = [("decorator",)]
    found += [("tutorial", how) for how in ("plain", "specialized", 128, 64)] if tutorial else []
    for causal in (False, True):
        found += [("backward", d, causal, which) for d in (128, 64) for which in ("kv", "q")]
        found += [("forward", d, causal) for d in (128, 64)]
    return [*found, ("norm",), *checks]


def done(folder, job, tutorial):
    """One of them: relative errors of a kernel of ours, nothing of others."""
    import torch

    match job:
        case ("check", name):
            return check(folder, name)
        case ("forward", d, causal):
            runs = stock_forward(Attention(d, causal, 2, 256))
        case ("backward", d, causal, which):
            from backward import stock

            runs = stock(Attention(d, causal, 2, 256, "bfloat16"), which)
        case ("norm",):
            runs = stock_norm(Norm(4, 8192))
        case ("decorator",):
            runs = decorated(Attention(128, False, 2, 256))
        case ("tutorial", int(d)):
            from backward import tutorial_backward

            p = Attention(d, True, 2, 256, "bfloat16")
            runs = {"tutorial": tutorial_backward(tutorial, p)}
        case ("tutorial", how):
            from backward import tutorials

            how = how == "specialized"
            runs = tutorials(tutorial, Attention(128, False, 2, 256), (how,))
    for name, run in runs.items():
        try:
            run()
        except Exception as failed:
            print(f"{name}: {type(failed).__name__}: {failed}"[:200], file=sys.stderr)
    torch.cuda.synchronize()
    return {}


def prepared(asked, names):
    """The kernels that are right; each that is not is told. All jobs, some processes at once."""
    todo, rows, processes = jobs(names, asked.tutorial, asked.check), {}, asked.processes
    words = [str(asked.folder), *(["--check"] if asked.check else [])]
    words += ["--tutorial", str(asked.tutorial)] if asked.tutorial else []

    def part(number):
        mine = todo[number::processes]
        arguments = [*words, "--part", f"{number}/{processes}"]
        for at, row in isolated.rows(__file__, arguments, len(mine), SILENCE):
            rows[mine[at]] = row

    threads = [threading.Thread(target=part, args=(number,)) for number in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    good, errors = [], {}
    for job in todo:
        row = rows.get(job, {"error": "the process died"})
        if job[0] != "check":
            if "error" in row:
                print(f"{job}: {row['error']}", flush=True)
            continue
        name = job[1]
        errors[name] = row
        right = "error" not in row and all(value < TOLERANCE for value in row.values())
        good += [name] if right else []
        worst = row.get("error") or f"{max(row.values()):.1e}"
        print(f"{'right' if right else 'WRONG'}  {name}: {worst}", flush=True)
    return good, errors


# Fast? ------------------------------------------------------------------------------------------


def rounds(runs, seconds=0.12):
    """Milliseconds of each, in interleaved rounds."""
    import torch

    times, often = {}, {}
    for name, run in runs.items():
        try:
            run()
            torch.cuda.synchronize()
            begun = time.time()
            run()
            torch.cuda.synchronize()
        except Exception as failed:
            print(f"left out {name}: {str(failed)[:80]}", flush=True)
            continue
        often[name] = max(3, int(seconds / max(time.time() - begun, 1e-4)))
        times[name] = []
    names = list(times)
    for number in range(ROUNDS):
        # Another one first each time: the card is as warm as what ran before has left it.
        first = number * len(names) // ROUNDS
        for name in names[first:] + names[:first]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(often[name]):
                runs[name]()
            end.record()
            torch.cuda.synchronize()
            times[name].append(begin.elapsed_time(end) / often[name])
    return times


def tell(rows, title, times, flops=None):
    """A line each, and a row for the file."""
    for name, found in times.items():
        middle = statistics.median(found)
        rate = f"{flops / middle / 1e9:8.1f} TFLOPS" if flops else ""
        rows.append({"problem": title, "name": name, "ms": found, "flops": flops})
        print(f"{title:28s} {name:28s} {middle:9.4f} ms {rate}", flush=True)


def stock_forward(p):
    """The same source as Triton compiles it, by its settings."""
    from attention_forward import attention_forward

    return {
        f"stock {columns} w{warps} s{stages}": (
            lambda n=columns, w=warps, s=stages: attention_forward[(p.length // 128, p.heads)](
                p.q, p.k, p.v, p.o, p.lse, p.scale, p.length, p.heads * p.length,
                BLOCK_M=128, BLOCK_N=n, D=p.d, CAUSAL=p.causal, num_warps=w, num_stages=s,
            )
        )
        for columns, warps, stages in ((128, 8, 2), (128, 8, 3), (64, 4, 3), (64, 8, 3))
    }  # fmt: skip


def decorated(p):
    """The same source under `@stretto.triton.pipeline`, launched as its user does."""
    from attention_forward import attention_forward

    try:
        from stretto.triton import pipeline
    except ImportError as missing:
        print(f"left out the decorator: {missing}", flush=True)
        return {}
    kernel = pipeline(strict=True)(attention_forward)
    return {
        "decorator 128": lambda: kernel[(p.length // 128, p.heads)](
            p.q, p.k, p.v, p.o, p.lse, p.scale, p.length, p.heads * p.length,
            BLOCK_M=128, BLOCK_N=128, D=p.d, CAUSAL=p.causal,
        )
    }  # fmt: skip


def attention(folder, good, rows, extra):
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    for d in (128, 64):
        for causal in (False, True):
            names = [n for n in good if n.startswith(f"forward_d{d}") and ("causal" in n) == causal]
            for heads, length in ((64, 4096), (16, 16384)):
                problem = Attention(d, causal, heads, length)
                runs = {name: problem.forward(load(folder, name)) for name in names}
                if d == 128 and not causal:
                    others = [n for n in good if n.startswith("cutile_attention_d128")]
                    runs |= {name: problem.cutile(load(folder, name)) for name in others}
                shaped = [t.view(1, heads, length, d) for t in (problem.q, problem.k, problem.v)]

                def cudnn(shaped=shaped, causal=causal):
                    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
                        torch.nn.functional.scaled_dot_product_attention(*shaped, is_causal=causal)

                runs["cuDNN"] = cudnn
                runs |= stock_forward(problem)
                if d == 128 and not causal:
                    runs |= decorated(problem)
                title = f"attention D{d} N{length}" + (" causal" if causal else "")
                runs |= extra(problem)
                tell(rows, title, rounds(runs), problem.flops)
            problem = Attention(d, causal, 16, 16384, "bfloat16")
            name = f"cutile_attention_forward_d{d}" + ("_causal" if causal else "")
            if name in good:
                title = f"cuTile D{d} N16384" + (" causal" if causal else "")
                run = {name: problem.cutile(load(folder, name))}
                tell(rows, title, rounds(run), problem.flops)


def gemm(folder, good, rows):
    import torch

    problem = Gemm(8192, 8192, 8192)
    runs = {n: problem.launch(load(folder, n)) for n in good if n.startswith("gemm")}
    out = torch.empty_like(problem.c)
    runs["cuBLAS"] = lambda: torch.matmul(problem.a, problem.b.T, out=out)
    tell(rows, "GEMM 8192", rounds(runs), problem.flops)


def stock_norm(p):
    """The same source as Triton compiles it, by its warps."""
    from layer_norm import layer_norm

    return {
        f"stock w{warps}": lambda w=warps: layer_norm[(p.rows,)](*p.args, BLOCK=1024, num_warps=w)
        for warps in (4, 8, 16)
    }


def norm(folder, good, rows):
    p = Norm(16384, 8192)
    kernels = {name: load(folder, name) for name in good if name.startswith("layer_norm")}
    runs = {
        name: lambda kernel=kernel: kernel.launch(*p.args, (p.rows,))
        for name, kernel in kernels.items()
    }
    tell(rows, "layer norm 16384x8192", rounds(runs | stock_norm(p)))


def nothing_more(_problem):
    """No other kernels to run beside."""
    return {}


def main(extra=nothing_more):
    """Check, then compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument(
        "--only", default="", help="of attention, tutorial, gemm, causal, backward, norm"
    )
    parser.add_argument("--tutorial", type=Path, help="Triton's 06-fused-attention.py, to compare")
    parser.add_argument("--check", action="store_true", help="whether they are right, no more")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--part", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    names = sorted(file.stem for file in asked.folder.glob("*.py"))
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("triton") is None:
        print("skipped: torch and Triton are needed")
        return
    import torch

    import triton

    if not torch.cuda.is_available():
        print("skipped: there is no GPU here")
        return
    triton.set_allocator(
        lambda size, _align, _stream: torch.empty(size, device="cuda", dtype=torch.int8)
    )
    if asked.work is not None:
        number, processes = map(int, asked.part.split("/"))
        mine = jobs(names, asked.tutorial, asked.check)[number::processes]
        isolated.work(mine, lambda job: done(asked.folder, job, asked.tutorial), asked.work)
        return
    begun = time.time()
    good, errors = prepared(asked, names)
    print(f"checked and compiled in {time.time() - begun:.0f} s", flush=True)
    if asked.check:
        sys.exit(len(good) != len(names))
    rows = []
    from backward import backward, tutorial_forward

    parts = {
        "attention": lambda: attention(asked.folder, good, rows, extra),
        "gemm": lambda: gemm(asked.folder, good, rows),
        "norm": lambda: norm(asked.folder, good, rows),
        "causal": lambda: backward(asked.folder, good, rows, asked.tutorial, True),
        "backward": lambda: backward(asked.folder, good, rows, asked.tutorial, False),
        "tutorial": lambda: tutorial_forward(asked.folder, good, rows, asked.tutorial),
    }
    for name, run in parts.items():
        if not asked.only or name in asked.only.split(","):
            run()
            save(asked, names, errors, rows)


def save(asked, names, errors, rows):
    """All that was measured so far."""
    import torch

    import triton

    if asked.output:
        whole = {
            "gpu": torch.cuda.get_device_name(),
            "torch": torch.__version__,
            "triton": triton.__version__,
            "rounds": ROUNDS,
            "kernels": {name: told(asked.folder, name) for name in names},
            "errors": errors,
            "times": rows,
        }
        asked.output.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
