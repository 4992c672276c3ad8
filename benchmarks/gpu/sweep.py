"""A sweep of configurations, emitted with clocks in them: cycles an iteration, and time.

    python benchmarks/gpu/sweep.py emit FOLDER [--only TEXT]     (anywhere; needs Triton)
    python benchmarks/gpu/sweep.py run FOLDER -o sweep.jsonl     (on the GPU)

Tiles, ring depths 1 to 6 and one or two consumers of the product, of attention forward, and blocks
and warps of layer norm; and every other kernel that ships. One JSON line a configuration.

Layer norm is emitted a second time without clocks, and that one's time is told: a block is so
short there, and so many are on an SM, that what clocks add to it is felt.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("TRITON_CACHE_DIR", "build/gpu/triton-cache")
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "triton")]

import isolated
import shipped

GEMM_SIZE = 8192
HEADS, LENGTH = 16, 8192
NORM = (16384, 8192)


def configurations():
    """By name: the kernel, its tiles, and what is asked of `emit`."""
    found = {}

    def gemm(m, n, k, consumers, depths):
        for depth in depths:
            for c in consumers:
                name = f"gemm_{m}x{n}x{k}_c{c}_d{depth}"
                found[name] = {"kernel": "gemm", "m": m, "n": n, "k": k, "consumers": c,
                               "depth": depth}  # fmt: skip

    def attention(d, m, n, consumers, depths):
        for depth in depths:
            for c in consumers:
                name = f"attention_d{d}_{m}x{n}_c{c}_d{depth}"
                found[name] = {"kernel": "attention", "d": d, "m": m, "n": n, "consumers": c,
                               "depth": depth}  # fmt: skip

    gemm(128, 128, 64, (1, 2), (1, 2, 3, 4, 5, 6))
    gemm(128, 256, 64, (1, 2), (1, 2, 3))
    gemm(256, 128, 64, (2,), (1, 2, 3))
    gemm(64, 256, 64, (1,), (1, 2, 3, 4))
    gemm(64, 128, 64, (1,), (2, 4, 6))
    gemm(128, 64, 64, (1, 2), (2, 4, 6))
    gemm(128, 128, 128, (1, 2), (1, 2, 3))
    gemm(128, 128, 32, (1, 2), (2, 4, 6))
    gemm(64, 64, 64, (1,), (2, 4, 6))
    attention(128, 128, 128, (1, 2), (1, 2))
    attention(128, 128, 64, (1, 2), (1, 2, 3, 4, 5))
    attention(128, 64, 128, (1,), (1, 2))
    attention(128, 64, 64, (1,), (2, 4))
    attention(128, 128, 32, (2,), (2, 4, 6))
    attention(64, 128, 128, (1, 2), (1, 2, 3, 4))
    attention(64, 128, 64, (1, 2), (1, 2, 4, 6))
    attention(64, 128, 256, (2,), (1, 2))
    attention(64, 64, 128, (1,), (2, 4))
    attention(64, 256, 64, (2,), (2, 4))
    for block in (512, 1024, 2048, 4096, 8192):
        for warps in (1, 2, 4, 8, 16):
            if 2 <= block // (32 * warps) <= 64:
                name = f"norm_{block}_w{warps}"
                found[name] = {"kernel": "norm", "block": block, "warps": warps}
    for name in SHIPPED:
        for consumers in (1, 2):
            found[f"{name}_c{consumers}"] = {"kernel": name, "consumers": consumers}
    # Other schedules of what matters most.
    for d, n, depth in ((128, 128, 2), (128, 64, 5), (64, 128, 4)):
        for stages in (2, 3, 4, 6):
            found[f"schedule_d{d}_128x{n}_s{stages}"] = {
                "kernel": "attention", "d": d, "m": 128, "n": n, "consumers": 2,
                "depth": depth, "stages": stages,
            }  # fmt: skip
    for d in (128, 64):
        for n in (128, 64):
            for stages in (2, 3, 4, 6):
                found[f"open_d{d}_128x{n}_s{stages}"] = {
                    "kernel": "attention", "d": d, "m": 128, "n": n, "consumers": 2,
                    "stages": stages,
                }  # fmt: skip
    for name in ("attention_d128_128x128_c2_d2", "attention_d128_128x64_c2_d4",
                 "attention_d64_128x128_c2_d4", "gemm_128x128x64_c2_d3",
                 "gemm_128x128x64_c1_d4"):  # fmt: skip
        found[f"marks_{name}"] = {**found[name], "tracing": "marks"}
    files = {f"shipped_{name}": {"kernel": "shipped", "file": name} for name in shipped.files()}
    return found | files


SHIPPED = ("causal_d128", "causal_d64", "backward_kv_d128", "backward_q_d128", "backward_kv_d64",
           "backward_q_d64")  # fmt: skip


# Emitting ---------------------------------------------------------------------------------------


def asked_of_triton(c):
    """What Triton is asked for."""
    import kernels
    import layer_norm
    import matmul_persistent

    import attention_forward

    options = {"num_warps": c.get("warps", 4), "num_stages": 3}
    match c["kernel"]:
        case "gemm":
            sizes = {"a_desc": (c["m"], c["k"]), "b_desc": (c["n"], c["k"]),
                     "c_desc": (c["m"], c["n"])}  # fmt: skip
            signature = {name: f"tensordesc<fp16[{m}, {n}]>" for name, (m, n) in sizes.items()}
            tiles = {"BLOCK_M": c["m"], "BLOCK_N": c["n"], "BLOCK_K": c["k"], "GROUP": 8}
            return {"kernel": matmul_persistent.matmul_persistent, "constexprs": tiles,
                    "signature": signature | {"M": "i32", "N": "i32", "K": "i32"},
                    "options": options}  # fmt: skip
        case "attention":
            signature = {f"{name}_ptr": "*fp16" for name in "qkvo"} | {"lse_ptr": "*fp32"}
            signature |= {"scale": "fp32", "length": "i32", "total_rows": "i32"}
            tiles = {"BLOCK_M": c["m"], "BLOCK_N": c["n"], "D": c["d"], "CAUSAL": False}
            return {"kernel": attention_forward.attention_forward, "constexprs": tiles,
                    "signature": signature, "options": options}  # fmt: skip
        case "norm":
            made = layer_norm.DUMPS["layer_norm"]
            return {**made, "constexprs": {"BLOCK": c["block"]}, "options": options}
        case name:
            d = 64 if name.endswith("64") else 128
            if name.startswith("causal"):
                return kernels.forward(d, 128, True)
            return kernels.backward(name.split("_")[1], d, causal=False)


def emitted(name, c):
    """The kernel of one configuration, what it was made from, and the same without clocks."""
    from dump import ttir

    from stretto.api.emitting import emit
    from stretto.compile.candidates import STAGES, Emitter
    from stretto.launching.compiling import compile_emitted

    tracing = c.get("tracing", "loops")
    asked = {"assemble": compile_emitted}
    if "file" in c:
        file = shipped.files()[c["file"]]
        STAGES["specialized"] = (6, 4, 3, 2)
        return emit(file, "h200", **asked, tracing=tracing), "", {}, None
    text, beside = ttir(**asked_of_triton(c))
    with tempfile.TemporaryDirectory() as scratch:
        dump = Path(scratch) / f"{name}.ttir"
        dump.write_text(text)
        dump.with_suffix(".json").write_text(json.dumps(beside))
        if "stages" in c:
            STAGES["specialized"] = (c["stages"],)
        else:
            STAGES["specialized"] = (6, 4, 3, 2)
        options = {n: c[n] for n in ("consumers", "depth", "seed") if n in c}
        if c["kernel"] != "norm":
            return emit(dump, **asked, tracing=tracing, **options), text, beside, None
        plain = emit(dump, **asked, **options)
        every = Emitter(dump, tracing=tracing).candidates()
        return next(one for one in every if one.schedules == plain.schedules), text, beside, plain


def digest(source):
    """By which a kernel is known again."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def emit_all(folder, only):
    """Each into a file, with what is to be known of it beside."""
    from stretto.launching.compiling import compile_emitted

    folder.mkdir(parents=True, exist_ok=True)
    seen = {}
    for name, c in configurations().items():
        if only not in name or (folder / f"{name}.json").exists():
            continue
        begun = time.time()
        try:
            made, text, beside, plain = emitted(name, c)
        except Exception as failed:
            print(f"{name}: {type(failed).__name__}: {failed}"[:160], flush=True)
            continue
        if made.source in seen:
            print(f"{name}: as {seen[made.source]}", flush=True)
            continue
        seen[made.source] = name
        compiled = compile_emitted((plain or made).emitted)
        (folder / f"{name}.py").write_text(made.source)
        if plain is not None:
            (folder / f"{name}.plain.py").write_text(plain.source)
        (folder / f"{name}.ttir").write_text(text)
        (folder / f"{name}.ttir.json").write_text(json.dumps(beside))
        told = {
            **c,
            "ii": [analysis.ii for analysis in made.analyses],
            "stage_count": [analysis.stage_count for analysis in made.analyses],
            "agents": [agent.agent for agent in made.emitted.score],
            "rings": made.emitted.rings,
            "smem": made.emitted.smem,
            "spilled": compiled.spilled,
            "registers": compiled.registers,
            "source": digest(made.source),
            "marks": {
                agent: {
                    loop: [[m.what, m.op, m.thing] for m in marks] for loop, marks in of.items()
                }
                for agent, of in made.emitted.marks.items()
            },
        }
        (folder / f"{name}.json").write_text(json.dumps(told))
        print(f"{name}: II {told['ii']} in {time.time() - begun:.1f} s", flush=True)


