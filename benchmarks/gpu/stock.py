"""Triton's own kernels, predicted and measured beside ours: which is faster, and by how much.

    python benchmarks/gpu/stock.py prepare FOLDER DUMPS [NAME...]   no GPU
    python benchmarks/gpu/stock.py measure FOLDER RESULTS.json      on a GPU, without Stretto
    python benchmarks/gpu/stock.py compare FOLDER RESULTS.json      predicted at the clock there

Of the shipped kernels, and of recorded launches of the ecosystem suite (NAME; DUMPS is what
tests/ecosystem/dump.py left), FOLDER has the TTIR, our source, and what both predictions are made
of. Both run on the same made-up tensors.
"""

from __future__ import annotations

import ctypes
import importlib.util
import inspect
import json
import math
import pickle
import re
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
ROUNDS, QUEUED = 7, 4
GATED = 1.1
"""Pairs that differ by more count where signs are compared."""


# Without a GPU -----------------------------------------------------------------------------------


def shipped():
    """Names, dumps, grids, arguments and tensors of the kernels in examples/triton."""
    folder = ROOT / "examples" / "triton"
    half = "float16"
    for size in (1024, 4096, 8192):
        square = [[size, size], [size, 1], half]
        numbers = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), size)
        tiles = (size // 128, size // 128)
        for name, grid in (("matmul_descriptors", tiles), ("matmul_pointers", (math.prod(tiles),))):
            tensors = {"a_ptr": square, "b_ptr": square, "c_ptr": square}
            yield f"{name} {size}", (folder / f"{name}.ttir").read_text(), grid, numbers, tensors
    tensors["bias_ptr"] = [[size], [1], half]
    yield (
        f"matmul_fused {size}",
        (folder / "matmul_fused.ttir").read_text(),
        tiles,
        numbers,
        tensors,
    )
    for width in (64, 128):
        for causal in ("", "_causal"):
            name, rows = f"attention_forward_d{width}{causal}", 16 * 4096
            text = (folder / f"{name}.ttir").read_text()
            numbers = {"length": 4096, "total_rows": rows, "scale": 1.4427 / width**0.5}
            many = [[rows, width], [width, 1], "bfloat16"]
            tensors = {f"{each}_ptr": many for each in "qkvo"}
            tensors["lse_ptr"] = [[rows], [1], "float32"]
            yield name, text, (32, 16), numbers, tensors
    for which in ("kv", "q"):
        name = f"attention_backward_{which}"
        numbers = {"length": 4096, "total_rows": rows, "scale": 1.4427 / 8}
        many = [[rows, 64], [64, 1], "bfloat16"]
        tensors = {f"{each}_ptr": many for each in ("q", "k", "v", "do", "dk", "dv", "dq")}
        tensors |= {f"{each}_ptr": [[rows], [1], "float32"] for each in ("lse", "delta")}
        yield name, (folder / f"{name}.ttir").read_text(), (32, 16), numbers, tensors


def recorded(dumps: Path, names):
    """The same of launches of the ecosystem suite."""
    for file in sorted((ROOT / "tests/ecosystem/launches").glob("*.jsonl")):
        seen = []
        for line in file.read_text("utf-8").splitlines():
            launch = json.loads(line)
            first = name = f"{launch['case']}.{launch['name'].strip('_')}"
            while name in seen:
                more = sum(one.startswith(first + ".") for one in seen)
                name = f"{first}.{seen.count(first) + more}"
            seen.append(name)
            dump = dumps / f"{name}.ttir"
            if name in names and dump.exists():
                told = launch["numbers"], launch["tensors"]
                yield name, dump.read_text("utf-8"), tuple(launch["grid"]), *told


def prepare(folder: Path, dumps: Path, names):
    """Emit ours, compile Triton's own, and keep what is measured and what is predicted by."""
    from dataclasses import replace

    from stretto.compile.candidates import Emitter
    from stretto.compile.choice import chosen
    from stretto.frontends.triton import read_ttir
    from stretto.launching.compiling import compile_emitted, compile_stock

    folder.mkdir(parents=True, exist_ok=True)
    for name, text, grid, numbers, tensors in (*shipped(), *recorded(dumps, names)):
        at = folder / name.replace(" ", "_")
        if at.with_name(at.name + ".json").exists():
            continue
        warps, stages = options(name, dumps)
        try:
            (kernel, *_) = read_ttir(name, text)
            kernel = replace(kernel, warps=warps, stages=stages, target="cuda:90")
            stock = compile_stock(text, warps, stages)
            begin = time.process_time()
            emitter = Emitter(kernel, "h200")
            made = chosen(emitter.candidates(), emitter.machine, compile_emitted)
            took = time.process_time() - begin
        except Exception as error:
            print(f"{name}: {type(error).__name__} {str(error)[:160]}")
            continue
        names = [parameter.name for parameter in kernel.parameters]
        given = {n: v for n, v in numbers.items() if n in names and type(v) in (int, float)}
        about = {
            "name": name, "warps": warps, "stages": stages, "grid": grid, "numbers": numbers,
            "tensors": tensors, "parameters": list(dict.fromkeys(names)), "emit_s": took,
            "spilled": [made.assembled.spilled, stock.spilled],
        }  # fmt: skip
        at.with_name(at.name + ".ttir").write_text(text)
        at.with_name(at.name + ".py").write_text(made.source)
        model = pickle.dumps((made.subject, stock, grid, given))
        at.with_name(at.name + ".model").write_bytes(model)
        at.with_name(at.name + ".json").write_text(json.dumps(about, indent=1) + "\n")
        print(f"{name}: {took:.1f} s", flush=True)


def options(name: str, dumps: Path):
    """Warps and stages that a kernel is compiled with."""
    beside = dumps / f"{name}.json"
    if not beside.exists():
        return 8, 3
    said = json.loads(beside.read_text("utf-8"))
    return said["num_warps"], said["num_stages"]


# On a GPU ----------------------------------------------------------------------------------------


def tensor(torch, shape, strides, kind, seed):
    """Numbers that attention and products take; indices that are all 0."""
    dtype = getattr(torch, kind)
    size = 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    generator = torch.Generator("cuda").manual_seed(seed)
    if kind in ("int8", "uint8"):
        flat = torch.randint(-9, 9, (size,), device="cuda", generator=generator).to(dtype)
    elif dtype.is_floating_point:
        flat = (torch.randn(size, device="cuda", generator=generator) / 4).to(dtype)
    else:
        flat = torch.zeros(size, device="cuda", dtype=dtype)
    return torch.as_strided(flat, shape, strides)


def clock_of():
    """Asks for the clock of the SMs, in MHz."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    handle, clock = ctypes.c_void_p(), ctypes.c_uint()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))

    def asked():
        nvml.nvmlDeviceGetClockInfo(handle, 1, ctypes.byref(clock))
        return clock.value

    return asked


def calls(torch, triton, at: Path, about):
    """Launches of Triton's own kernel and of ours, and the tensors."""
    from triton.backends.compiler import GPUTarget

    given = dict(about["numbers"])
    for seed, (name, told) in enumerate(about["tensors"].items()):
        given[name] = tensor(torch, *told, seed)
    kernel = triton.compile(
        str(at.with_suffix(".ttir")),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": about["warps"], "num_stages": about["stages"]},
    )
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", at.stem), at)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    grid = (*about["grid"], 1, 1)[:3]
    theirs = [given[name] for name in about["parameters"]]
    ours = [given[name] for name in inspect.signature(module.arguments).parameters]
    return (lambda: kernel[grid](*theirs)), (lambda: module.launch(*ours, grid=grid)), given


def measure(folder: Path, results: Path):
    """Both of each case, in turns, and the clock while they run."""
    import torch

    import triton

    triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))
    clock, found = clock_of(), []

    def timed(call, launches):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(4_000_000)
        begin.record()
        for _ in range(launches):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000 / launches

    cases = sorted(folder.glob("*.json"))
    with ThreadPoolExecutor(12) as pool:  # compiled beside each other
        made = [(at, pool.submit(prepared, torch, triton, at)) for at in cases]
    for at, future in made:
        about = json.loads(at.read_text("utf-8"))
        row = {"name": about["name"], "file": at.stem}
        try:
            theirs, ours, given = future.result()
            wrote, row["difference"] = {}, 0.0
            for who, call in (("theirs", theirs), ("ours", ours)):
                call()
                torch.cuda.synchronize()
                wrote[who] = {n: given[n].clone() for n in about["tensors"]}
            for name, kept in wrote["theirs"].items():
                a, b = kept.double(), wrote["ours"][name].double()
                other = ~((a == b) | (a.isnan() & b.isnan()))
                if other.any():
                    far = (a - b).abs()[other].max() / a.nan_to_num().abs().max()
                    row["difference"] = max(row["difference"], float(far))
            times, clocks = {"theirs": [], "ours": []}, {"theirs": [], "ours": []}
            for turn in range(ROUNDS + 2):
                for who, call in (("theirs", theirs), ("ours", ours)):
                    took = timed(call, QUEUED)
                    if turn < 2:
                        continue
                    times[who].append(took)
            for who, call in (("theirs", theirs), ("ours", ours)):
                many = max(1, int(60_000 / statistics.median(times[who])))
                for _ in range(min(many, 800)):
                    call()
                clocks[who] = clock()
                torch.cuda.synchronize()
            for who, each in times.items():
                row[f"{who}_us"], row[f"{who}_mhz"] = statistics.median(each), clocks[who]
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {str(error)[:300]}"
            if "CUDA error" in row["error"] or "illegal" in row["error"]:
                found.append(row)
                break
        found.append(row)
        print(row, flush=True)
        results.write_text(
            json.dumps({"gpu": torch.cuda.get_device_name(), "kernels": found}, indent=1)
        )


