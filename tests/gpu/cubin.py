"""Compiles emitted kernels to cubins, without a GPU; one JSON line a kernel.

`python cubin.py NAME...`: NAME.py is the source, NAME.json what it takes. Run by Triton's Python.
"""

# ruff: noqa: T201

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

import triton

PRODUCTS = ("wgmma.mma_async", "tcgen05.mma.")
ELEMENTS = {"f16": gl.float16, "bf16": gl.bfloat16, "f32": gl.float32}


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
    made = triton.compile(source_of(path, meta), target=target, options=options)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "kernel.ptx"
        text.write_text(made.asm["ptx"])
        command = [
            get_ptxas(capability).path,
            "-v",
            f"--gpu-name=sm_{capability}a",
            text,
            "-o",
            Path(folder) / "kernel.cubin",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = done.stdout + done.stderr
    return {
        "registers": [int(n) for n in re.findall(r"Used (\d+) registers", said)],
        "spilled": sum(int(n) for n in re.findall(r"(\d+) bytes spill stores", said)),
        "remarks": sorted(set(re.findall(r"C75\d\d", said))),
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
