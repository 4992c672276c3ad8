"""What the first launch of a kernel costs in processor time: Triton's compilation, and ours.

    python benchmarks/first_launch.py [KERNEL.ttir ...] [-o results.json]      needs Triton, no GPU

For each kernel three fresh processes run on one core, with empty caches, one after the other:

    triton   its stage `ttir` compiled to machine code, as a launch does
    emit     `stretto.emit`: read, scheduled, written
    made     the same with candidates compiled until one does not spill, as makers do

Told is processor time, that of assemblers included: of imports, and of the work. Without names, the
kernels of `examples/triton` that multiply.
"""

# Triton has no types here.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples" / "triton"
KERNELS = (
    "matmul_pointers", "matmul_descriptors", "attention_forward_d64",
    "attention_forward_d64_causal", "attention_forward_d128_causal", "attention_backward_kv",
    "attention_backward_kv_causal",
)  # fmt: skip
WAYS = ("triton", "emit", "made")


def spent():
    """Seconds of the processor, so far, with those of children that have ended."""
    of_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + of_children.ru_utime + of_children.ru_stime


def one(way, file):
    """One kernel, one way, in this process; told on stdout."""
    found, before = {}, spent()
    if way != "emit":
        triton = import_module("triton")
        import_module("triton.backends.nvidia.compiler")
    if way != "triton":
        emit = import_module("stretto.api.emitting").emit
        compile_emitted = import_module("stretto.launching.compiling").compile_emitted
    found["imports_s"] = spent() - before
    before = spent()
    if way == "triton":
        side = json.loads(Path(file).with_suffix(".json").read_text("utf-8"))
        options = {"num_warps": side["num_warps"], "num_stages": side["num_stages"]}
        target = triton.backends.compiler.GPUTarget("cuda", 90, 32)
        triton.compile(file, target=target, options=options)
    else:
        compiled = []

        def assemble(emitted):
            begin = spent()
            try:
                return compile_emitted(emitted)
            finally:
                compiled.append(spent() - begin)

        made = emit(file, "h200", assemble=assemble if way == "made" else None)
        found["ii"] = [analysis.ii for analysis in made.analyses]
        found["consumers"] = made.consumers
        found["compiled"], found["compiling_s"] = len(compiled), sum(compiled)
    found["work_s"] = spent() - before
    print(json.dumps(found))


def measured(way, file):
    """One kernel, one way, in a process of its own on one core."""
    with tempfile.TemporaryDirectory() as scratch:
        caches = {"TRITON_CACHE_DIR": f"{scratch}/t", "STRETTO_CACHE": f"{scratch}/s"}
        core = min(os.sched_getaffinity(0))
        done = subprocess.run(
            [sys.executable, __file__, "--one", way, file],
            env={**os.environ, **caches},
            capture_output=True,
            text=True,
            check=False,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    if done.returncode:
        return {"failed": done.stderr.strip().rpartition("\n")[2]}
    return json.loads(done.stdout.strip().rpartition("\n")[2])


def row(name, found):
    """A line of the table: seconds, and how many times Triton's own the others take."""
    seconds = {way: found[way].get("imports_s", 0) + found[way].get("work_s", 0) for way in WAYS}
    told = " ".join(f"{seconds[way]:6.2f} ({found[way].get('work_s', 0):5.2f})" for way in WAYS)
    own = seconds["triton"] or 1
    return f"{name:32} {told}   x{seconds['emit'] / own:.2f} x{seconds['made'] / own:.2f}"


def main():
    """Each kernel, each way."""
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("-o", dest="results")
    asked = parser.parse_args()
    files = [Path(name) for name in asked.kernels] or [EXAMPLES / f"{n}.ttir" for n in KERNELS]
    print(f"{'kernel':32} {'triton':>14} {'emit':>14} {'made':>14}   processor s (without imports)")
    rows = {}
    for file in files:
        rows[file.stem] = {way: measured(way, str(file)) for way in WAYS}
        print(row(file.stem, rows[file.stem]), flush=True)
        if asked.results:
            Path(asked.results).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
