"""Every shipped kernel, emitted and compiled: `python compile.py PYTHON` (`make test-gpu`).

    examples/*/KERNEL ──► Gluon (here) ──► cubin for sm_90 (by PYTHON, which has Triton)
    examples/*/matmul* ─► Gluon for b200 ─► cubin for sm_100

No GPU is needed. A kernel that spills registers, or of which ptxas says that it serialized products
(C7510 and its neighbours), fails, but for those of `EXCUSED`. So does one whose shared memory, by
the compiler's own figure, is more than there is, more than we say, or less by more than `SPARE`.

    python compile.py --golden            emits only; compares with golden/KERNEL.gluon
    python compile.py --golden --update   rewrites those; measure on a GPU what changes
"""

# ruff: noqa: T201

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from difflib import unified_diff
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from stretto.api.emitting import emit
from stretto.api.kernels import import_kernel
from stretto.compile.emitted import EmitMode
from stretto.emission import Emitted
from stretto.emission.gluon.source import source
from stretto.ir.kernel_programs import kernel_program_text, read_kernel_program
from stretto.machine import load_machine
from stretto.ops.spaces import STAGING

sys.path.insert(0, str(Path(__file__).parents[1]))
from atomic_kernels import GATHERED, SPLIT_K
from exchanging_kernels import BATCHED, TURNED

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ORDINARY = ROOT / "tests" / "ttir" / "ordinary"
PRODUCTS = ROOT / "tests" / "ttir" / "products"
FEW_ROWS = (
    "rows_8_f16",
    "rows_16_f16",
    "rows_64_i8_across",
    "rows_64_e4m3_in_128",
    "decode",
    "batches",
    "inverse",
)
"""Kernels of that folder that are compiled: one of each kind of product."""
GOLDEN = Path(__file__).parent / "golden"
"""The source of each kernel, as it was measured."""
WORKERS = 2
EXCUSED = {
    "cutile-attention_backward": (56, "five products of 128 columns share the registers"),
    "ordinary-scaled": (596, "the shortest; a launch takes the one of 3 stages, which does not"),
    "exchange-batched": (36, "sums in two layouts, and their squares"),
}
"""Kernels that may spill, at most so many bytes, and why."""
SERIALIZED = {"ordinary-scaled": ["C7512"]}
"""Those of which ptxas may say that it serialized products: they spill around them."""


REFUSED = ("picked", "picked_product", "remade", "running")
"""Ordinary kernels that are not emitted, which their tests say."""
BLACKWELL: dict[str, EmitMode] = {
    "triton/matmul_descriptors.ttir": "specialized",
    "triton/matmul_persistent.ttir": "specialized",
    "triton/matmul_fused.ttir": "specialized",
    "triton/matmul_pointers.ttir": "unspecialized",
    "cutile/matmul_bias_silu.tileirbc": "unspecialized",
}
"""Kernels that are compiled for tensor memory as well, each in one mode."""
OTHERS = (
    ("atomics-loop", GATHERED, "h200"),
    ("atomics-split-k", SPLIT_K, "b200"),
    ("exchange-batched", BATCHED, "h200"),
    ("exchange-turned", TURNED, "h200"),
)
"""Kernels that do not ship."""
SPARE = 4_096
"""Bytes of shared memory that a kernel may have less than we say."""
AFTERWARDS = "what is exchanged after the loop takes the place of its tiles, which are dead by then"
IN_PARTS = "the compiler exchanges a tile in more parts than we count"
SPARING = {
    "exchange-turned": IN_PARTS,
    "ordinary-product_added": AFTERWARDS,
    "ordinary-product_columns_added": AFTERWARDS,
}
"""Kernels that may have less still, and why."""
TARGETS = {"h200": 90, "b200": 100}
TURNS = (
    '{src = "scores_2", dst = "scores_3", latency = 0, distance = 0, kind = "order"}',
    '{src = "scores_3", dst = "scores_2", latency = 0, distance = 1, kind = "order"}',
)
"""Two consumers of attention take turns."""


