"""The kernels of Triton's tutorials as dumps, for `make bench-exact KERNELS=FOLDER`.

    python benchmarks/tutorials.py path/to/triton/python/tutorials FOLDER

It needs Triton (the figures in docs/exact.md are of 3.9.0 and the tutorials of August 2026), and
neither a GPU nor PyTorch: the kernels are taken out of the files, what runs them stays there. Block
sizes are those that the files tune over, or of their text.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DUMP = Path(__file__).parent.parent / "examples" / "triton"
SIZES: dict[str, str] = dict.fromkeys(("M", "N", "K"), "i32")
HALVES: dict[str, str] = dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16")
STRIDES: dict[str, str] = dict.fromkeys(("stride_am", "stride_bk", "stride_cm"), "i32")
DENSE: dict[str, Any] = dict.fromkeys(("stride_ak", "stride_bn", "stride_cn"), 1)
TILES = (
    (128, 256, 64),
    (64, 256, 32),
    (128, 128, 32),
    (128, 64, 32),
    (64, 128, 32),
    (128, 32, 32),
    (64, 32, 32),
    (32, 64, 32),
    (128, 128, 128),
    (128, 64, 64),
    (64, 128, 64),
    (128, 32, 64),
)


@dataclass(frozen=True)
class Kernel:
    """One dump: of which file and function, and what it is compiled for."""

    name: str
    file: str
    function: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    warps: int = 4


def kernels() -> Iterator[Kernel]:
    """Those with a loop."""
    rows = ("input_row_stride", "output_row_stride", "n_rows", "n_cols")
    softmax: dict[str, str] = dict.fromkeys(rows, "i32")
    softmax |= {"output_ptr": "*fp32", "input_ptr": "*fp32"}
    fixed: dict[str, Any] = {"BLOCK_SIZE": 1024, "num_stages": 4}
    yield Kernel("softmax", "02-fused-softmax", "softmax_kernel", softmax, fixed, 8)
    yield from _norms()
    yield from _products()
    yield from _attention()


def _norms() -> Iterator[Kernel]:
    file = "05-layer-norm"
    forward = dict.fromkeys(("X", "Y", "W", "B"), "*fp16")
    forward |= {"Mean": "*fp32", "Rstd": "*fp32", "stride": "i32", "N": "i32", "eps": "fp32"}
    yield Kernel("layer_norm", file, "_layer_norm_fwd_fused", forward, {"BLOCK_SIZE": 1024}, 8)
    weights = dict.fromkeys(("DW", "DB", "FINAL_DW", "FINAL_DB"), "*fp16")
    weights |= {"M": "i32", "N": "i32"}
    blocks = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 128}
    yield Kernel("layer_norm_weights", file, "_layer_norm_bwd_dwdb", weights, blocks)


def _products() -> Iterator[Kernel]:
    for m, n, k in TILES:
        fixed = DENSE | _blocks(m, n, k) | {"GROUP_SIZE_M": 8, "ACTIVATION": ""}
        signature = HALVES | SIZES | STRIDES
        name = f"matmul_{m}_{n}_{k}"
        yield Kernel(name, "03-matrix-multiplication", "matmul_kernel", signature, fixed)
    groups = dict.fromkeys(("group_a_ptrs", "group_b_ptrs", "group_c_ptrs"), "*i64")
    groups |= {"group_gemm_sizes": "*i32", "g_lds": "*i32", "group_size": "i32"}
    for name, depth in (("grouped_matmul_kernel", 32), ("grouped_matmul_tma_kernel", 64)):
        fixed = {"NUM_SM": 132, "FP8": False} | _blocks(128, 128, depth)
        yield Kernel(name, "08-grouped-gemm", name, groups, fixed)
    described = {
        f"{x}_desc": f"tensordesc<fp16[128, {n}]>"
        for x, n in zip("abc", (64, 64, 128), strict=True)
    }
    fixed = _blocks(128, 128, 64) | DENSE
    fixed |= {"GROUP_SIZE_M": 8, "NUM_SMS": 132, "FP8_OUTPUT": False, "EPILOGUE_SUBTILE": 1}
    fixed |= {"WARP_SPECIALIZE": False, "FLATTEN": False}
    for tail in ("", "_persistent", "_tma", "_descriptor_persistent"):
        signature = described if tail == "_tma" else HALVES | STRIDES
        function = f"matmul_kernel{tail}"
        yield Kernel(
            f"09_{function}", "09-persistent-matmul", function, signature | SIZES, fixed, 8
        )


def _blocks(m: int, n: int, k: int) -> dict[str, Any]:
    return {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k}


def _attention() -> Iterator[Kernel]:
    file = "06-fused-attention"
    counts = dict.fromkeys(("Z", "H", "N_CTX"), "i32")
    for head, m, n, stage in _forward():
        tiles = {"q": m, "k": n, "v": n, "o": m}
        signature = {f"desc_{x}": f"tensordesc<fp16[{t}, {head}]>" for x, t in tiles.items()}
        signature |= {"sm_scale": "fp32", "M": "*fp32"} | counts
        fixed = {"HEAD_DIM": head, "BLOCK_M": m, "BLOCK_N": n, "STAGE": stage, "IS_HOPPER": True}
        fixed |= {"FP8_OUTPUT": False, "warp_specialize": False}
        name = f"attention_{m}_{n}_{head}{'_causal' if stage == 3 else ''}"
        yield Kernel(name, file, "_attn_fwd", signature, fixed)
    signature = dict.fromkeys(("Q", "K", "V", "DO", "DQ", "DK", "DV"), "*fp16")
    signature |= {"sm_scale": "fp32", "M": "*fp32", "D": "*fp32", "H": "i32", "N_CTX": "i32"}
    signature |= dict.fromkeys(("stride_z", "stride_h", "stride_tok"), "i32")
    for head in (64, 128):
        for causal in (False, True):
            fixed = {"BLOCK_M1": 32, "BLOCK_N1": 128, "BLOCK_M2": 128, "BLOCK_N2": 32}
            fixed |= {"stride_d": 1, "BLK_SLICE_FACTOR": 2, "HEAD_DIM": head, "CAUSAL": causal}
            name = f"attention_backward_{head}{'_causal' if causal else ''}"
            yield Kernel(name, file, "_attn_bwd", signature, fixed)


def _forward() -> Iterator[tuple[int, int, int, int]]:
    """(head, rows of q, rows of k, STAGE) that the file lets pass."""
    for head in (64, 128):
        for m in (64, 128):
            for n in (32, 64, 128):
                if n <= head:
                    yield head, m, n, 1
                if n <= min(head, m):
                    yield head, m, n, 3


def kernels_alone(file: Path, folder: Path) -> Any:
    """A module that has the kernels of a file, and nothing that runs them."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    jit = ast.parse("triton.jit", mode="eval").body
    kept: list[ast.FunctionDef] = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(d).startswith("triton.jit") for d in node.decorator_list
        ):
            node.decorator_list = [jit]
            kept.append(node)
    alone = folder / f"{file.stem.replace('-', '_')}_kernels.py"
    head = "import triton\nimport triton.language as tl\n\n\n"
    alone.write_text(head + "\n\n\n".join(map(ast.unparse, kept)) + "\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(alone.stem, alone)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[alone.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> int:
    """Write them."""
    tutorials, folder = map(Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(DUMP))
    dump = importlib.import_module("dump")
    for k in kernels():
        function = getattr(kernels_alone(tutorials / f"{k.file}.py", folder), k.function)
        names: list[str] = function.arg_names
        signature = {name: k.signature[name] for name in names if name in k.signature}
        fixed = {name: k.constexprs[name] for name in names if name not in signature}
        text, beside = dump.ttir(function, signature, fixed, {"num_warps": k.warps})
        (folder / f"{k.name}.ttir").write_text(text, encoding="utf-8")
        (folder / f"{k.name}.json").write_text(json.dumps(beside), encoding="utf-8")
        print(k.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