def prepared(torch, triton, at: Path):
    """Both kernels of a case, compiled."""
    about = json.loads(at.read_text("utf-8"))
    return calls(torch, triton, at.with_suffix(".py"), about)


# Compared ----------------------------------------------------------------------------------------


def compare(folder: Path, results: Path):
    """What was predicted beside what was measured, at the clock that was measured."""
    from stretto.errors import StrettoError
    from stretto.machine import load_machine
    from stretto.prediction.kernel_time import predict_kernel, predict_stock

    machine, rows = load_machine("h200"), []
    for row in json.loads(results.read_text("utf-8"))["kernels"]:
        if "error" in row:
            print(f"{row['name'][:52]:52} {row['error'][:70]}")
            continue
        subject, stock, grid, given = pickle.loads((folder / f"{row['file']}.model").read_bytes())
        clock = row["theirs_mhz"] or None
        try:
            ours = predict_kernel(subject, machine, tuple(grid), given, clock)
            theirs = predict_stock(subject, stock, machine, tuple(grid), given, clock)
        except StrettoError as error:
            print(f"{row['name'][:52]:52} {str(error)[:90]}")
            continue
        told = {"ours": ours.seconds * 1e6, "theirs": theirs.seconds * 1e6}
        ratio = row["theirs_us"] / row["ours_us"]
        guess = told["theirs"] / told["ours"]
        off = [told[who] / row[f"{who}_us"] - 1 for who in ("theirs", "ours")]
        rows.append((row["theirs_us"], row["ours_us"], told["theirs"], told["ours"]))
        print(
            f"{row['name'][:52]:52}{row['theirs_us']:9.1f}{off[0]:+7.0%}{row['ours_us']:9.1f}"
            f"{off[1]:+7.0%}   faster {ratio:5.2f} predicted {guess:5.2f}"
            f"  {row['theirs_mhz']} {row['ours_mhz']} MHz  diff {row['difference']:.1g}"
        )
    print(f"{len(rows)} kernels, as predicted: {counted(rows)}")
    fitted = []
    for number, (*real, theirs, ours) in enumerate(rows):
        others = rows[:number] + rows[number + 1 :]
        short = [statistics.median(row[2 + n] / row[n] for row in others) for n in (0, 1)]
        fitted.append((*real, theirs / short[0], ours / short[1]))
    print(f"by a factor of Triton's and one of ours, medians of all others: {counted(fitted)}")


def counted(rows):
    """How many are near what was measured, and in how many it is said right which is faster."""
    near = [sum(abs(row[2 + n] / row[n] - 1) <= 0.15 for row in rows) for n in (0, 1)]
    wide = [row for row in rows if max(row[0] / row[1], row[1] / row[0]) > GATED]
    right = sum((row[0] > row[1]) == (row[2] > row[3]) for row in wide)
    told = f"{near[0]} of Triton's own and {near[1]} of ours within 15 %"
    return f"{told}; signs right in {right} of {len(wide)}"


def main():
    command, folder, *rest = sys.argv[1:]
    if command == "prepare":
        prepare(Path(folder), Path(rest[0]), rest[1:])
    elif command == "measure":
        measure(Path(folder), Path(rest[0]))
    else:
        compare(Path(folder), Path(rest[0]))


if __name__ == "__main__":
    main()
