"""A GPU that is the emulator: Triton compiles for it and launches on it, and numbers come out.

    kernel[grid](tensors) ──► Triton, compiling for sm_90 ──► launcher ──► the emulator, on the
                                                               arrays that lie at the addresses

Tensors are NumPy arrays that tell their address and their type as torch's do.
"""

# Triton has no types.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gluon_emulator import Descriptor, Emulator
from stretto.launching.loading import Loaded


class Dtype:
    """As torch's: its name is all that Triton asks of it."""

    is_floating_point = True

    def __init__(self, name: str, size: int) -> None:
        self.name, self.itemsize = name, size

    def __str__(self) -> str:
        return f"torch.{self.name}"

    __repr__ = __str__


DTYPES = {
    "float16": Dtype("float16", 2),
    "float32": Dtype("float32", 4),
    "int32": Dtype("int32", 4),
}


class Tensor:
    """An array with an address."""

    memory: dict[int, np.ndarray] = {}  # noqa: RUF012 - a machine has one

    def __init__(self, array: Any, offset: int = 0) -> None:
        whole = np.zeros(array.size + 128, array.dtype)
        start = -whole.ctypes.data % 256 // array.itemsize + offset
        self.array = whole[start : start + array.size].reshape(array.shape)
        self.array[...] = array
        self.dtype = DTYPES[str(array.dtype)]
        self.shape = array.shape
        self.address = self.array.ctypes.data
        Tensor.memory[self.address] = self.array

    @property
    def nbytes(self) -> int:
        return self.array.nbytes

    def data_ptr(self) -> int:
        return self.address

    def is_contiguous(self) -> bool:
        return True

    def stride(self, axis: int | None = None) -> Any:
        strides = tuple(s // self.array.itemsize for s in self.array.strides)
        return strides if axis is None else strides[axis]


class FakeGpu:
    """A driver of Triton's; `launches` are the names of the kernels that ran."""

    def __init__(self, arch: int = 90, emulate: bool = True) -> None:
        self.arch, self.emulate = arch, emulate
        self.launches: list[str] = []
        self.stock: list[str] = []
        self.utils = self
        gpu = self

        class Launcher:
            def __init__(self, source: Any, metadata: Any) -> None:
                self.source, self.metadata = source, metadata

            def __call__(self, x: int, y: int, z: int, *rest: Any) -> None:
                gpu.launch(self.source, (x, y, z), rest[6:])

        self.launcher_cls = Launcher

    def get_current_target(self) -> Any:
        return import_module("triton.backends.compiler").GPUTarget("cuda", self.arch, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return device

    def get_device_properties(self, device: int) -> dict[str, int]:
        del device
        return {"max_shared_mem": 232448}

    def load_binary(self, *_: Any) -> Any:
        return "module", "function", 168, 0, 1024

    def unload_module(self, module: str) -> None:
        """Since Triton 3.9."""

    def launch(self, source: Any, grid: tuple[int, ...], args: Any) -> None:
        name = source.fn.fn.__name__
        if not source.fn.is_gluon():
            self.stock.append(name)
            return
        self.launches.append(name)
        if self.emulate:
            file = inspect.getsourcefile(source.fn.fn)
            assert file is not None
            emulator = Emulator(Path(file).read_text(encoding="utf-8"))
            *taken, warps = args
            emulator.space[name][grid](*[emulated(a) for a in taken], num_warps=warps)


def _at(value: object) -> Any:
    return Tensor.memory.get(value) if isinstance(value, int) else None


def emulated(value: Any) -> Any:
    """An argument with the memory that lies at its address."""
    memory = _at(value)
    if memory is not None:
        return memory
    if hasattr(value, "data_ptr"):
        return Tensor.memory[value.data_ptr()]
    if hasattr(value, "base"):
        base = Tensor.memory[value.base.data_ptr()]
        return Descriptor(base, value.shape, value.strides, value.block_shape, value.layout)
    return value


class Array(np.ndarray):
    """An array that tells its strides as torch's tensors do."""

    def stride(self, axis: int) -> int:
        return self.strides[axis] // self.itemsize


class EmulatedKernel:
    """A Gluon kernel without Triton: compiled to itself, launched in the emulator."""

    def __init__(self, source: str, entry: str) -> None:
        self.source, self.entry = source, entry
        self.grids: list[tuple[int, ...]] = []
        self.streams: list[int | None] = []
        self.compiled = 0

    def warmup(self, *args: Any, grid: Any, **options: Any) -> EmulatedKernel:
        del args, grid, options
        self.compiled += 1
        return self

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def run(
            *args: Any, num_warps: int = 0, maxnreg: int = 0, stream: int | None = None
        ) -> EmulatedKernel:
            del maxnreg
            self.streams.append(stream)
            taken = args if num_warps else args[:-1]  # the compiled kernel takes constants too
            taken = [_seen_anew(value) for value in taken]
            Emulator(self.source).space[self.entry][grid](*taken, num_warps=num_warps or args[-1])
            self.grids.append(grid)
            return self

        return run


def _seen_anew(value: Any) -> Any:
    """An argument of a launch that knows nothing of the launch before."""
    if isinstance(value, np.ndarray):
        return value[...]
    if isinstance(value, Descriptor):
        shape = value.shape, value.strides, value.block_shape
        return Descriptor(value.base[...], *shape, value.layout)
    return value


def emulated_load(entry: Any, key: str) -> Loaded:
    """Instead of `stretto.launching.loading.load`, where there is no Triton."""
    del key
    space = Emulator(entry.source).space

    def arguments(*given: Any) -> Any:
        return space["arguments"](*(_emulated(value) for value in given))

    parameters = tuple(inspect.signature(space["arguments"]).parameters)
    kernel = EmulatedKernel(entry.source, entry.document["entry"])
    return Loaded(
        kernel, arguments, parameters, space["OPTIONS"], frozenset(entry.document["writes"])
    )


def _emulated(value: Any) -> Any:
    return Tensor.memory[value.data_ptr()].view(Array) if hasattr(value, "data_ptr") else value
