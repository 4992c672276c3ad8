"""A launch as it is kept: which kernel of which package, and all that Triton compiles it by.

    liger_kernel.ops.rms_norm:_rms_norm_forward_kernel ─┐
    *bf16, *bf16, i32, ... ; BLOCK_SIZE = 4096; 8 warps ─┴─► TTIR, by Triton alone

Nothing here needs torch, so that a recorded launch becomes TTIR wherever its package lies.
"""

import importlib.util
import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from triton._C.libtriton import ir, nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, make_backend
from triton.language import dtype
from triton.runtime.jit import JITFunction

TARGET = GPUTarget("cuda", 90, 32)
LEFT = ("debug", "backend_name", "arch", "extern_libs", "sanitize_overflow", "cluster_dims")
"""Options that say nothing of the kernel."""


@dataclass
class Launch:
    """One launch of one kernel."""

    case: str
    """Whose function launched it: `liger.rms_norm`."""
    module: str
    kernel: str
    """What it is called in its module."""
    name: str
    """Its own."""
    signature: dict = field(default_factory=dict)
    constexprs: dict = field(default_factory=dict)
    """By the parameter, or by the place inside of one: `"3"`, `"3.1"`."""
    attributes: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    grid: list = field(default_factory=list)
    numbers: dict = field(default_factory=dict)
    """Arguments that are no tensors."""
    tensors: dict = field(default_factory=dict)
    """Shape, strides and element of those that are."""
    integers: dict = field(default_factory=dict)
    """What tensors of integers hold, that others are indexed by: all of a short one, of a long one
    the least and the greatest."""

    @property
    def key(self):
        """What two launches have in common that compile to one kernel."""
        told = (self.module, self.kernel, self.signature, self.constexprs, self.attributes)
        return json.dumps((*told, self.options), sort_keys=True)


def written(value):
    """A constexpr as JSON."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dtype):
        return {"dtype": value.name}
    if isinstance(value, tuple | list):
        return {"tuple": [written(one) for one in value]}
    if type(value).__module__ == "torch":  # a type of numbers that a kernel only compares
        return {"torch": str(value)[6:]}
    if hasattr(value, "value"):  # a constexpr, or an enumeration's member
        return written(value.value)
    function = jitted(value)
    if function is not None:
        return {"kernel": place_of(function)}
    raise TypeError(f"a constexpr of type {type(value).__name__} is not kept")


def read(value):
    """And back."""
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "dtype":
        return dtype(inner)
    if kind == "torch":
        return getattr(importlib.import_module("torch"), inner)
    if kind == "tuple":
        return tuple(read(one) for one in inner)
    return function_of(*inner.split(":"))


def jitted(value):
    """The kernel inside of autotuners, heuristics and other wrappers; None where there is none."""
    for _ in range(8):
        if isinstance(value, JITFunction):
            return value
        value = getattr(value, "fn", None)
    return None


def place_of(function):
    """`module:name`, under which a kernel is found again."""
    return f"{function.fn.__module__}:{function.fn.__qualname__}"


TUTORIALS = os.environ.get("TUTORIALS", "")
"""A folder of Triton's tutorials, which are in no package."""


def module_of(name):
    """A module by its name; `tutorials.03-matrix-multiplication` by its file."""
    folder, _, stem = name.partition(".")
    if folder != "tutorials" or name in sys.modules:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, Path(TUTORIALS) / f"{stem}.py")
    nvidia.cublas.CublasLt = lambda *_: None  # what they measure themselves against
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    with suppress(AttributeError):  # where it looks at what it launched, its kernels are there
        spec.loader.exec_module(module)
    return module


def function_of(module, name):
    """A kernel by its place."""
    found = module_of(module)
    for part in name.split("."):
        found = getattr(found, part)
    function = jitted(found)
    if function is None:
        raise TypeError(f"{module}:{name} is no kernel")
    return function


def recorded(case, function, binder_told, options, grid, numbers, tensors, integers, backend):
    """A launch, by what Triton's own binder says of its arguments."""
    given, specialized = binder_told
    signature, constexprs, attributes = {}, {}, {}

    def told(place, kind, value):
        if isinstance(kind[0], tuple) or isinstance(value, tuple):
            return
        type_, *more = kind
        if type_ == "constexpr":
            constexprs[place] = written(value)
        elif more and isinstance(more[0], str):
            attributes[place] = backend.parse_attr(more[0])

    for number, (name, kind) in enumerate(zip(given, specialized, strict=False)):
        value = given[name]
        if isinstance(value, tuple) and kind[0] != "constexpr":
            raise TypeError("a tuple of arguments is not kept")
        signature[name] = kind[0]
        told(str(number), kind, value)
    where, name = place_of(function).split(":")
    if "<locals>" in name:
        raise TypeError("a kernel inside of a function is not found again")
    return Launch(
        case, where, name, function.__name__, signature, constexprs, attributes,
        options, grid, numbers, tensors, integers,
    )  # fmt: skip


def ttir_of(launch):
    """Its TTIR, and the options that it is compiled with."""
    backend = make_backend(TARGET)
    options = backend.parse_options(dict(launch.options))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    places = {tuple(map(int, at.split("."))): read(v) for at, v in launch.constexprs.items()}
    aligned = {tuple(map(int, at.split("."))): v for at, v in launch.attributes.items()}
    function = function_of(launch.module, launch.kernel)
    source = ASTSource(function, launch.signature, places, aligned)
    codegen = backend.get_codegen_implementation(options)
    module = source.make_ir(TARGET, options, codegen, backend.get_module_map(), context)
    stages = {}
    backend.add_stages(stages, options, source.language)
    return str(stages["ttir"](module, {})).rstrip() + "\n", options


def load(path):
    """Launches of a file, one a line."""
    return [Launch(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def save(path, launches):
    """The file again."""
    lines = [json.dumps(asdict(one)) for one in launches]
    path.write_text("\n".join(lines) + "\n", "utf-8")
