"""Kernels of public libraries on a GPU: what we emit beside Triton's own, on the same arguments.

    python benchmarks/gpu/ecosystem.py pack BUILD FOLDER         here, of what run.py left behind
    python benchmarks/gpu/ecosystem.py run FOLDER RESULTS.json   there: torch, Triton and a GPU
    python benchmarks/gpu/ecosystem.py table RESULTS.json          the tables of docs/ecosystem.md

A recorded launch says shapes, strides and elements, what short arrays of integers hold, and the
grid. Floats are drawn by a seeded generator; both kernels get copies of the same arguments. First
many processes compile and compare, then one alone measures: rounds in which the two take turns in
an order that is drawn. A kernel that hangs or faults takes its process along, and the next goes on.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import queue
import random
import statistics
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPEATS = 30
"""Launches of ours whose results are compared bit by bit."""
ROUNDS = 15
LAUNCHES = 5
"""Of a kernel in a row, in a round."""
PATIENCE = 90
"""Seconds after which a kernel that says nothing is given up."""
PROCESSES = 12
PAD = 1 << 16
"""Elements behind an array, so that a kernel which reads on reads something."""
SCALE = 0.25
"""Standard deviation of drawn floats: what exponentials of sums of them still are numbers of."""
BEGUN = time.monotonic()


def log(*words):
    print(f"{time.monotonic() - BEGUN:6.1f} s", *words, flush=True)


# Packing ----------------------------------------------------------------------------------------


def pack(build, folder):
    """Sources, TTIR and launches of the kernels that came as far as to compile."""
    sys.path.insert(0, str(HERE.parent.parent / "tests" / "ecosystem"))
    from dump import named, prepare

    prepare(torch=False)
    table = json.loads((HERE.parent.parent / "tests/ecosystem/table.json").read_text("utf-8"))
    reached = {row["name"]: row for row in table if not row.get("triton")}
    folder.mkdir(parents=True, exist_ok=True)
    packed = {}
    for name, launch in named([]).items():
        source, ttir = build / f"{name}.emitted.py", build / f"{name}.ttir"
        row = reached.get(name, {})
        if row.get("level") not in ("compiled", "no extra spill") or not source.exists():
            continue
        arguments = []
        for number, (argument, kind) in enumerate(launch.signature.items()):
            if kind == "constexpr" or str(number) in launch.constexprs:
                continue
            known = launch.tensors.get(argument), launch.integers.get(argument)
            arguments.append([argument, kind, *known, launch.numbers.get(argument)])
        options = json.loads((build / f"{name}.json").read_text("utf-8"))
        packed[name] = {
            "arguments": arguments,
            "grid": [*launch.grid, 1, 1][:3],
            "options": {k: options[k] for k in ("num_warps", "num_stages")},
            "products": row.get("products", 0),
            "by": row.get("overlap", ""),
            "spilled": [row.get("spilled"), row.get("own")],
        }
        if "maxnreg" in launch.options:
            packed[name]["options"]["maxnreg"] = launch.options["maxnreg"]
        (folder / source.name).write_text(source.read_text("utf-8"), "utf-8")
        (folder / ttir.name).write_text(ttir.read_text("utf-8"), "utf-8")
    (folder / "launches.json").write_text(json.dumps(packed), "utf-8")
    print(len(packed), "kernels")


# Arguments --------------------------------------------------------------------------------------


class NotLaunchedError(Exception):
    """Why a launch cannot be made again of what was recorded."""


def _array(torch, place, kind, told, held):
    """A tensor of a recorded shape, and how it is filled."""
    shape, strides, element = told
    if kind.startswith("tensordesc"):
        raise NotLaunchedError("takes a descriptor")
    dtype = getattr(torch, element)
    size = max(1, 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True)))
    drawn = torch.Generator(device="cuda").manual_seed(place)
    if held is None and dtype.is_floating_point:
        flat = torch.randn(size + PAD, generator=drawn, device="cuda") * SCALE
        flat = flat.to(dtype)
    elif held is None:
        low, high = {"int8": (-128, 128), "uint8": (0, 256), "bool": (0, 2)}.get(element, (0, 1))
        flat = torch.randint(low, high, (size + PAD,), generator=drawn, device="cuda").to(dtype)
    elif isinstance(held, dict):
        low, high = held["least"], held["greatest"] + 1
        flat = torch.randint(low, high, (size + PAD,), generator=drawn, device="cuda").to(dtype)
    else:
        flat = torch.zeros(size + PAD, dtype=dtype, device="cuda")
        whole = torch.tensor(held, device="cuda").to(dtype).reshape(shape)
        flat.as_strided(shape, strides).copy_(whole)
    return flat


def arguments_of(torch, launch):
    """Flat tensors by their names, and what makes of them the arguments of a launch."""
    arrays = {}
    for place, (name, kind, told, held, _) in enumerate(launch["arguments"]):
        if told is not None:
            arrays[name] = _array(torch, place, kind, told, held)
            if name.endswith("_ptrs"):
                raise NotLaunchedError("takes addresses of arrays")
        elif kind.startswith(("*", "tensordesc", "tuple")):
            raise NotLaunchedError(f"its `{name}` is not recorded")

    def given(some):
        return [
            some[name] if told is not None else number
            for name, _, told, _, number in launch["arguments"]
        ]

    return arrays, given


def loaded(folder, name):
    """The emitted module of a kernel."""
    spec = importlib.util.spec_from_file_location(
        name.replace(".", "_"), folder / f"{name}.emitted.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def both(folder, name, launch):
    """Two callables, of Triton's own kernel and of ours, on a list of arguments."""
    from triton.backends.compiler import GPUTarget

    import triton

    stock = triton.compile(
        str(folder / f"{name}.ttir"), target=GPUTarget("cuda", 90, 32), options=launch["options"]
    )
    module = loaded(folder, name)
    (kernel,) = [v for k, v in vars(module).items() if k.endswith("_kernel") and hasattr(v, "run")]
    grid = tuple(launch["grid"])

    def theirs(given):
        def launch():
            stock[grid](*given)
            return stock

        return launch

    def ours(given):
        why = module.fits(*given) if hasattr(module, "fits") else ""
        if why:
            raise NotLaunchedError(why)
        made = module.arguments(*given)
        return lambda: kernel[grid](*made, **module.OPTIONS)

    return theirs, ours


