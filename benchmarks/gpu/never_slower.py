"""Launches under the decorator on a GPU: never slower, captured, on streams, tuned.

    python benchmarks/gpu/never_slower.py RESULTS.json [STEP...]

Each kernel is launched as Triton has it and under `@stretto.triton.pipeline`; the trial decides on
these launches; then both take turns once more, and the ratio is told: of the GPU alone, by launches
that are queued while it is busy. Needs torch and Triton.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRATCH = tempfile.mkdtemp()
os.environ["STRETTO_CACHE"] = f"{SCRATCH}/stretto"
os.environ["TRITON_CACHE_DIR"] = f"{SCRATCH}/triton-stock"
os.environ.setdefault("STRETTO_MAKERS", "12")
EXAMPLES = Path(os.environ.get("EXAMPLES", HERE.parent.parent / "examples" / "triton"))
sys.path.insert(0, str(EXAMPLES))

import torch

import stretto.triton
import triton
from stretto.launching.verdicts import forget
from stretto.triton import hooks

BEGUN = time.monotonic()
PATIENCE = float(os.environ.get("PATIENCE", "110"))
"""Seconds for all kernels to be made."""
ROUNDS = 15


def log(*words):
    print(f"{time.monotonic() - BEGUN:6.1f} s", *words, flush=True)


def half(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.float16) / 8


def function(module, name=""):
    return getattr(__import__(module), name or module)


def cases():
    """Name: the kernel, its grid, its arguments, options, and which arguments it writes."""
    found = {}
    for size in (1024, 4096, 8192):
        a, b, c = half(size, size), half(size, size), torch.empty(size, size, device="cuda").half()
        tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
        grid = (size // 128, size // 128)
        three, squares = (size, size, size), (a, b, c)
        found[f"matmul_descriptors {size}"] = (
            *("matmul_descriptors", "", grid, (*squares, *three)), tiles, [2],
        )  # fmt: skip
        found[f"matmul_pointers {size}"] = (
            *("matmul_pointers", "", (grid[0] * grid[1],), (*squares, *three, size, size, size)),
            *({**tiles, "GROUP": 8}, [2]),
        )  # fmt: skip
    bias = half(8192)
    found["matmul_fused 8192"] = (
        *("matmul_fused", "", (64, 64), (a, b, bias, c, *three)),
        *({**tiles, "ACTIVATION": "silu"}, [3]),
    )  # fmt: skip
    for d in (64, 128):
        for causal in (False, True):
            heads, length = 16, 4096
            q, k, v = (half(heads * length, d) for _ in range(3))
            o, lse = torch.empty_like(q), torch.empty(heads * length, device="cuda")
            given = (q, k, v, o, lse, 1.4427 / d**0.5, length, heads * length)
            tiles = {"BLOCK_M": 128, "BLOCK_N": 64, "D": d, "CAUSAL": causal, "num_warps": 8}
            name = f"attention_forward d{d}{' causal' if causal else ''}"
            grid = (length // 128, heads)
            found[name] = ("attention_forward", "", grid, given, tiles, [3])
    x = torch.randn(16384, 8192, device="cuda").half()
    y, gamma, beta = torch.empty_like(x), *(torch.randn(8192, device="cuda") for _ in range(2))
    mean, rstd = (torch.empty(16384, device="cuda") for _ in range(2))
    given = (x, y, gamma, beta, mean, rstd, 8192, 8192, 1e-5)
    found["layer_norm 16384 × 8192"] = ("layer_norm", "", (16384,), given, {"BLOCK": 1024}, [1])
    wide = torch.randn(16384, 1000, device="cuda")
    given = (torch.empty_like(wide), wide, 1000, 1000, 16384, 1000)
    found["softmax 16384 × 1000"] = ("softmax", "", (132 * 8,), given, {"BLOCK": 1024}, [0])
    return found


def fresh(module, name=""):
    kernel = function(module, name)
    return type(kernel)(kernel.fn)


def seconds(call):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def elapsed(call, launches=5):
    """Microseconds on the GPU of a launch, which does not wait for the host."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda._sleep(400_000)  # some 200 µs, while launches are queued
    begin.record()
    for _ in range(launches):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / launches


def dispatches(kernel):
    return [d for r in hooks.DISPATCHES if (d := r()) and d.function is kernel]


def pending(kernel):
    """Whether something of a kernel is still being made."""
    return any(d.pending for d in dispatches(kernel))


