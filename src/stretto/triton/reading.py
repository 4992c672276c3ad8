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
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stretto.errors import StrettoError, listed, nearest

if TYPE_CHECKING:  # a launch needs none of it
    from stretto.kernel import Kernel

_DIVISIBLE = 16
"""What Triton finds out of pointers and sizes as they are given; most are multiples of it."""
_ELEMENTS = (
    *("fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"),
    *("i1", "i8", "i16", "i32", "i64", "u1", "u8", "u16", "u32", "u64"),
)
"""Types of numbers, as Triton's signatures write them."""
_TYPE = re.compile(r"\*?k?(?P<element>\w+)|tensordesc<(?P<tile>\w+)\[\d+(?:, *\d+)*\]>")


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
    `undivided`. A parameter that is given neither has its default. Options are those of a launch:
    `num_warps`, `num_stages`.
    """
    triton = found_triton()
    if not isinstance(target, tuple) or len(target) != 2 or target[0] != "cuda":  # pyright: ignore[reportUnnecessaryIsInstance] - whoever calls may have no types
        raise StrettoError(f'the target is {target!r}; expected such as ("cuda", 90)')
    given = _constants(kernel, signature, constexprs or {}, undivided)
    names: list[str] = list(kernel.arg_names)
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
    name: str = getattr(kernel, "__name__", "kernel")
    try:
        module = triton.ttir(kernel, special, target)
    except Exception as error:  # Triton's own, with a picture of the source
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = lines[-1] if lines else type(error).__name__
        raise StrettoError(f"Triton cannot compile `{name}`: {told}") from error
    return ttir_kernel(name, module)


def _constants(
    kernel: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any],
    undivided: Collection[str],
) -> dict[str, Any]:
    """Values of the parameters that have no type; StrettoError where one has neither."""
    if not hasattr(kernel, "arg_names"):
        told = f"a function under @triton.jit is read, not {type(kernel).__name__}"
        hint = "stretto.read and stretto.emit take the path of a .ttir"
        raise StrettoError(f"{told}; {hint}")
    names: list[str] = list(kernel.arg_names)
    for given in (signature, constexprs):
        if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise StrettoError(f"{given!r} is given; expected a dict by names of parameters")
    for name in (*signature, *constexprs, *undivided):
        if name not in names:
            hint = nearest(name, names, f"it has {listed(names)}")
            raise StrettoError(f"the kernel has no parameter `{name}`; {hint}")
    for name, written in signature.items():
        _require_type(name, written)
    parameters = getattr(getattr(kernel, "signature", None), "parameters", {})
    found: dict[str, Any] = {}
    for name in names:
        default = getattr(parameters.get(name), "default", inspect.Parameter.empty)
        if name in constexprs:
            found[name] = constexprs[name]
        elif name not in signature and default is not inspect.Parameter.empty:
            found[name] = default
        elif name not in signature:
            hint = f'signature={{"{name}": "*fp16"}}, or constexprs={{"{name}": 64}}'
            raise StrettoError(f"parameter `{name}` has neither a type nor a value; give {hint}")
    return found


def _require_type(name: str, type: object) -> None:
    """StrettoError where Triton has no such type."""
    wanted = 'such as "*fp16", "i32" or "tensordesc<fp16[128, 64]>"'
    if not isinstance(type, str):
        raise StrettoError(f"the type of `{name}` is {type!r}; expected a text {wanted}")
    written = _TYPE.fullmatch(type)
    element = type.strip("*k") if written is None else written["element"] or written["tile"]
    if written is None or element not in _ELEMENTS:
        near = nearest(element, _ELEMENTS)
        hint = f"{near} Types are {wanted}" if near else f"types are {wanted}"
        raise StrettoError(f"the type of `{name}` is `{type}`, which Triton has not; {hint}")


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
    from stretto.frontends.triton import read_ttir  # noqa: PLC0415 - a launch needs none of it

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
