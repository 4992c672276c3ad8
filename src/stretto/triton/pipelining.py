"""`@stretto.triton.pipeline`: a Triton kernel that is launched as ever, and runs by our schedules.

@stretto.triton.pipeline            matmul[grid](a, b, c, M, N, K, BLOCK_M=128, …)
@triton.jit                            │
def matmul(…): …                       ├──► TTIR for these arguments ──► Gluon ──► launched
                                       └──► cannot be done: a warning, and Triton's own kernel
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, overload

from stretto.api.emitting import EmitMode
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.launching import Asked, Launcher, Refused, current_device, exactly
from stretto.launching.compiling import spilled_by
from stretto.launching.tuning import HINT, Configs
from stretto.machine import Machine
from stretto.triton.reading import found_triton, ttir_kernel
from stretto.triton.specializing import Specialized, Specializer


@overload
def pipeline(kernel: Any, /) -> Pipelined: ...
@overload
def pipeline(
    *,
    machine: Machine | str | None = None,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    strict: bool = False,
    configs: Configs | None = None,
    tune: str | None = None,
    key: Sequence[str] = (),
    do_bench: Callable[[Callable[[], Any]], float] | None = None,
) -> Callable[[Any], Pipelined]: ...


def pipeline(
    kernel: Any = None,
    /,
    *,
    machine: Machine | str | None = None,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    strict: bool = False,
    configs: Configs | None = None,
    tune: str | None = None,
    key: Sequence[str] = (),
    do_bench: Callable[[Callable[[], Any]], float] | None = None,
) -> Any:
    """Launch a `@triton.jit` function as a kernel that Stretto pipelines.

    Stands directly above `@triton.jit`, alone or with options: those of `stretto emit`. The machine
    is that of the GPU, where none is given. What cannot be done runs as Triton compiles it, with
    one PipelineWarning a reason; `strict` raises it instead.

    With `tune`, the configuration is chosen at the first launch of a kind of arguments: of all
    `configs` (values of constexprs that launches then leave out), depths and numbers of consumers
    the first by the model (``model``), or the fastest of the first K (``measure:5``). `key` names
    arguments for whose values it is chosen anew; `do_bench` tells a call's milliseconds.
    """
    asked = Asked(machine, mode, consumers, depth)
    if tune is not None:
        from stretto.triton.tuning import Tuned, Tuning  # noqa: PLC0415 - it knows this one

        tuning = Tuning([{}] if configs is None else configs, tune, key, do_bench)
        tuned = partial(Tuned, asked=asked, strict=strict, tuning=tuning)
        return tuned if kernel is None else tuned(kernel)
    if configs is not None:
        raise StrettoError(f"configs are given, and tune is not; {HINT}")
    if kernel is None:
        return partial(Pipelined, asked=asked, strict=strict)
    return Pipelined(kernel, asked, strict)


class Pipelined:
    """A `@triton.jit` function with launches of ours; what else it has is still there."""

    def __init__(self, kernel: Any, asked: Asked, strict: bool) -> None:
        if not all(hasattr(kernel, name) for name in ("run", "params", "signature")):
            found = type(kernel).__name__
            raise StrettoError(f"pipeline stands directly above @triton.jit, not above a {found}")
        self.fn = kernel
        self.__name__: str = kernel.__name__
        self.__doc__ = kernel.__doc__
        self._launcher = Launcher(self.__name__, asked, strict, "Triton")
        self._specializers: dict[tuple[str, int], Specializer] = {}
        self._names: tuple[str, ...] = tuple(kernel.signature.parameters)
        self._defaults = {
            name: parameter.default
            for name, parameter in kernel.signature.parameters.items()
            if parameter.default is not parameter.empty
        }

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fn, name)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """A launch, as Triton's own; warming up is left to Triton."""
        if warmup:
            return self.fn.run(*args, grid=grid, warmup=True, **kwargs)
        device, target = current_device()
        exact = exactly(device, args, kwargs)
        bound = None if exact is None else self._launcher.ready(exact)
        if bound is None:
            own = partial(self._spilled, grid, args, kwargs)
            bound = self._bind(exact, target, args, kwargs, own)
        if isinstance(bound, Refused) or self._changed():
            return self.fn.run(*args, grid=grid, warmup=False, **kwargs)
        for hook in self.fn.pre_run_hooks:
            hook(*args, **kwargs)
        return bound.launch(self._grid(grid, args, kwargs))

    def _grid(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
        if callable(grid):
            named = dict(zip(self._names, args, strict=False))
            grid = grid({**self._defaults, **named, **kwargs})
        return tuple(grid)

    def _specialized(
        self, target: tuple[str, int], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Specialized:
        if target not in self._specializers:
            self._specializers[target] = Specializer(self.fn, target)
        return self._specializers[target](args, kwargs)

    def _bind(
        self,
        exact: object,
        target: tuple[str, int],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        own: Callable[[], int],
    ) -> Any:
        try:
            special = self._specialized(target, args, kwargs)
        except Exception as error:  # Triton's own launch then says what is wrong, if it is
            return self._launcher.refuse(error)
        called = f"{target[0]}:{target[1]}"
        read = partial(self._read, special, target)
        return self._launcher.bind(exact, (target, special.key), called, read, special.given, own)

    def _spilled(self, grid: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int:
        """Bytes that Triton's own kernel spills."""
        compiled = self.fn.run(*args, grid=grid, warmup=True, **kwargs)
        return spilled_by(compiled.asm["ptx"])

    def _read(
        self, special: Specialized, target: tuple[str, int]
    ) -> tuple[bytes, Callable[[], Kernel]]:
        _ = self.fn.cache_key  # has Triton note the global values that the kernel uses
        module = found_triton().ttir(self.fn, special.what, target)
        return module.content, partial(ttir_kernel, self.__name__, module)

    def _changed(self) -> bool:
        """Whether a global value is another than when the kernel was read; Triton says which."""
        used: Mapping[Any, Any] = self.fn.used_global_vals
        return any(space.get(name) != value for (name, _), (value, space) in used.items())