def never_slower(results):
    some, stock, ours, first = cases(), {}, {}, {}

    def launch(kernel, case):
        _, _, grid, given, options, _ = case
        kernel[grid](*given, **options)

    log("first launches")
    for name, case in some.items():
        stock[name] = fresh(*case[:2])
        first[name] = [seconds(lambda n=name, c=case: launch(stock[n], c))]
    wanted = {}
    for name, case in some.items():
        launch(stock[name], case)
        torch.cuda.synchronize()
        wanted[name] = [case[3][n].clone() for n in case[5]]
    os.environ["TRITON_CACHE_DIR"] = f"{SCRATCH}/triton"
    warnings.simplefilter("ignore")
    for name, case in some.items():
        ours[name] = stretto.triton.pipeline(fresh(*case[:2]))
        first[name].append(seconds(lambda n=name, c=case: launch(ours[n], c)))
    log("made beside")
    made = {}
    begin = time.monotonic()
    while time.monotonic() - begin < PATIENCE and len(made) < len(some):
        for name, case in some.items():
            if name not in made:
                launch(ours[name], case)
                if not pending(ours[name]):
                    made[name] = time.monotonic() - begin
        torch.cuda.synchronize()
        time.sleep(0.1)
    log("trials", len(made), "of", len(some), "are made")
    longest = {}
    for name, case in some.items():
        longest[name] = max(seconds(lambda n=name, c=case: launch(ours[n], c)) for _ in range(60))
    decided = [one for one in stretto.triton.verdicts() if one.ours_us is not None]
    log("ratios")
    rows = []
    for name, case in some.items():
        times = {"stock": [], "ours": []}
        for turn in range(ROUNDS + 3):
            for who, kernel in (("stock", stock[name]), ("ours", ours[name])):
                took = elapsed(lambda k=kernel, c=case: launch(k, c))
                if turn >= 3:
                    times[who].append(took)
        launch(ours[name], case)
        torch.cuda.synchronize()
        got = [case[3][n] for n in case[5]]
        far = max(
            float((g.float() - w.float()).abs().max() / w.float().abs().max())
            for g, w in zip(got, wanted[name], strict=True)
        )
        medians = {who: statistics.median(each) for who, each in times.items()}
        keys = {d.key for d in dispatches(ours[name])}
        mine = [v for v in decided if v.key in keys and (*v.grid,)[0] == case[2][0]]
        verdict = (mine or [None])[-1]
        rows.append({
            "kernel": name, "stock_us": medians["stock"], "decorated_us": medians["ours"],
            "speedup": medians["stock"] / medians["ours"], "difference": far,
            "runs": verdict.runs if verdict else "none",
            "why": verdict.why if verdict else "",
            "trial_ours_us": verdict.ours_us if verdict else None,
            "trial_stock_us": verdict.theirs_us if verdict else None,
            "first_launch_s": first[name], "made_after_s": made.get(name),
            "longest_later_launch_s": longest[name],
        })  # fmt: skip
    results["kernels"] = rows


def slow_case(results):
    """A candidate that is bad on purpose ends at Triton's."""
    size = 4096
    a, b, c = half(size, size), half(size, size), torch.empty(size, size, device="cuda").half()
    bad = {"consumers": 1, "depth": 1, "wait": True}
    kernel = stretto.triton.pipeline(**bad)(fresh("matmul_descriptors"))
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
    for _ in range(60):
        kernel[32, 32](a, b, c, size, size, size, **tiles)
        torch.cuda.synchronize()
    verdict = stretto.triton.verdicts()[-1]
    results["slow_case"] = verdict.to_json()
    log("bad candidate:", verdict.runs, verdict.ours_us, verdict.theirs_us, verdict.why)


def graphs_and_streams(results):
    size = 2048
    a, b, c = half(size, size), half(size, size), torch.empty(size, size, device="cuda").half()
    wanted = (a.float() @ b.float()).half()
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
    found = {}
    forget()
    for label, options in (("undecided", {}), ("ours", {"trial": False, "wait": True})):
        kernel = stretto.triton.pipeline(**options)(fresh("matmul_pointers"))

        def call(kernel=kernel):
            grid = (256,)
            kernel[grid](a, b, c, size, size, size, size, size, size, **tiles, GROUP=8)

        for _ in range(3):
            call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call()
            call()
        c.zero_()
        graph.replay()
        torch.cuda.synchronize()
        found[label] = float((c.float() - wanted.float()).abs().max() / wanted.float().abs().max())
    results["graphs"] = found
    log("graphs, difference:", found)
    kernel = stretto.triton.pipeline(wait=True)(fresh("matmul_pointers"))
    streams = [torch.cuda.Stream() for _ in range(2)]
    for n in range(80):
        with torch.cuda.stream(streams[n % 2]):
            kernel[(256,)](a, b, c, size, size, size, size, size, size, **tiles, GROUP=8)
    torch.cuda.synchronize()
    kernel[(256,)](a, b, c, size, size, size, size, size, size, **tiles, GROUP=8)
    last = stretto.triton.verdicts()[-1].to_json()
    results["streams"] = last
    log("two streams at once:", last["runs"], last["why"])