def with_turns(folder: Path) -> Path:
    """Attention as a module whose agents wait for each other."""
    kernel = EXAMPLES / "triton" / "attention_forward_d128.ttir"
    text, _ = import_kernel(kernel, "h200", consumers=2)
    said = 'stretto.machine = "h200"'
    file = folder / "turns.mlir"
    file.write_text(text.replace(said, f"{said}, stretto.dependences = [{', '.join(TURNS)}]"))
    return file


def kernels() -> list[tuple[str, Path, str, EmitMode | None]]:
    """What is compiled: a name, the kernel, the machine, and the mode if one is asked for."""
    files = [*EXAMPLES.glob("triton/*.ttir"), *EXAMPLES.glob("cutile/*.tileirbc")]
    found: list[tuple[str, Path, str, EmitMode | None]] = []
    for file in sorted(files):
        found.append((f"{file.parent.name}-{file.stem}", file, "h200", None))
    for file in sorted(ORDINARY.glob("*.ttir")):
        if file.stem in REFUSED:
            continue
        found.append((f"ordinary-{file.stem}", file, "h200", None))
    found += [(f"products-{name}", PRODUCTS / f"{name}.ttir", "h200", None) for name in FEW_ROWS]
    for name, mode in BLACKWELL.items():
        found.append((f"b200-{Path(name).stem}", EXAMPLES / name, "b200", mode))
    return found


def written(name: str, kernel: Path, machine: str, mode: EmitMode | None, folder: Path) -> Emitted:
    """One kernel's source and what it takes, in a folder."""
    made = emit(kernel, machine, mode=mode).emitted
    room = load_machine(machine).budget(STAGING)
    (folder / f"{name}.py").write_text(made.source, encoding="utf-8")
    meta = {
        "kernel": f"{made.name}_kernel",
        "parameters": made.parameters,
        "descriptors": made.descriptors,
        "warps": made.warps,
        "maxnreg": made.maxnreg,
        "smem": made.smem,
        "room": room.bytes if room is not None else None,
        "capability": TARGETS[machine],
    }
    (folder / f"{name}.json").write_text(json.dumps(meta), encoding="utf-8")
    return made


def compared(
    update: bool, folder: Path, kernel: tuple[str, Path, str, EmitMode | None]
) -> tuple[str, str]:
    """A kernel's name, and how its source differs from the golden one; nothing if it does not.

    So must that of its program, once that was written as MLIR and read back: printing decides
    nothing.
    """
    name, made = kernel[0], written(*kernel, folder)
    if update:
        (GOLDEN / f"{name}.gluon").write_text(made.source, encoding="utf-8")
    return name, differing(name, made.source) or reread(name, made)


def reread(name: str, made: Emitted) -> str:
    """How a kernel is another once its program was written as MLIR and read; nothing if empty."""
    text = kernel_program_text(made.program)
    again = read_kernel_program(f"{name}.mlir", text)
    if source(again) != made.source:
        return f"{name}: a program that was written and read prints otherwise"
    if kernel_program_text(again) != text:
        return f"{name}: a program that was written and read is written otherwise"
    return ""


def differing(name: str, made: str) -> str:
    """How a source differs from the golden one; nothing if it does not."""
    golden = GOLDEN / f"{name}.gluon"
    if not golden.exists():
        return f"{golden.name} is missing"
    lines = golden.read_text(encoding="utf-8").splitlines(), made.splitlines()
    return "\n".join(unified_diff(*lines, f"golden {name}", name, n=1, lineterm=""))


def all_compared(update: bool) -> int:
    """How many sources differ from the golden ones, each printed as a diff."""
    failed = 0
    with tempfile.TemporaryDirectory() as text, Pool(WORKERS) as pool:
        folder = Path(text)
        every = asked(folder)
        for name, diff in pool.imap_unordered(partial(compared, update, folder), every):
            failed += bool(diff)
            print(diff or f"{name}: ok", flush=True)
        stale = {file.stem for file in GOLDEN.glob("*.gluon")} - {name for name, *_ in every}
    for name in sorted(stale):
        print(f"golden/{name}.gluon: no such kernel")
    return failed + len(stale)


