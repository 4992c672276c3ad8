"""A `@triton.jit` function as a kernel, compiled to TTIR and no further.

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
from dataclasses import dataclass, replace
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
    triton = found_triton()
    names: list[str] = list(getattr(kernel, "arg_names", ()))
    unknown = [name for name in (*signature, *given) if name not in names]
    if unknown:
        raise StrettoError(f"the kernel has no parameter `{unknown[0]}`; it has {', '.join(names)}")
    special = Specialization(
        {name: signature.get(name, "constexpr") for name in names},
        {(names.index(name),): value for name, value in given.items()},
        {
            (names.index(name),): [["tt.divisibility", _DIVISIBLE]]
            for name, type in signature.items()
            if type[:1] in ("*", "i") and name not in undivided
        },
        options,
    )
    return ttir_kernel(getattr(kernel, "__name__", "kernel"), triton.ttir(kernel, special, target))


@dataclass(frozen=True)
class Specialization:
    """What Triton compiles a kernel for, as its `ASTSource` takes it."""

    signature: Mapping[str, str]
    constexprs: Mapping[tuple[int, ...], Any]
    attributes: Mapping[tuple[int, ...], list[list[Any]]]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Ttir:
    """A module at Triton's stage `ttir`, and what it was compiled with."""

    text: str
    warps: int
    stages: int
    target: str

    @property
    def content(self) -> bytes:
        """All of it, for a key."""
        return f"{self.target} {self.warps} {self.stages}\n{self.text}".encode()


def ttir_kernel(name: str, module: Ttir) -> Kernel:
    """The kernel of a module."""
    (found, *_) = read_ttir(f"<{name}>", module.text)
    return replace(found, warps=module.warps, stages=module.stages, target=module.target)


def found_triton() -> InstalledTriton:
    """Triton, where it is installed; StrettoError where it is not."""
    try:
        return InstalledTriton(
            import_module("triton._C.libtriton").ir,
            import_module("triton.compiler.compiler"),
            import_module("triton.backends.compiler").GPUTarget,
        )
    except ImportError:
        hint = "pip install stretto[gpu], or give the .ttir that Triton wrote"
        raise StrettoError(f"Triton is not installed; {hint}") from None


@dataclass(frozen=True)
class InstalledTriton:
    """The parts of Triton that compile to TTIR."""

    ir: Any
    compiler: Any
    target_of: Any

    def backend(self, target: tuple[str, int]) -> Any:
        """Triton's backend for a target, GPU or not."""
        return self.compiler.make_backend(self.target_of(*target, 32))

    def ttir(self, kernel: Any, special: Specialization, target: tuple[str, int]) -> Ttir:
        """A kernel at Triton's stage `ttir`."""
        goal = self.target_of(*target, 32)
        backend = self.compiler.make_backend(goal)
        parsed = backend.parse_options(dict(special.options))
        context = self.ir.context()
        self.ir.load_dialects(context)
        backend.load_dialects(context)
        source = self.compiler.ASTSource(
            kernel,
            dict(special.signature),
            dict(special.constexprs),
            dict(special.attributes),
        )
        implementation = backend.get_codegen_implementation(parsed)
        given = [parsed, implementation, backend.get_module_map(), context]
        if "target" in inspect.signature(source.make_ir).parameters:  # since 3.5
            given.insert(0, goal)
        module = source.make_ir(*given)
        stages: dict[str, Any] = {}
        backend.add_stages(stages, parsed, source.language)
        module = stages["ttir"](module, {})
        warps, numbered = int(parsed.num_warps), int(parsed.num_stages)
        return Ttir(str(module), warps, numbered, f"{target[0]}:{target[1]}")
