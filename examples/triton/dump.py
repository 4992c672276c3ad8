"""Writes the dumps beside the kernels: `python examples/triton/dump.py [FOLDER [PATTERN]]`.

It needs Triton (the dumps that ship are of 3.6.0) and no GPU: the module as it is after Triton's
stage `ttir`, and the .json that Triton writes beside it into its cache.
"""

import fnmatch
import importlib
import inspect
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp())

from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend

import triton

HERE = Path(__file__).parent
TARGET = GPUTarget("cuda", 90, 32)


def ttir(kernel, signature, constexprs, options, undivided=()):
    """The text of a kernel at stage `ttir`, and what Triton would write beside it."""
    backend = make_backend(TARGET)
    parsed = backend.parse_options(dict(options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    names = kernel.arg_names
    attrs = {
        (names.index(name),): [["tt.divisibility", 16]]
        for name, type in signature.items()
        if type[0] in "*i" and name not in undivided
    }
    fixed = {(names.index(name),): value for name, value in constexprs.items()}
    full = {name: signature.get(name, "constexpr") for name in names}
    source = ASTSource(kernel, full, fixed, attrs)
    made = [parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context]
    if "target" in inspect.signature(source.make_ir).parameters:  # since 3.5
        made.insert(0, TARGET)
    module = source.make_ir(*made)
    stages = {}
    backend.add_stages(stages, parsed, source.language)
    module = stages["ttir"](module, {})
    beside = {
        "name": kernel.__name__,
        "num_warps": parsed.num_warps,
        "num_stages": parsed.num_stages,
        "target": {"backend": TARGET.backend, "arch": TARGET.arch, "warp_size": TARGET.warp_size},
        "triton_version": triton.__version__,
    }
    return str(module), beside


def main():
    folder = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HERE
    pattern = sys.argv[2] if len(sys.argv) > 2 else "*"
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(HERE)
    sys.path.insert(0, str(HERE))
    for module in sorted(HERE.glob("*.py")):
        if module.stem == "dump":
            continue
        for name, asked in importlib.import_module(module.stem).DUMPS.items():
            if not fnmatch.fnmatch(name, pattern):
                continue
            text, beside = ttir(**asked)
            for folder_of in (HERE, Path(triton.__file__).parent.parent):
                text = text.replace(f"{folder_of}/", "")
            (folder / f"{name}.ttir").write_text(text.rstrip("\n") + "\n")
            (folder / f"{name}.json").write_text(json.dumps(beside, indent=2) + "\n")
            print(name)


if __name__ == "__main__":
    main()
