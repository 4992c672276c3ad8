"""`@stretto.triton.pipeline(tune=…)`: the configuration of a launch is chosen, not given.

matmul[grid](a, b, c, M, N, K) ──► of BLOCK_M × … × depth × consumers, the fastest by the model
                                   └──► launched as if the user had given it
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from stretto.api.predicting import Given, KernelRanking
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.launching import Asked, current_device, exactly
from stretto.launching.launcher import READY
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
from stretto.triton.pipelining import Pipelined
from stretto.triton.reading import read
from stretto.triton.specializing import Specialized

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


class Tuned(Pipelined):
    """A `@triton.jit` function whose launches are in the configuration that was chosen for them."""

    def __init__(self, kernel: Any, asked: Asked, strict: bool, tuning: Tuning) -> None:
        self._measured = measured_of(tuning.tune)
        super().__init__(kernel, asked, strict)
        self._asked, self._strict, self._tuning = asked, strict, tuning
        self._configs = configurations(tuning.configs, self._names)
        unknown = [name for name in tuning.key if name not in self._names]
        if unknown:
            told = f"key has `{unknown[0]}`, which is no parameter of the kernel"
            raise StrettoError(f"{told}; it has {', '.join(self._names)}")
        self._chosen: dict[object, tuple[int, Pipelined | None]] = {}
        self._known: dict[object, tuple[int, Pipelined | None]] = {}
        self._made: dict[Asked, Pipelined] = {}

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
        number, pipelined = found
        launched = self.fn if pipelined is None else pipelined
        return launched.run(*args, grid=grid, warmup=False, **kwargs, **self._configs[number])

    def _found(
        self,
        device: int,
        target: tuple[str, int],
        grid: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> tuple[int, Pipelined | None]:
        """The configuration for a kind of arguments, and who launches it; None: Triton."""
        try:
            special = self._specialized(target, args, {**kwargs, **self._configs[0]})
        except Exception as error:  # Triton's own launch then says what is wrong, if it is
            self._launcher.refuse(error)
            return 0, None
        picked = repr([special.given.get(name) for name in self._tuning.key])
        signature = (device, target, special.key, picked)
        if signature not in self._chosen:
            try:
                self._chosen[signature] = self._choice(target, grid, args, kwargs, special)
            except Exception as error:  # whatever it is, the user's kernel runs
                self._launcher.refuse(error)
                self._chosen[signature] = 0, None
        return self._chosen[signature]

    def _choice(
        self,
        target: tuple[str, int],
        grid: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        first: Specialized,
    ) -> tuple[int, Pipelined | None]:
        asked = self._asked.on(f"{target[0]}:{target[1]}")
        full = [{**kwargs, **config} for config in self._configs]
        grids = [self._grid(grid, args, one) for one in full]
        given = _numbers(first.given)

        def one(number: int) -> tuple[Kernel, Sequence[int]]:
            special = self._specialized(target, args, full[number])
            return self._read(special, target)[1](), grids[number]

        def measure(choice: Choice) -> float:
            by = Pipelined(self.fn, resolved(asked, choice), strict=True)
            call = partial(by.run, *args, grid=grid, **full[choice.config])
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
            self._made[chosen] = Pipelined(self.fn, chosen, self._strict)
        return choice.config, self._made[chosen]


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of a launch's arguments, what trip counts may follow from: numbers, shapes of descriptors."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if type(value) in (int, float):
            found[name] = value
        elif hasattr(value, "block_shape"):
            found[name] = tuple(value.shape)
    return found
