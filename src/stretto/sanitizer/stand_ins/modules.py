"""The modules that a kernel file imports, for as long as it is checked.

with installed(launcher): exec(file)        sys.modules holds stand-ins, then what was there
"""

# Modules that are made up have no types.
# pyright: basic

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stretto.sanitizer.buffers import TensorMemory, TensorMemoryType, allocate_tensor
from stretto.sanitizer.layouts import TensorMemoryLayout, TensorMemoryScalesLayout
from stretto.sanitizer.pointers import Descriptor, Im2ColDescriptor
from stretto.sanitizer.stand_ins import (
    language,
    libdevice,
    microscaling,
    nvidia,
    products,
    tensors,
)
from stretto.sanitizer.stand_ins.tensors import CAPABILITY, Tensor
from stretto.sanitizer.values import DTYPES, TileType

Launch = Callable[["Jit", Any, tuple[Any, ...], dict[str, Any]], None]


class Jit:
    """A function of a kernel: called in kernels, launched by the host."""

    def __init__(self, function: Any, launch: Launch, gluon: bool = True) -> None:
        self.fn, self._launch, self.gluon = function, launch, gluon
        self.__name__ = getattr(function, "__name__", "kernel")
        self.__doc__ = getattr(function, "__doc__", None)
        self.__wrapped__ = function
        self.arg_names = list(function.__code__.co_varnames[: function.__code__.co_argcount])

    def __call__(self, *given: Any, **named: Any) -> Any:
        """In a kernel."""
        return self.fn(*given, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __getitem__(self, grid: Any) -> Any:
        return lambda *given, **named: self._launch(self, grid, given, named)

    def run(self, *given: Any, grid: Any, **named: Any) -> Any:
        """As Triton spells a launch inside."""
        return self._launch(self, grid, given, named)

    warmup = run


class HostDescriptor:
    """A TMA descriptor that the host makes."""

    aligned = True
    """Whether addresses and strides are held to what TMA wants."""

    def __init__(
        self, base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any = None,
        padding: str = "zero", round_f32_to_tf32: bool = False,
    ) -> None:  # fmt: skip
        del round_f32_to_tf32
        self.base, self.shape, self.strides = base, list(shape), list(strides)
        self.block_shape, self.layout, self.padding = list(block_shape), layout, padding
        if self.strides[-1] != 1:
            raise ValueError("TMA wants the last stride to be 1")
        item = base.itemsize
        at = base.data_ptr() if isinstance(base, Tensor) else 0
        if self.aligned and (any(s * item % 16 for s in self.strides[:-1]) or at % 16):
            raise ValueError("TMA wants an address and strides that are multiples of 16 bytes")

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Any, layout: Any = None, padding: str = "zero", **_: Any
    ) -> HostDescriptor:
        """Of a whole tensor."""
        return HostDescriptor(tensor, tensor.shape, tensor.stride(), block_shape, layout, padding)

    @property
    def block_type(self) -> TileType:
        """Of a tile."""
        return TileType(self.base.dtype, self.block_shape, self.layout)

    def for_kernel(self) -> Descriptor:
        """As a kernel has it."""
        base = self.base if isinstance(self.base, Tensor) else tensors.from_numpy(self.base)
        return Descriptor(
            base.storage_, base.dtype, base.offset, self.shape, self.strides, self.block_shape,
            self.layout, self.padding, loose=base is not self.base,
        )  # fmt: skip


class _Im2Col(HostDescriptor):
    """One of pixels by channels."""

    def __init__(
        self, base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any = None,
        padding: str = "zero", round_f32_to_tf32: bool = False, element_strides: Any = None,
        pixel_box_lower_corner: Any = (), pixel_box_upper_corner: Any = (),
    ) -> None:  # fmt: skip
        super().__init__(base, shape, strides, block_shape, layout, padding, round_f32_to_tf32)
        self.corners = (list(pixel_box_lower_corner), list(pixel_box_upper_corner))
        self.every = list(element_strides or [1] * len(self.shape))

    @staticmethod
    def from_tensor(tensor: Any, *given: Any, **named: Any) -> HostDescriptor:
        """Of a whole tensor."""
        return _Im2Col(tensor, tensor.shape, tensor.stride(), *given, **named)

    def for_kernel(self) -> Descriptor:
        base = self.base
        made = Im2ColDescriptor(
            base.storage_, base.dtype, base.offset, self.shape, self.strides, self.block_shape,
            self.layout, self.padding,
        )  # fmt: skip
        made.corners, made.every = self.corners, self.every
        return made