def tuning(results):
    size = 4096
    a, b, c = half(size, size), half(size, size), torch.empty(size, size, device="cuda").half()
    configs = [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP": 8}, num_warps=w, num_stages=s
        )
        for m, n in ((128, 128), (128, 256), (64, 128))
        for w in (4, 8)
        for s in (3, 4)
    ]
    times = {}
    for label in ("stock", "decorated"):
        os.environ["TRITON_CACHE_DIR"] = f"{SCRATCH}/tuning-{label}"
        kernel = fresh("matmul_pointers")
        if label == "decorated":
            kernel = stretto.triton.pipeline(kernel)
        tuned = triton.autotune(configs, key=["M"])(kernel)

        def call(tuned=tuned):
            def grid(meta):
                return (triton.cdiv(size, meta["BLOCK_M"]) * triton.cdiv(size, meta["BLOCK_N"]),)

            tuned[grid](a, b, c, size, size, size, size, size, size)

        times[label] = seconds(call)
    results["tuning_s"] = times
    log("autotuner of 12:", times)


def beside_torch(results):
    """Under install, torch.compile makes and runs what it always did."""
    os.environ["TRITON_CACHE_DIR"] = f"{SCRATCH}/inductor"
    stretto.triton.install()
    weights = half(512, 512)

    @torch.compile
    def block(x):
        return torch.nn.functional.gelu(x @ weights).sum(-1) + 1

    x = half(512, 512)
    wanted = torch.nn.functional.gelu(x @ weights).sum(-1) + 1
    results["inductor_difference"] = float((block(x) - wanted).abs().max())
    kernel = stretto.triton.pipeline(fresh("softmax"))

    @torch.compile(fullgraph=True)
    def soft(x):
        y = torch.empty_like(x)
        kernel[(132,)](y, x, 512, 512, 512, 512, BLOCK=512)
        return y * 2

    x = torch.randn(512, 512, device="cuda")
    results["compiled_difference"] = float((soft(x) - 2 * torch.softmax(x, -1)).abs().max())
    stretto.triton.uninstall()
    log("torch.compile:", results["inductor_difference"], results["compiled_difference"])


def compared(results):
    forget()
    size = 1024
    a, b, c = half(size, size), half(size, size), torch.empty(size, size, device="cuda").half()
    kernel = stretto.triton.pipeline(check="first", wait=True, trial=False)(
        fresh("matmul_descriptors")
    )
    tiles = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
    kernel[8, 8](a, b, c, size, size, size, **tiles)
    torch.cuda.synchronize()
    results["check"] = [one.to_json() for one in stretto.triton.verdicts()]
    log("compared:", [(one.runs, one.why) for one in stretto.triton.verdicts()])


def scratch(size, align, stream):
    """Memory for descriptors that Triton makes on the device."""
    del align, stream
    return torch.empty(size, dtype=torch.int8, device="cuda")


def main():
    triton.set_allocator(scratch)
    results = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
    }
    steps = (never_slower, slow_case, graphs_and_streams, tuning, beside_torch, compared)
    for step in steps:
        if sys.argv[2:] and step.__name__ not in sys.argv[2:]:
            continue
        try:
            step(results)
        except Exception as error:
            results[f"{step.__name__} failed"] = f"{type(error).__name__}: {error}"
            log(step.__name__, "FAILED")
            traceback.print_exc()
        Path(sys.argv[1]).write_text(json.dumps(results, indent=1, default=str) + "\n")
    print(
        "kernel                         stock     ours  times  runs     diff  first s      made s"
    )
    for row in results.get("kernels", ()):
        one, two = row["first_launch_s"]
        print(
            f"{row['kernel']:28}{row['stock_us']:9.1f}{row['decorated_us']:9.1f}"
            f"{row['speedup']:7.3f}  {row['runs']:7}{row['difference']:.4f}  {one:.2f} {two:.2f}"
            f"  {row['made_after_s'] or -1:.0f}  {row['why'][:60]}"
        )


if __name__ == "__main__":
    main()