# Running ----------------------------------------------------------------------------------------


def load(folder, name):
    """An emitted file as a module."""
    spec = importlib.util.spec_from_file_location(f"emitted_{name}", folder / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


kept = {}


def keep(key, make):
    """Something that several configurations need."""
    if key not in kept:
        kept[key] = make()
    return kept[key]


def problem(c):
    """Arguments, grid, floating point operations, and how far off the answer is."""
    import measure
    import torch

    match c["kernel"]:
        case "shipped":
            return shipped.problem(c["file"])
        case "gemm":
            p = keep("gemm", lambda: measure.Gemm(GEMM_SIZE, GEMM_SIZE, GEMM_SIZE))
            import types

            given = [
                types.SimpleNamespace(base=t, shape=list(t.shape), strides=list(t.stride()))
                for t in (p.a, p.b, p.c)
            ]
            wanted = keep("gemm wanted", lambda: p.a @ p.b.T)
            return (*given, *p.sizes), (132,), p.flops, lambda: measure.error(p.c, wanted.double())
        case "norm":
            p = keep("norm", lambda: measure.Norm(*NORM))

            def off():
                wanted = torch.nn.functional.layer_norm(
                    p.x[:64].double(), (p.columns,), p.gamma.double(), p.beta.double(), 1e-5
                )
                return measure.error(p.y[:64], wanted)

            return p.args, (p.rows,), None, off
        case name:
            d = c.get("d") or (64 if name.endswith("64") else 128)
            causal, back = name.startswith("causal"), name.startswith("backward")
            kind = "bfloat16" if back else "float16"
            p = keep((d, causal, kind), lambda: measure.Attention(d, causal, HEADS, LENGTH, kind))
            rows = p.heads * p.length
            if back:
                p.lse.fill_(12.0)
                made = (p.dk, p.dv) if "_kv" in name else (p.dq,)
                args = (p.q, p.k, p.v, p.do, *made, p.lse, p.delta, p.scale, p.length, rows)
                flops = (4 if "_kv" in name else 3) * 2 * p.heads * p.length**2 * d
                return args, (p.length // 128, p.heads), flops, None
            args = (p.q, p.k, p.v, p.o, p.lse, p.scale, p.length, rows)

            def off():
                q, k, v = (p.heads_of(t)[:1].float() for t in (p.q, p.k, p.v))
                scores = q[:, -256:] @ k.transpose(1, 2) / d**0.5
                if causal:
                    at = torch.arange(p.length, device="cuda")
                    scores = scores.masked_fill(at[None, :] > at[-256:, None], float("-inf"))
                wanted = (scores.softmax(-1) @ v).double()
                return measure.error(p.heads_of(p.o)[:1, -256:], wanted)

            return args, (p.length // c.get("m", 128), p.heads), p.flops, off


def prepared(folder, name):
    """A kernel, what is known of it, its arguments and grid."""
    import torch

    c = json.loads((folder / f"{name}.json").read_text())
    args, grid, flops, off = problem(c)
    blocks = 1
    for n in grid:
        blocks *= n
    each = 16 + (24 * 128 if c.get("tracing") == "marks" else 0)
    trace = torch.zeros(blocks * len(c["agents"]) * each, dtype=torch.int64, device="cuda")
    return load(folder, name), c, args, grid, flops, off, trace


def compile_one(folder, name):
    """Into the cache."""
    kernel, c, args, grid, *_, trace = prepared(folder, name)
    several = [(kernel, (*args, trace))]
    if c["kernel"] == "norm":
        several.append((load(folder, f"{name}.plain"), args))
    for made, given in several:
        jitted = next(v for n, v in vars(made).items() if n.endswith("_kernel"))
        jitted.warmup(*made.arguments(*given), grid=grid, **made.OPTIONS)


def timed(once):
    """Milliseconds of a launch, three times four in a row, behind one more: a GPU that is not busy
    would wait for the host."""
    import torch

    times = []
    for _ in range(3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        once()
        begin.record()
        for _ in range(4):
            once()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 4)
    return times


def run(folder, name):
    """One configuration."""
    import torch

    kernel, c, args, grid, flops, off, trace = prepared(folder, name)
    kernel.launch(*args, trace, grid)
    torch.cuda.synchronize()
    error = off() if off else None
    trace.zero_()
    times = timed(lambda: kernel.launch(*args, trace, grid))
    more = {}
    if c["kernel"] == "norm":
        plain = load(folder, f"{name}.plain")
        plain.launch(*args, grid)
        more, times = {"with_clocks_ms": times}, timed(lambda: plain.launch(*args, grid))
    trace.zero_()
    kernel.launch(*args, trace, grid)
    torch.cuda.synchronize()
    agents = c["agents"]
    found = trace.view(-1, len(agents), trace.numel() // len(agents) // _blocks(grid)).cpu()
    row = {"grid": list(grid), "error_of": error, "ms": times, "flops": flops, **more}
    row["mhz"] = round(
        float(
            (found[:, 0, 1] - found[:, 0, 0]).sum() / (found[:, 0, 3] - found[:, 0, 2]).sum() * 1e3
        )
    )
    row["block"] = float((found[:, :, 1] - found[:, :, 0]).max(1).values.double().median())
    row["loops"] = {}
    for n, agent in enumerate(agents):
        loops = []
        for at in range(4, 12, 2):
            cycles, steps = found[:, n, at].double(), found[:, n, at + 1].double()
            if bool((steps > 0).any()):
                each = (cycles / steps)[steps > 0]
                low, middle, high = torch.quantile(
                    each, torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
                ).tolist()
                loops.append([round(middle, 1), round(low, 1), round(high, 1),
                              float(steps.median())])  # fmt: skip
        row["loops"][agent] = loops
    if c.get("tracing") == "marks":
        row["trace"] = found[:2, :, 16:].view(2, len(agents), 24, 128)[:, :, :, :48].tolist()
    return row


def _blocks(grid):
    blocks = 1
    for n in grid:
        blocks *= n
    return blocks


def main():
    """Emit, or run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("emit", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("sweep.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 2))
    parser.add_argument("--warm", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.what == "emit":
        emit_all(asked.folder, asked.only)
        return
    files = sorted(
        f for f in asked.folder.glob("*.py")
        if asked.only in f.stem and f.with_suffix(".json").exists()
    )  # fmt: skip
    names = [file.stem for file in files]
    words = ["run", str(asked.folder), "--only", asked.only]
    if asked.warm:
        part, parts = map(int, asked.warm.split("/"))
        isolated.warm(names, lambda name: compile_one(asked.folder, name), part, parts)
    elif asked.work is not None:
        isolated.work(names, lambda name: run(asked.folder, name), asked.work)
    else:
        print(f"compiled in {isolated.warmed(__file__, words, asked.processes):.0f} s", flush=True)
        begun = time.time()
        with asked.output.open("w") as file:
            for number, row in isolated.rows(__file__, words, len(names)):
                told = {
                    "name": names[number],
                    **json.loads((asked.folder / f"{names[number]}.json").read_text()),
                }
                file.write(json.dumps({**told, **row}) + "\n")
                file.flush()
                loops = row.get("loops") or row.get("error")
                print(f"{names[number]}: {loops}"[:200], flush=True)
        print(f"{len(names)} configurations in {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
