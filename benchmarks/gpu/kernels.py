"""Emits the kernels that are measured: `python benchmarks/gpu/kernels.py FOLDER [PATTERN]`.

From the shipped Triton sources (TTIR is made by Triton, which needs no GPU) and from the shipped
cuTile dumps. Each kernel is a file NAME.py of Gluon and a file NAME.json of what it was made from.
"""

from __future__ import annotations

import fnmatch
import itertools
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
sys.path.insert(0, str(EXAMPLES / "triton"))

import layer_norm
import matmul_persistent
from dump import ttir

import attention_backward
import attention_forward
from stretto.api.emitting import emit
from stretto.compile.candidates import Emitter
from stretto.compile.emitted import EmittedKernel
from stretto.launching.compiling import compile_emitted

BYTECODE = HERE.parent.parent / "build" / "gpu" / "cubins"
"""Where `tileiras.py export` leaves bytecode of the shipped cuTile attention in fp16."""
OPTIONS = {"num_warps": 4, "num_stages": 3}
TOGETHER = ((4, 8, 2), (8, 8, 2), (8, 4, 2), (8, 1, 1))
"""Layer norm beside what is chosen: warps, and how many iterations of each loop run together."""


def forward(d: int, columns: int, causal: bool) -> dict[str, object]:
    """FlashAttention forward, fp16."""
    signature = {f"{name}_ptr": "*fp16" for name in "qkvo"} | {"lse_ptr": "*fp32"}
    signature |= {"scale": "fp32", "length": "i32", "total_rows": "i32"}
    tiles = {"BLOCK_M": 128, "BLOCK_N": columns, "D": d, "CAUSAL": causal}
    return {
        "kernel": attention_forward.attention_forward,
        "signature": signature,
        "constexprs": tiles,
        "options": OPTIONS,
    }


def backward(which: str, d: int, causal: bool, across: int = 64) -> dict[str, object]:
    """FlashAttention backward, bf16; `across`: how many rows or columns a step goes over."""
    made = attention_backward.DUMPS[f"attention_backward_{which}"]
    along = "BLOCK_M" if which == "kv" else "BLOCK_N"
    tiles = {**made["constexprs"], "D": d, "CAUSAL": causal, along: across}
    return {**made, "constexprs": tiles}


def normed(warps: int) -> dict[str, object]:
    """Layer norm by so many warps."""
    made = layer_norm.DUMPS["layer_norm"]
    return {**made, "options": {**made["options"], "num_warps": warps}}


def gemm(columns: int) -> dict[str, object]:
    """A persistent product, fp16."""
    sizes = {"a_desc": (128, 64), "b_desc": (columns, 64), "c_desc": (128, columns)}
    signature = {name: f"tensordesc<fp16[{m}, {n}]>" for name, (m, n) in sizes.items()}
    tiles = {"BLOCK_M": 128, "BLOCK_N": columns, "BLOCK_K": 64, "GROUP": 8}
    return {
        "kernel": matmul_persistent.matmul_persistent,
        "signature": signature | {"M": "i32", "N": "i32", "K": "i32"},
        "constexprs": tiles,
        "options": OPTIONS,
    }


def configurations() -> dict[str, tuple[dict[str, object], dict[str, Any]]]:
    """By name: what Triton is asked for, and what is asked of `emit`."""
    found: dict[str, tuple[dict[str, object], dict[str, Any]]] = {}
    for d in (128, 64):
        for columns in (128, 64):
            for causal in (False, True):
                name = f"forward_d{d}_{columns}" + ("_causal" if causal else "")
                found[name] = (forward(d, columns, causal), {"consumers": 2})
        for which, causal in itertools.product(("kv", "q"), (False, True)):
            for across in (64, 128) if d == 64 else (64,):
                name = f"backward_{which}_d{d}_{across}" + ("_causal" if causal else "")
                found[name] = (backward(which, d, causal, across), {"consumers": 2})
    for columns in (256, 128):
        for consumers in (1, 2):
            found[f"gemm_{columns}_c{consumers}"] = (gemm(columns), {"consumers": consumers})
    for warps in (4, 8, 16):
        found[f"layer_norm_w{warps}"] = (normed(warps), {})
    for warps, *together in TOGETHER:
        name = f"layer_norm_w{warps}_" + "_".join(map(str, together))
        found[name] = (normed(warps), {"together": tuple(together)})
    found["layer_norm_w4_rolling"] = (normed(4), {"stages": 3})
    return found


def made_of(dump: Path, options: dict[str, Any]) -> EmittedKernel:
    """What is asked for: what `emit` chooses, or one of those that it chooses among."""
    if "together" in options:
        return Emitter(dump).drained(options["together"])
    if "stages" in options:
        return Emitter(dump).candidates(stages=(options["stages"],))[0]
    return emit(dump, **options, assemble=compile_emitted)


def write(folder: Path, name: str, made: EmittedKernel, asked: object) -> None:
    """A kernel, and what is to be known of it."""
    (folder / f"{name}.py").write_text(made.source)
    told = {
        "constexprs": asked,
        "consumers": made.consumers,
        "ii": [analysis.ii for analysis in made.analyses],
        "mii": [analysis.bounds.mii for analysis in made.analyses if analysis.bounds],
        "stages": [analysis.stage_count for analysis in made.analyses],
        "drained": [loop.drained for loop in made.looped],
        "rings": made.emitted.rings,
        "smem": made.emitted.smem,
    }
    (folder / f"{name}.json").write_text(json.dumps(told, indent=1) + "\n")
    print(f"{name}: II {told['ii']}, MII {told['mii']}, stages {told['stages']}", flush=True)


def main() -> None:
    """Write them."""
    folder = Path(sys.argv[1])
    pattern = sys.argv[2] if len(sys.argv) > 2 else "*"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (asked, options) in configurations().items():
        if not fnmatch.fnmatch(name, pattern):
            continue
        text, beside = ttir(**asked)
        with tempfile.TemporaryDirectory() as scratch:
            dump = Path(scratch) / f"{name}.ttir"
            dump.write_text(text)
            dump.with_suffix(".json").write_text(json.dumps(beside))
            write(folder, name, made_of(dump, options), asked["constexprs"])
    dumps = [*(EXAMPLES / "cutile").glob("attention_forward_d*.tileirbc")]
    dumps += BYTECODE.glob("*.tileirbc")
    for dump in sorted(dumps):
        name = f"cutile_{dump.stem}"
        if fnmatch.fnmatch(name, pattern):
            write(folder, name, emit(dump, consumers=2, assemble=compile_emitted), {})


if __name__ == "__main__":
    main()