def aggregate(cls: Any) -> Any:
    """A class of a kernel; its constructor takes its fields where it has none."""
    fields: list[str] = []
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        for name in getattr(base, "__annotations__", {}):
            if name not in fields:
                fields.append(name)
            if name in vars(base):
                defaults[name] = vars(base)[name]
    if "__init__" not in vars(cls):

        def init(self: Any, *given: Any, **named: Any) -> None:
            values = {**defaults, **dict(zip(fields, given, strict=False)), **named}
            absent = [f for f in fields if f not in values]
            if absent or len(given) > len(fields):
                raise TypeError(f"{cls.__name__}: {', '.join(absent) or 'too many'} fields")
            for name, value in values.items():
                setattr(self, name, value)

        cls.__init__ = init
    cls.__aggregate_fields__ = tuple(fields)
    cls.type = property(type)
    return cls


def _decorator(launch: Launch, gluon: bool) -> Any:
    def jit(function: Any = None, **_: Any) -> Any:
        if function is None:
            return lambda f: Jit(f, launch, gluon)
        return Jit(function, launch, gluon)

    return jit


def _constexpr_function(function: Any) -> Any:
    return function


class _Config:
    """One of an autotuner's choices."""

    def __init__(self, kwargs: Any, num_warps: int = 4, num_ctas: int = 1, **more: Any) -> None:
        self.kwargs, self.num_warps, self.num_ctas = dict(kwargs), num_warps, num_ctas
        self.more = more
        self.pre_hook = more.get("pre_hook")


class _Tuned:
    """A kernel with its first choice."""

    def __init__(self, kernel: Any, configs: Any) -> None:
        self.kernel, self.config = kernel, configs[0]
        self.fn = kernel
        self.__name__ = kernel.__name__
        self.best_config = self.config

    def __getitem__(self, grid: Any) -> Any:
        config = self.config

        def run(*given: Any, **named: Any) -> Any:
            options = {"num_warps": config.num_warps, "num_ctas": config.num_ctas}
            every = {**options, **config.kwargs, **named}
            if config.pre_hook is not None:
                names = dict(zip(self.kernel.arg_names, given, strict=False))
                config.pre_hook({**names, **every})
            return self.kernel[grid](*given, **every)

        return run


def _autotune(configs: Any, **_: Any) -> Any:
    return lambda kernel: _Tuned(kernel, list(configs))


def _heuristics(values: Any) -> Any:
    def decorate(kernel: Any) -> Any:
        class Guided:
            __name__ = kernel.__name__
            arg_names = kernel.arg_names

            def __getitem__(self, grid: Any) -> Any:
                def run(*given: Any, **named: Any) -> Any:
                    names = {**dict(zip(kernel.arg_names, given, strict=False)), **named}
                    made = {name: value(names) for name, value in values.items()}
                    return kernel[grid](*given, **{**named, **made})

                return run

        return Guided()

    return decorate


def _next_power(n: int) -> int:
    return 1 << max(0, int(n) - 1).bit_length()


class _Module(types.ModuleType):
    """A module that says by name what it lacks, when that is used."""

    def __init__(self, name: str, **names: Any) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__.update(names)

    def __getattr__(self, name: str) -> Any:
        return language.missing(self.__name__)(name)


_OTHERS = ("triton", "torch", "torchvision")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Any other module of Triton or torch: it is there, and lacks everything."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        del path, target
        if fullname.split(".", maxsplit=1)[0] in _OTHERS:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Any:
        return _Module(spec.name)

    def exec_module(self, module: Any) -> None:
        del module


class SkippedError(Exception):
    """pytest.skip."""