# Comparing --------------------------------------------------------------------------------------


def compared(folder, name, launch):
    """How far ours is from Triton's own, and whether it says the same each time."""
    import torch

    start, given = arguments_of(torch, launch)
    theirs, ours = both(folder, name, launch)

    def after(call):
        mine = {k: v.clone() for k, v in start.items()}
        call(given(mine))()
        torch.cuda.synchronize()
        return mine

    wanted = after(theirs)
    again = after(theirs)
    got = after(ours)
    changed = [k for k in wanted if not same(torch, wanted[k], start[k])]
    row = {"changed": changed, "difference": 0.0, "worst": "", "not_numbers": 0}
    row["stock_repeats"] = all(same(torch, wanted[k], again[k]) for k in wanted)
    for key in wanted:
        far, nans = distance(torch, got[key], wanted[key])
        own, _ = distance(torch, again[key], wanted[key])
        row["not_numbers"] += nans
        row["own_difference"] = max(row.get("own_difference", 0.0), own)
        if far > row["difference"]:
            row["difference"], row["worst"] = far, f"{key} ({wanted[key].dtype})"
    row["bit_equal"] = all(same(torch, got[k], wanted[k]) for k in wanted)
    row["repeats"] = 0
    for _ in range(REPEATS):
        mine = after(ours)
        row["repeats"] += all(same(torch, mine[k], got[k]) for k in got)
    return row


def same(torch, one, other):
    return torch.equal(one.view(torch.uint8), other.view(torch.uint8))


def distance(torch, got, wanted):
    """The greatest difference by the greatest value; where one is no number, both are to be."""
    if not wanted.dtype.is_floating_point:
        return float((got.long() - wanted.long()).abs().max()), 0
    got, wanted = got.float(), wanted.float()
    finite = torch.isfinite(wanted)
    if not torch.equal(finite, torch.isfinite(got)):
        return float("inf"), int((~finite).sum())
    if not finite.any():
        return 0.0, int((~finite).sum())
    most = float(wanted[finite].abs().max())
    far = float((got[finite] - wanted[finite]).abs().max())
    return far / max(most, 1e-30), int((~finite).sum())


