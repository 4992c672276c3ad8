"""Compiles emitted kernels to cubins, without a GPU; one JSON line a kernel.

`python cubin.py NAME...`: NAME.py is the source, NAME.json what it takes. Run by Triton's Python.
"""

# ruff: noqa: T201

import contextlib
import importlib.util
import io
import json
import re
import sys
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

import triton
from triton import knobs

knobs.compilation.always_compile = True  # a cubin of the cache comes without what ptxas said of it
knobs.nvidia.dump_ptxas_log = True

PRODUCTS = ("wgmma.mma_async", "tcgen05.mma.")
ELEMENTS = {
    "f16": gl.float16, "bf16": gl.bfloat16, "f32": gl.float32, "f64": gl.float64,
    "f8E4M3FN": gl.float8e4nv, "f8E5M2": gl.float8e5, "i1": gl.int1,
    "i8": gl.int8, "i16": gl.int16, "i32": gl.int32, "i64": gl.int64,
}  # fmt: skip


def source_of(path, meta):
    """The kernel and what is known of its parameters, as Triton's compiler takes them."""
    spec = importlib.util.spec_from_file_location("emitted", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, meta["kernel"])
    signature = {}
    for name, said in meta["parameters"].items():
        if name in meta["descriptors"]:
            _, block, element = meta["descriptors"][name]
            layout = gl.NVMMASharedLayout.get_default_for(list(block), ELEMENTS[element])
            said = said.replace("{layout}", repr(layout))  # noqa: PLW2901
        signature[name] = said
    signature["num_warps"] = "constexpr"
    constants = {(kernel.arg_names.index("num_warps"),): meta["warps"]}
    aligned = {
        (kernel.arg_names.index(name),): [["tt.divisibility", 16]]
        for name, type in signature.items()
        if type.startswith(("i32", "*"))
    }
    return GluonASTSource(kernel, signature, constants, aligned)


def compiled(path, meta):
    """What ptxas says of a kernel."""
    options = {"num_warps": meta["warps"]}
    capability = meta.get("capability", 90)
    if meta["maxnreg"]:
        options["maxnreg"] = meta["maxnreg"]
    target = GPUTarget("cuda", capability, 32)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        made = triton.compile(source_of(path, meta), target=target, options=options)
    told = said.getvalue()
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", told)]
    if not registers:
        raise RuntimeError("ptxas says nothing of registers, so it may say nothing of spills")
    return {
        "registers": registers,
        "spilled": sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", told)),
        "remarks": sorted(set(re.findall(r"C75\d\d", told))),
        "products": sum(made.asm["ptx"].count(name) for name in PRODUCTS),
        "smem": made.metadata.shared,
    }


def main():
    for path in map(Path, sys.argv[1:]):
        meta = json.loads(path.with_suffix(".json").read_text())
        try:
            found = compiled(path.with_suffix(".py"), meta)
        except Exception as error:
            while error.__cause__ is not None:
                error = error.__cause__
            found = {"error": f"{type(error).__name__}: {error}"[:600]}
        print(json.dumps({"name": path.name, **found}), flush=True)


if __name__ == "__main__":
    main()