def _pytest() -> types.ModuleType:
    """Marks are kept on functions; whoever runs them reads them."""

    def parametrize(names: Any, values: Any, **_: Any) -> Any:
        def mark(function: Any) -> Any:
            of = getattr(function, "__wrapped__", function)
            function.parameters = [*getattr(of, "parameters", []), (names, list(values))]
            return function

        return mark

    def skipif(condition: Any = True, **_: Any) -> Any:
        def mark(function: Any) -> Any:
            function.skipped = getattr(function, "skipped", False) or bool(condition)
            return function

        return mark

    def skip(reason: str = "", **_: Any) -> None:
        raise SkippedError(reason)

    def plain(*given: Any, **_: Any) -> Any:
        return given[0] if given and callable(given[0]) else (lambda f: f)

    class Mark:
        """Marks; those that are not known change nothing."""

        def __getattr__(self, name: str) -> Any:
            known = {"parametrize": parametrize, "skipif": skipif, "skip": skipif}
            return known.get(name, plain)

    mark = Mark()
    return _Module(
        "pytest", mark=mark, skip=skip, fixture=plain, main=lambda *_: 0, Skipped=SkippedError,
        param=lambda *values, **_: values[0] if len(values) == 1 else values,
    )  # fmt: skip


def _target() -> Any:
    major, minor = CAPABILITY[0]
    return types.SimpleNamespace(backend="cuda", arch=major * 10 + minor, warp_size=32)


def _benchmark(function: Any, *_: Any, **__: Any) -> float:
    function()
    return 1.0


