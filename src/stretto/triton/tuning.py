"""`@stretto.triton.pipeline(tune=…)`: the configuration of a launch is chosen, not given.

matmul[grid](a, b, c, M, N, K) ──► of BLOCK_M × … × depth × consumers, the fastest by the model
                                   └──► launched as if the user had given it
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from stretto.api.predicting import Given, KernelRanking
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.launching import Asked, current_device, exactly
from stretto.launching.launcher import READY, Teller
from stretto.launching.tuning import (
    OPTIONS,
    SETTLED,
    Choice,
    Configs,
    choose,
    configurations,
    measured_of,
    ranked,
    resolved,
)
from stretto.machine import Machine
from stretto.triton.hooks import hook
from stretto.triton.pipelining import jitted
from stretto.triton.reading import found_triton, read, ttir_kernel
from stretto.triton.settings import Settings
from stretto.triton.shortcut import lengthen
from stretto.triton.specializing import Specialized, Specializer

Bench = Callable[[Callable[[], Any]], float]
"""Milliseconds of a call."""


def rank(
    kernel: Any,
    machine: Machine | str | None = None,
    *,
    signature: Mapping[str, str],
    configs: Configs,
    grid: Sequence[int] | Callable[[dict[str, Any]], Sequence[int]],
    arguments: Given | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    keep: int | None = None,
    target: tuple[str, int] = ("cuda", 90),
) -> KernelRanking:
    """A `@triton.jit` function in all configurations of its constexprs, the fastest first.

    `signature` is that of `read`; `grid` is a tuple or a function of constexprs and arguments, as
    for a launch. With `keep`, what cannot be among the first so many is not looked at.
    """
    given = dict(arguments or {})
    some = configurations(configs, list(getattr(kernel, "arg_names", ())))

    def one(number: int) -> tuple[Kernel, Sequence[int]]:
        config = some[number]
        options = {name: value for name, value in config.items() if name in OPTIONS}
        tiles = {name: value for name, value in config.items() if name not in OPTIONS}
        found = read(kernel, signature=signature, constexprs=tiles, target=target, **options)
        return found, tuple(grid({**given, **some[number]}) if callable(grid) else grid)

    asked = Asked(machine, None, consumers, depth).on(f"{target[0]}:{target[1]}")
    return ranked(some, one, asked, given, keep)


@dataclass(frozen=True)
class Tuning:
    """What is open, and how it is decided."""

    configs: Configs
    tune: str
    key: Sequence[str]
    """Arguments for whose values a choice is made anew."""
    do_bench: Bench | None


class Tuned:
    """A `@triton.jit` function whose launches are in the configuration that was chosen for them."""

    def __init__(self, kernel: Any, settings: Settings, tuning: Tuning) -> None:
        self._measured = measured_of(tuning.tune)
        self.fn = jitted(kernel)
        self.__name__: str = kernel.__name__
        self.__doc__ = kernel.__doc__
        self._settings, self._tuning = settings, tuning
        self._names: tuple[str, ...] = tuple(self.fn.signature.parameters)
        self._defaults = {
            name: parameter.default
            for name, parameter in self.fn.signature.parameters.items()
            if parameter.default is not parameter.empty
        }
        self._configs = configurations(tuning.configs, self._names)
        unknown = [name for name in tuning.key if name not in self._names]
        if unknown:
            told = f"key has `{unknown[0]}`, which is no parameter of the kernel"
            raise StrettoError(f"{told}; it has {', '.join(self._names)}")
        self._specializers: dict[tuple[str, int], Specializer] = {}
        self._told = Teller(self.__name__, settings.strict, "Triton")
        self._chosen: dict[object, tuple[int, Any]] = {}
        self._known: dict[object, tuple[int, Any]] = {}
        self._made: dict[Asked, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.fn, name)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return partial(self.run, grid=grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """A launch without its configuration; warming up is Triton's, in the first."""
        twice = [name for name in self._configs[0] if name in kwargs]
        if twice:
            told = f"`{twice[0]}` is given by the launch and by configs"
            raise StrettoError(f"{told}; leave it out of one of them")
        if warmup:
            return self.fn.run(*args, grid=grid, warmup=True, **kwargs, **self._configs[0])
        device, target = current_device()
        exact = exactly(device, args, kwargs)
        found = None if exact is None else self._known.get(exact)
        if found is None:
            found = self._found(device, target, grid, args, kwargs)
            if exact is not None:
                if len(self._known) >= READY:
                    self._known.clear()
                self._known[exact] = found
        number, kernel = found
        return kernel.run(*args, grid=grid, warmup=False, **kwargs, **self._configs[number])

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

    def _found(
        self,
        device: int,
        target: tuple[str, int],
        grid: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[int, Any]:
        """The configuration for a kind of arguments, and what is launched."""
        try:
            special = self._specialized(target, args, {**kwargs, **self._configs[0]})
        except Exception as error:  # Triton's own launch then says what is wrong, if it is
            self._told.refuse(error)
            return 0, self.fn
        picked = repr([special.given.get(name) for name in self._tuning.key])
        signature = (device, target, special.key, picked)
        if signature not in self._chosen:
            try:
                self._chosen[signature] = self._choice(target, grid, args, kwargs, special)
            except Exception as error:  # whatever it is, the user's kernel runs
                self._told.refuse(error)
                self._chosen[signature] = 0, self.fn
        return self._chosen[signature]

    def _choice(
        self,
        target: tuple[str, int],
        grid: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        first: Specialized,
    ) -> tuple[int, Any]:
        asked = self._settings.asked.on(f"{target[0]}:{target[1]}")
        full = [{**kwargs, **config} for config in self._configs]
        grids = [self._grid(grid, args, one) for one in full]
        given = _numbers(first.given)

        def one(number: int) -> tuple[Kernel, Sequence[int]]:
            special = self._specialized(target, args, full[number])
            module = found_triton().ttir(self.fn, special.what, target)
            return ttir_kernel(self.__name__, module), grids[number]

        def measure(choice: Choice) -> float:
            by = copied(self.fn)
            hook(by, Settings(resolved(asked, choice), strict=True, trial=False))
            call = partial(by.run, *args, grid=grid, warmup=False, **full[choice.config])
            bench = self._tuning.do_bench or import_module("triton.testing").do_bench
            return float(bench(call))

        told = [
            sorted((name, getattr(value, "cache_key", value)) for name, value in config.items())
            for config in self._configs
        ]
        about = (self.fn.cache_key, first.key, told, grids, given, self._measured)
        key = asked.key(self.__name__, repr(about).encode())
        settle = 0 if self._measured else SETTLED
        ranking = partial(ranked, self._configs, one, asked, given, settle=settle)
        choice = choose(self.__name__, key, self._measured, ranking, self._configs, measure)
        chosen = resolved(asked, choice)
        if chosen not in self._made:
            self._made[chosen] = copied(self.fn)
            hook(self._made[chosen], replace(self._settings, asked=chosen))
        return choice.config, self._made[chosen]


def copied(kernel: Any) -> Any:
    """A `@triton.jit` function of its own, which has compiled nothing yet."""
    found = copy(kernel)
    lengthen(found)
    if hasattr(found, "device_caches"):
        found.device_caches = defaultdict(found.create_binder)
    return found


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of a launch's arguments, what trip counts may follow from: numbers, shapes of descriptors."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if type(value) in (int, float):
            found[name] = value
        elif hasattr(value, "block_shape"):
            found[name] = tuple(value.shape)
    return found