def compiled(python: str, name: str, folder: Path) -> dict[str, Any]:
    """What the compiler says of one."""
    command = [python, str(Path(__file__).parent / "cubin.py"), str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"name": name, "error": done.stderr.strip().splitlines()[-1]}
    told = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    diff = differing(name, (folder / f"{name}.py").read_text(encoding="utf-8"))
    more = {"said": told["smem"], "room": told["room"], "diff": diff}
    return {**json.loads(done.stdout.splitlines()[-1]), **more}


def written_and_compiled(
    python: str, folder: Path, kernel: tuple[str, Path, str, EmitMode | None]
) -> dict[str, Any]:
    """One kernel from its file to what the compiler says: kernels take seconds to a minute."""
    made = written(*kernel, folder)
    found = compiled(python, kernel[0], folder)
    return {**found, "diff": found.get("diff") or reread(kernel[0], made)}


def wrong(found: dict[str, Any]) -> str:
    """What is wrong with a compiled kernel; nothing if empty."""
    if "error" in found:
        return str(found["error"])
    most, why = EXCUSED.get(found["name"], (0, ""))
    remarks = found["remarks"]
    spilled, told = found["spilled"], [] if SERIALIZED.get(found["name"]) == remarks else [*remarks]
    if found["diff"]:
        told.append(f"the source is not the golden one:\n{found['diff']}\n")
    if spilled > most:
        told.append(f"spills {spilled} bytes" + (f", excused are {most}: {why}" if why else ""))
    if why and not spilled:
        told.append(f"EXCUSED ({why}) for nothing")
    return "; ".join(told)


def misfit(found: dict[str, Any]) -> str:
    """What is wrong with its shared memory; nothing if empty."""
    if "error" in found:
        return ""
    taken, said = found["smem"], found["said"]
    told = f"takes {taken:,} bytes of shared memory"
    if found["room"] is not None and taken > found["room"]:
        return f"{told} of {found['room']:,}"
    if taken > said or (said - taken > SPARE) != (found["name"] in SPARING):
        return f"{told}, and we say {said:,}"
    return ""


def asked(folder: Path) -> list[tuple[str, Path, str, EmitMode | None]]:
    """All that are compiled; those that do not ship are written into the folder."""
    every = [*kernels(), ("turns-attention", with_turns(folder), "h200", None)]
    for name, kernel, machine in OTHERS:
        file = folder / f"{name}.ttir"
        file.write_text(kernel)
        every.append((name, file, machine, None))
    return every


def main(python: str) -> int:
    """How many fail."""
    begun = time.monotonic()
    failed = 0
    with tempfile.TemporaryDirectory() as text, Pool(WORKERS) as pool:
        folder = Path(text)
        every = asked(folder)
        made = partial(written_and_compiled, python, folder)
        for found in pool.imap(made, every):
            name, why = found["name"], wrong(found)
            large = misfit(found)
            failed += bool(why or large)
            sizes = f"{found.get('registers')} registers, {found.get('products')} products"
            sizes += f", {found.get('smem')} bytes ({found.get('said')} by the model)"
            verdict = "; ".join(filter(None, (large, why))) or "ok"
            if found.get("spilled"):
                sizes += f", {found['spilled']} bytes spilled"
            print(f"{name}: {sizes}: {verdict}", flush=True)
    print(f"{len(every)} kernels, {failed} failed, {time.monotonic() - begun:.0f} s")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("python", nargs="?", help="an interpreter that has Triton")
    parser.add_argument("--golden", action="store_true", help="compare sources, compile nothing")
    parser.add_argument("--update", action="store_true", help="with --golden: rewrite them")
    said = parser.parse_args()
    if not said.golden and said.python is None:
        parser.error("an interpreter that has Triton is needed, or --golden")
    sys.exit(1 if (all_compared(said.update) if said.golden else main(said.python)) else 0)