def made(launch: Launch) -> dict[str, types.ModuleType]:
    """All stand-ins, by name."""
    torch, of_torch = tensors.module()
    names = language.names()
    of_blackwell: dict[str, Any] = {
        "TensorMemoryLayout": TensorMemoryLayout,
        "TensorMemoryScalesLayout": TensorMemoryScalesLayout,
        "tensor_memory_descriptor": TensorMemory,
        "tensor_memory_descriptor_type": TensorMemoryType,
        "allocate_tensor_memory": allocate_tensor,
        "get_tmem_reg_layout": lambda *_, **__: None,
        **{n: getattr(products, n) for n in dir(products) if n.startswith("tcgen05")},
        **{f"{n}2": names[f] for n, f in _PACKED.items()},
    }
    mbarrier = _Module("mbarrier", **nvidia.MBARRIER)
    tma = _Module("tma", **nvidia.TMA)
    async_copy = _Module("async_copy", **nvidia.ASYNC_COPY)
    cluster = _Module("cluster", barrier=nvidia.cluster_barrier)
    clc = _Module("clc", **nvidia.CLC)
    common: dict[str, Any] = {
        "mbarrier": mbarrier, "tma": tma, "async_copy": async_copy, "cluster": cluster,
        "fence_async_shared": nvidia.fence_async_shared, "mma_v2": products.mma_v2,
        "allocate_mbarrier": nvidia.allocate_mbarrier,
    }  # fmt: skip
    hopper = _Module(
        "hopper", **common, async_store=nvidia.async_store_shared,
        warpgroup_mma=products.warpgroup_mma,
        warpgroup_mma_init=products.warpgroup_mma_init,
        warpgroup_mma_wait=products.warpgroup_mma_wait,
    )  # fmt: skip
    blackwell = _Module("blackwell", **common, **of_blackwell, clc=clc)
    ampere = _Module("ampere", **common)
    of_nvidia = _Module("nvidia", hopper=hopper, blackwell=blackwell, ampere=ampere)
    gl = _Module("language", **names, nvidia=of_nvidia)
    host = _Module("hopper", TensorDescriptor=HostDescriptor, TensorDescriptorIm2Col=_Im2Col)
    shared = {
        "jit": _decorator(launch, True), "constexpr_function": _constexpr_function,
        "aggregate": aggregate, "must_use_result": _constexpr_function,
    }  # fmt: skip
    gluon = _Module(
        "gluon", **shared, language=gl, nvidia=_Module("nvidia", hopper=host, blackwell=host)
    )
    experimental = _Module("experimental", gluon=gluon)
    tl = _Module("language", **{n: v for n, v in names.items() if n in DTYPES or n in _PLAIN})
    tl.PropagateNan = language.PROPAGATE_NAN  # type: ignore[attr-defined]
    library = _Module("libdevice", **libdevice.names())
    extra = _Module("extra", libdevice=library)
    tl.core = tl  # type: ignore[attr-defined]
    testing = _Module(
        "testing", do_bench=_benchmark, do_bench_cudagraph=_benchmark,
        perf_report=lambda *_, **__: _constexpr_function, Benchmark=lambda *_, **__: None,
        assert_close=tensors.assert_close,
    )  # fmt: skip
    driver = types.SimpleNamespace(
        active=types.SimpleNamespace(
            get_current_target=_target, get_active_torch_device=lambda: "cuda",
            utils=types.SimpleNamespace(get_device_properties=lambda *_: {
                "multiprocessor_count": tensors.PROCESSORS, "max_shared_mem": 232_448}),
            get_current_device=lambda: 0, get_empty_cache_for_benchmark=lambda: None,
            clear_cache=lambda *_: None,
        )
    )  # fmt: skip
    runtime = _Module("runtime", driver=driver)
    triton = _Module(
        "triton", cdiv=lambda a, b: -(-a // b), next_power_of_2=_next_power,
        jit=_decorator(launch, False), autotune=_autotune, heuristics=_heuristics,
        Config=_Config, testing=testing, runtime=runtime, language=tl,
        constexpr_function=_constexpr_function, set_allocator=lambda *_: None,
        knobs=Knobs(), OutOfResources=MemoryError, experimental=experimental,
        aggregate=aggregate, must_use_result=_constexpr_function, __version__="3.6.0",
    )  # fmt: skip
    base = "triton.experimental.gluon"
    return {
        **of_torch,
        "torch": torch,
        "pytest": _pytest(),
        "triton": triton,
        "triton.language": tl,
        "triton.language.extra": extra,
        "triton.language.extra.libdevice": library,
        "triton.testing": testing,
        "triton.runtime": runtime,
        "triton.experimental": experimental,
        "triton.tools.mxfp": _Module(
            "mxfp", MXFP4Tensor=microscaling.MXFP4Tensor, MXScaleTensor=microscaling.MXScaleTensor
        ),
        base: gluon,
        f"{base}.language": gl,
        f"{base}.language.nvidia": of_nvidia,
        f"{base}.language.nvidia.hopper": hopper,
        f"{base}.language.nvidia.hopper.mbarrier": mbarrier,
        f"{base}.language.nvidia.hopper.tma": tma,
        f"{base}.language.nvidia.blackwell": blackwell,
        f"{base}.language.nvidia.blackwell.tma": tma,
        f"{base}.language.nvidia.blackwell.clc": clc,
        f"{base}.language.nvidia.ampere": ampere,
        f"{base}.language.nvidia.ampere.async_copy": async_copy,
        f"{base}.language.nvidia.ampere.mbarrier": mbarrier,
        f"{base}.nvidia": gluon.nvidia,
        f"{base}.nvidia.hopper": host,
        f"{base}.nvidia.blackwell": host,
    }


_PACKED = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "fma": "fma",
    "min": "minimum",
    "max": "maximum",
}
_PLAIN = ("constexpr", "dtype", "tensor", "pointer_type", "cdiv")


class Knobs:
    """Settings that nobody reads."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = Knobs()
        object.__setattr__(self, name, made)
        return made

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Itself."""
        return self


@contextmanager
def installed(launch: Launch) -> Iterator[None]:
    """Stand-ins in place of whatever is there, until the end."""
    modules = made(launch)
    roots = ("triton", "torch", "pytest", "triton_kernels")
    kept = {n: m for n, m in sys.modules.items() if n.split(".")[0] in roots}
    for name in kept:
        del sys.modules[name]
    sys.modules.update(modules)
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [n for n in sys.modules if n.split(".")[0] in roots]:
            del sys.modules[name]
        sys.modules.update(kept)