def measured(folder, name, launch):
    """Medians of microseconds, in turns."""
    import torch

    start, given = arguments_of(torch, launch)
    theirs, ours = both(folder, name, launch)
    calls = {
        who: make(given({k: v.clone() for k, v in start.items()}))
        for who, make in (("stock", theirs), ("ours", ours))
    }
    row = {f"{who}_{key}": n for who in calls for key, n in takes(calls[who]()).items()}
    times, order = {"stock": [], "ours": []}, random.Random(0)
    for turn in range(ROUNDS + 2):
        for who in order.sample(sorted(calls), 2):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(4_000_000)  # some 2 ms, while launches are queued
            begin.record()
            for _ in range(LAUNCHES):
                calls[who]()
            end.record()
            end.synchronize()
            if turn >= 2:
                times[who].append(begin.elapsed_time(end) * 1000 / LAUNCHES)
    return row | {f"{who}_us": round(statistics.median(each), 2) for who, each in times.items()}


REGISTERS, SHARED, WARPS, RESERVED = 65536, 233472, 64, 1024
"""Of an SM; and bytes of shared memory that a block takes beside its own."""


def takes(compiled):
    """Registers of a thread, shared memory and warps of a kernel, and blocks that an SM holds."""
    registers, shared = compiled.n_regs, compiled.metadata.shared
    warps = compiled.n_max_threads and compiled.metadata.num_warps
    room = min(REGISTERS // (32 * warps * registers), SHARED // (shared + RESERVED), WARPS // warps)
    return {"registers": registers, "shared": shared, "warps": warps, "resident": room}


# Processes --------------------------------------------------------------------------------------


def worker(work, folder, launches, names, told):
    """Take names until there are none; say what became of each."""
    import torch

    torch.cuda.init()
    while True:
        try:
            name = names.get(timeout=2)
        except queue.Empty:
            break
        told.put((os.getpid(), name, None))
        try:
            row = work(folder, name, launches[name])
        except NotLaunchedError as error:
            row = {"left": str(error)}
        except Exception as error:
            row = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        told.put((os.getpid(), name, row))
        torch.cuda.empty_cache()
        if "CUDA error" in row.get("error", "") or "Triton Error" in row.get("error", ""):
            break  # nothing can be launched from this process any more


class Crew:
    """Processes that do one kind of work for each kernel; one that hangs or ends is replaced."""

    def __init__(self, work, folder, launches, some):
        self._context = multiprocessing.get_context("spawn")
        self._names, self._told = self._context.Queue(), self._context.Queue()
        self._given = (work, folder, launches, self._names, self._told)
        self._some, self._running, self._at = some, [], {}
        self.rows = {}
        for name in some:
            self._names.put(name)

    def start(self):
        one = self._context.Process(target=worker, args=self._given)
        one.start()
        self._running.append(one)

    def work(self, processes):
        for _ in range(processes):
            self.start()
        while len(self.rows) < len(self._some) and self._running:
            try:
                who, name, row = self._told.get(timeout=0.5)
            except queue.Empty:
                for one in list(self._running):
                    self._look_after(one)
                continue
            self._at[who] = (name, time.monotonic()) if row is None else None
            if row is not None:
                self._answer(name, row)
        for one in self._running:
            one.join(10)
            if one.is_alive():
                one.kill()
        return self.rows

    def _answer(self, name, row):
        self.rows[name] = row
        log(name, json.dumps(row)[:240])

    def _look_after(self, one):
        busy = self._at.get(one.pid)
        late = busy is not None and time.monotonic() - busy[1] > PATIENCE
        if late:
            one.kill()
            one.join()
        if one.is_alive():
            return
        self._running.remove(one)
        if busy is not None and busy[0] not in self.rows:
            why = f"hangs: no answer for {PATIENCE} s" if late else "its process ended"
            self._answer(busy[0], {"error": why})
        if len(self.rows) + len(self._running) < len(self._some):
            self.start()


def run(folder, results, only=()):
    """Compare all, then measure those that are right."""
    launches = json.loads((folder / "launches.json").read_text("utf-8"))
    some = [name for name in launches if not only or name.startswith(tuple(only))]
    found = Crew(compared, folder, launches, some).work(min(PROCESSES, len(some)))
    write(results, launches, found)
    right = [name for name in some if "difference" in found[name]]
    times = Crew(measured, folder, launches, right).work(1)
    for name, row in times.items():
        found[name].update(row)
    write(results, launches, found)
    print_summary(found)


def write(results, launches, found):
    import torch

    import triton

    whole = {
        "gpu": torch.cuda.get_device_name(),
        "triton": triton.__version__,
        "torch": torch.__version__,
        "kernels": [
            {
                "kernel": name, "products": launches[name]["products"],
                "by": launches[name]["by"], **found[name],
            }
            for name in sorted(found)
        ],
    }  # fmt: skip
    results.write_text(json.dumps(whole, indent=1), "utf-8")


SLOWER = 0.98
"""Of the speed of Triton's own: what is below has a row that says why."""


def table(results):
    """Ratios of all, and a row for each kernel that is slower."""
    kernels = json.loads(results.read_text("utf-8"))["kernels"]
    timed = [row for row in kernels if "ours_us" in row]
    print("| kernels | measured | median | geometric mean | worst | best | slower than 0.98 |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for told, products in (("with products", True), ("with loops, no product", False)):
        ratios = sorted(ratio(row) for row in timed if bool(row["products"]) == products)
        slower = sum(one < SLOWER for one in ratios)
        shown = statistics.median(ratios), statistics.geometric_mean(ratios), ratios[0], ratios[-1]
        cells = " | ".join(f"{one:.2f}" for one in shown)
        print(f"| {told} | {len(ratios)} | {cells} | {slower} |")
    print(
        "\n| kernel | by | Triton's own, µs | ours, µs | ratio | why |\n|---|---|--:|--:|--:|---|"
    )
    for row in sorted(timed, key=ratio):
        if ratio(row) < SLOWER:
            times = f"{row['stock_us']:.1f} | {row['ours_us']:.1f} | {ratio(row):.2f}"
            print(f"| {row['kernel']} | {row['by']} | {times} | {why(row)} |")


def ratio(row):
    return row["stock_us"] / row["ours_us"]


def why(row):
    """What of two kernels is different that lets one wait longer."""
    ours, theirs = row["ours_resident"], row["stock_resident"]
    if not row["changed"]:
        return "the launch has nothing to do: it is the time to begin a block"
    if ours < theirs:
        held = f"{row['ours_warps']} warps of {row['ours_registers']} registers"
        held = f"{held}, {row['ours_shared'] // 1024} KiB"
        return f"{blocks(ours)} an SM at a time, of Triton's own {theirs}: {held}"
    if row["by"] == "together":
        return "steps that run together wait for the slowest load of all"
    if row["products"]:
        return (
            f"as many blocks an SM; {row['ours_warps']} warps where Triton has {row['stock_warps']}"
        )
    return "as many blocks an SM; loads a step ahead bring nothing here"


def blocks(count):
    return f"{count} block{'s' if count > 1 else ''}"


def print_summary(found):
    both = [row for row in found.values() if "ours_us" in row and "stock_us" in row]
    if both:
        ratios = sorted(row["stock_us"] / row["ours_us"] for row in both)
        told = f"median {statistics.median(ratios):.3f}, worst {ratios[0]:.3f}"
        print(f"{len(both)} measured: {told} times as fast")
    wrong = [n for n, row in found.items() if row.get("error") or row.get("difference", 0) > 0.02]
    print(len(found), "kernels; to look at:", wrong)


if __name__ == "__main__":
    step, *paths = sys.argv[1:]
    if step == "pack":
        pack(*map(Path, paths))
    elif step == "table":
        table(Path(paths[0]))
    else:
        run(Path(paths[0]), Path(paths[1]), paths[2:])
