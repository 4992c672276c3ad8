"""Triton kernels from Python, without a GPU. Triton is needed: `pip install stretto[gpu]`.

kernel = stretto.triton.read(
    matmul,
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "K": "i32"},
    constexprs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64},
    target=("cuda", 100),
)
(loop,) = stretto.read(kernel, "b200-pipes")
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from stretto.errors import StrettoError
from stretto.frontends.triton import read_ttir
from stretto.kernel import Kernel

_DIVISIBLE = 16
"""What Triton finds out of pointers and sizes as they are given; most are multiples of it."""


def read(
    kernel: Any,
    *,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any] | None = None,
    target: tuple[str, int] = ("cuda", 90),
    undivided: Collection[str] = (),
    **options: Any,
) -> Kernel:
    """A `@triton.jit` function as a kernel, compiled to TTIR and no further.

    The signature gives Triton's type of each parameter that is no constexpr (`*fp16`, `i32`,
    `tensordesc<fp16[128, 64]>`). Pointers and integers count as multiples of 16, but those in
    `undivided`. Options are those of a launch: `num_warps`, `num_stages`.
    """
    given = constexprs or {}
    text, warps, stages = compile_ttir(kernel, signature, given, target, undivided, options)
    name = getattr(kernel, "__name__", "kernel")
    (found, *_) = read_ttir(f"<{name}>", text)
    made_for = f"{target[0]}:{target[1]}"
    return replace(found, warps=warps, stages=stages, target=made_for)


def compile_ttir(
    kernel: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    target: tuple[str, int],
    undivided: Collection[str],
    options: Mapping[str, Any],
) -> tuple[str, int, int]:
    """The text of a kernel at Triton's stage `ttir`, and its warps and stages."""
    try:
        ir = import_module("triton._C.libtriton").ir
        compiler = import_module("triton.compiler.compiler")
        goal = import_module("triton.backends.compiler").GPUTarget(*target, 32)
    except ImportError:
        hint = "pip install stretto[gpu], or give the .ttir that Triton wrote"
        raise StrettoError(f"Triton is not installed; {hint}") from None
    backend = compiler.make_backend(goal)
    parsed = backend.parse_options(dict(options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    names: list[str] = list(kernel.arg_names)
    unknown = [name for name in (*signature, *constexprs) if name not in names]
    if unknown:
        raise StrettoError(f"the kernel has no parameter `{unknown[0]}`; it has {', '.join(names)}")
    source = compiler.ASTSource(
        kernel,
        {name: signature.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in constexprs.items()},
        {
            (names.index(name),): [["tt.divisibility", _DIVISIBLE]]
            for name, type in signature.items()
            if type[:1] in ("*", "i") and name not in undivided
        },
    )
    given = [parsed, backend.get_codegen_implementation(parsed), backend.get_module_map(), context]
    if "target" in inspect.signature(source.make_ir).parameters:  # since 3.5
        given.insert(0, goal)
    module = source.make_ir(*given)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, source.language)
    module = stages["ttir"](module, {})
    return str(module), int(parsed.num_warps), int(parsed.num_stages)
