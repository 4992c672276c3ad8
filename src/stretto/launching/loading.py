"""An entry as a module, and launches whose arguments are ready.

    attention_forward.py ──► Loaded: kernel, arguments(), options
    arguments(q, k, v, …) ──► Bound: descriptors made once; launched again with only its grid

What a Bound holds are addresses, not the user's tensors: a tensor whose address, type and shape
are those of an earlier one is launched by what was made for that one, and no memory is kept alive.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from stretto.errors import StrettoError
from stretto.launching.storing import Entry


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a launch needs of a tensor: where it lies and what it looks like."""

    address: int
    dtype: Any
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def data_ptr(self) -> int:
        """As tensors tell their address."""
        return self.address

    def span(self) -> tuple[int, int]:
        """The first address and the one past the last."""
        last = sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))
        size = 0 if 0 in self.shape else (last + 1) * getattr(self.dtype, "itemsize", 1)
        return self.address, self.address + size

    def stride(self, axis: int) -> int:
        """As tensors tell their strides."""
        return self.strides[axis]


@dataclass(frozen=True, slots=True)
class TensorView:
    """What a launch needs of a tensor descriptor that the user made."""

    base: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def held(value: Any) -> Any:
    """A value without the memory behind it; StrettoError where that cannot be."""
    if hasattr(value, "data_ptr"):
        strides: tuple[int, ...] = ()
        if hasattr(value, "stride"):
            strides = tuple(value.stride())
        return Tensor(value.data_ptr(), value.dtype, tuple(getattr(value, "shape", ())), strides)
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        if getattr(value, "padding", "zero") != "zero":
            raise StrettoError(f"a descriptor is padded with {value.padding}, not with zeros")
        return TensorView(held(value.base), tuple(value.shape), tuple(value.strides))
    return value


@dataclass(frozen=True)
class Dtype:
    """A type of elements, as Triton asks for it: what the framework's own says, without that."""

    name: str
    itemsize: int
    is_floating_point: bool

    def __str__(self) -> str:
        return f"torch.{self.name}"


def sent(value: Any) -> Any:
    """A value without the memory behind it and without its framework, for another process."""
    kept = held(value)
    if isinstance(kept, Tensor):
        return replace(kept, dtype=_dtype(kept.dtype))
    if isinstance(kept, TensorView):
        return replace(kept, base=replace(kept.base, dtype=_dtype(kept.base.dtype)))
    return kept


def _dtype(dtype: Any) -> Dtype:
    name = str(dtype).rpartition(".")[2]
    size = getattr(dtype, "itemsize", 1)
    return Dtype(name, size, bool(getattr(dtype, "is_floating_point", "float" in name)))


Work = Callable[[tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
"""Of a grid that a launch asks for: the blocks that run, and the tiles along each axis."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The parts of an emitted module."""

    kernel: Any
    """The Gluon kernel: `kernel[grid](…)`, `kernel.warmup(…)`."""
    arguments: Callable[..., tuple[Any, ...]]
    parameters: tuple[str, ...]
    """What `arguments` wants to know."""
    options: Mapping[str, int]
    written: frozenset[str]
    """The parameters that the kernel writes through."""
    work: Work | None = None
    """Of a kernel whose blocks go over several tiles."""
    fits: Callable[..., str] | None = None
    """Why a launch cannot run as the kernel, of what `arguments` wants to know; empty: it can."""

    def bind(self, given: Mapping[str, Any]) -> Bound:
        """A launch on the user's arguments, by their names."""
        missing = [name for name in self.parameters if name not in given]
        if missing:
            raise StrettoError(f"the kernel takes `{missing[0]}`, which the launch does not give")
        values = {name: held(given[name]) for name in self.parameters}
        self._check_apart(values)
        why = "" if self.fits is None else self.fits(*values.values())
        if why:
            raise StrettoError(why)
        return Bound(self, self.arguments(*values.values()), values)

    def _check_apart(self, values: Mapping[str, Any]) -> None:
        """What is written overlaps nothing else: a schedule loads before earlier steps store."""
        spans: dict[str, tuple[int, int]] = {}
        for name, value in values.items():
            tensor = value.base if isinstance(value, TensorView) else value
            if isinstance(tensor, Tensor):
                spans[name] = tensor.span()
        for one in self.written.intersection(spans):
            for other, (begin, end) in spans.items():
                if other != one and spans[one][0] < end and begin < spans[one][1]:
                    raise StrettoError(f"`{one}` is written and overlaps `{other}`")


@dataclass(slots=True)
class Bound:
    """A launch that is ready but for its grid."""

    loaded: Loaded
    taken: tuple[Any, ...]
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The user's arguments that it takes, without the memory behind them."""
    compiled: Any = field(default=None)
    """By Triton; the second launch on the same arguments asks nothing of them any more."""

    def check(self, grid: tuple[int, ...] = (1, 1, 1)) -> None:
        """Compile and load it for a grid; whatever Triton raises where it cannot be."""
        _, tiles = self.work(grid)
        taken = (*self.taken, *tiles)
        compiled = self.loaded.kernel.warmup(*taken, grid=(1,), **self.loaded.options)
        compiled[1, 1, 1]  # looks at the machine's shared memory and threads, launches nothing
        self.compiled = compiled

    def launch(self, grid: tuple[int, ...], stream: int | None = None) -> Any:
        """Run it on a stream, or on the current one; gives what Triton compiled, as Triton does."""
        blocks, tiles = self.work(grid)
        taken = (*self.taken, *tiles)
        if self.compiled is None:
            kernel, options = self.loaded.kernel, self.loaded.options
            if stream is None:
                self.compiled = kernel[blocks](*taken, **options)
                return self.compiled
            self.compiled = kernel.warmup(*taken, grid=blocks, **options)
        run, warps = self.compiled[(*blocks, 1, 1)[:3]], self.loaded.options["num_warps"]
        run(*taken, warps) if stream is None else run(*taken, warps, stream=stream)
        return self.compiled

    def work(self, grid: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The blocks that run, and what the kernel is told of its tiles."""
        return (grid, ()) if self.loaded.work is None else self.loaded.work(grid)


def load(entry: Entry, key: str) -> Loaded:
    """Run an entry's source, the text that was looked at; no file is read for it, nor byte code."""
    called, file = f"stretto_{entry.file.stem}_{key}", str(entry.file)
    module: Any = ModuleType(called)
    module.__file__ = file
    # Triton asks for the text of its functions: this one, whatever the file has by then.
    linecache.cache[file] = len(entry.source), None, entry.source.splitlines(keepends=True), file
    sys.modules[called] = module
    exec(compile(entry.source, file, "exec", dont_inherit=True), module.__dict__)
    parameters = tuple(inspect.signature(module.arguments).parameters)
    kernel = getattr(module, entry.document["entry"])
    writes = frozenset[str](entry.document["writes"])
    work, fits = getattr(module, "work", None), getattr(module, "fits", None)
    return Loaded(kernel, module.arguments, parameters, module.OPTIONS, writes, work, fits)
