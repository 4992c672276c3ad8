"""Triton without Triton: functions that are "compiled" and launched as its own are, and counted.

kernel[grid](…) ──► FakeJit.run ──► _do_compile ──► FakeCompiled.run ──► jit.launched
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any


class FakeCompiled:
    """As Triton's `CompiledKernel`: its launcher is made when it is launched first."""

    def __init__(self, function: FakeJit, signature: dict[str, str], ttir: str) -> None:
        self.src = SimpleNamespace(fn=function, signature=signature)
        self.metadata = SimpleNamespace(
            target=SimpleNamespace(backend=function.target[0], arch=function.target[1]),
            **{"num_warps": 4, "num_stages": 3, "num_ctas": 1, **function.options},
        )
        self.asm = {"ttir": ttir, "ptx": "of Triton's own", "cubin": b"machine code"}
        self.module: str | None = None
        self.function = "function"
        self.packed_metadata = "packed"
        self._run: Any = None

    def _init_handles(self) -> None:
        if self.module is not None:
            return
        self._run = self._launch
        self.module = "module"

    def _launch(self, *args: Any) -> None:
        x, y, z, stream = args[:4]
        self.src.fn.launched.append((x, y, z))
        self.src.fn.on_launch("theirs", stream, args[9:])

    @property
    def run(self) -> Any:
        """What launches it."""
        if self._run is None:
            self._init_handles()
        return self._run


def _nothing(who: str, stream: int, given: Any) -> None:
    """Nobody looks."""


class FakeJit:
    """A `@triton.jit` function that cannot compile, only count how often it is launched."""

    debug = None
    cache_key = "key"
    params: tuple[object, ...] = ()

    def __init__(
        self,
        ttir: Callable[[Mapping[str, Any]], str],
        parameters: dict[str, str],
        tiles: dict[str, int],
        name: str = "matmul_descriptors",
    ) -> None:
        self.__name__ = name
        self.ttir, self.types, self.target = ttir, parameters, ("cuda", 90)
        self.launched: list[object] = []
        self.options: dict[str, Any] = {}
        self.stream = 7
        self.device_caches: defaultdict[int, dict[str, Any]] = defaultdict(self.create_binder)
        self.compiled = 0
        self.on_launch: Callable[[str, int, Any], None] = _nothing
        either = inspect.Parameter.POSITIONAL_OR_KEYWORD
        given = [inspect.Parameter(each, either) for each in parameters]
        fixed = [inspect.Parameter(each, either, default=n) for each, n in tiles.items()]
        self.signature = inspect.Signature([*given, *fixed])
        self.arg_names = [*parameters, *tiles]

    def create_binder(self) -> dict[str, Any]:
        """What is compiled for a GPU."""
        return {}

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, warmup=False, **kwargs)

    def _do_compile(self, key: str, signature: dict[str, str], given: Mapping[str, Any]) -> Any:
        self.compiled += 1
        found = FakeCompiled(self, signature, self.ttir(given))
        self.device_caches[0][key] = found
        return found

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """As Triton's."""
        self.options = {n: kwargs.pop(n) for n in list(kwargs) if n not in self.arg_names}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        signature = {name: self.types.get(name, "constexpr") for name in given}
        ones = [name for name, value in given.items() if value == 1 and not hasattr(value, "shape")]
        signature.update(dict.fromkeys(ones, "constexpr"))
        tiles = [value for name, value in given.items() if name not in self.types]
        key = repr((ones, tiles, self.options))
        kernel = self.device_caches[0].get(key) or self._do_compile(key, signature, given)
        if not warmup:
            grid = grid(given) if callable(grid) else grid
            x, y, z = (*grid, 1, 1)[:3]
            kernel.run(
                *(x, y, z, self.stream, kernel.function, kernel.packed_metadata, None, None, None),
                *given.values(),
            )
        return kernel


class Backend:
    """What Triton says of options that nobody asks for."""

    def backend(self, target: tuple[str, int]) -> Backend:
        """Of any target."""
        del target
        return self

    def parse_options(self, options: dict[str, Any]) -> Any:
        """The defaults."""
        return SimpleNamespace(**{"num_warps": 4, "num_stages": 3, "num_ctas": 1, **options})


class FakeEvents:
    """A GPU whose clock the test turns: events are done once the clock is past their time."""

    def __init__(self) -> None:
        self.now = 0.0
        """Of the GPU: what was launched is done up to here."""
        self.queued = 0.0
        """Until when there is work."""
        self.recorded = 0
        self.captures: set[int] = set()
        self.error: Exception | None = None
        self.free: list[float] = []
        self.lazy = False
        """Whether nothing is done before `catch_up`."""

    gpu = "a GPU of the test's"

    def work(self, microseconds: float) -> None:
        """A kernel is launched."""
        self.queued += microseconds
        if not self.lazy:
            self.now = self.queued

    def catch_up(self) -> None:
        """All that was launched is done."""
        self.now = self.queued

    def capturing(self, stream: int) -> bool:
        """Whether a graph is captured."""
        return stream in self.captures

    def record(self, stream: int) -> float:
        """When what is launched by now will be done."""
        assert stream not in self.captures, "an event in a graph"
        if self.error is not None:
            raise self.error
        self.recorded += 1
        return self.queued

    def elapsed(self, begin: float, end: float) -> float | None:
        """The time between, if both have passed."""
        assert not self.captures, "a query beside a capture"
        if self.error is not None:
            raise self.error
        return None if end > self.now else end - begin

    def release(self, *events: float) -> None:
        """No longer asked."""
        self.free.extend(events)

    def failure(self, stream: int) -> Any:
        """What the test says."""
        del stream
        return self.error
