"""`@stretto.triton.pipeline`: a kernel that is launched as ever, and by us where that is faster.

@stretto.triton.pipeline            matmul[grid](a, b, c, M, N, K, BLOCK_M=128, …)
@triton.jit                            │
def matmul(…): …                       ├──► Triton compiles it and launches it, as ever
                                       └──► beside it: TTIR ──► Gluon, tried against Triton's own
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.machine import Machine
from stretto.triton.hooks import hook
from stretto.triton.settings import Settings

if TYPE_CHECKING:  # what emits and what ranks takes long to load
    from stretto.compile.emitted import EmitMode
    from stretto.kernel.configuration import Blocks
    from stretto.launching.tuning import Configs

Check = Literal["first"]
Jit = TypeVar("Jit")


@overload
def pipeline(kernel: Jit, /) -> Jit: ...
@overload
def pipeline(
    *,
    machine: Machine | str | None = None,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    blocks: Blocks | None = None,
    strict: bool = False,
    trial: bool = True,
    wait: bool = False,
    check: Check | None = None,
    configs: Configs | None = None,
    tune: str | None = None,
    key: Sequence[str] = (),
    do_bench: Callable[[Callable[[], Any]], float] | None = None,
) -> Callable[[Any], Any]: ...


def pipeline(
    kernel: Any = None,
    /,
    *,
    machine: Machine | str | None = None,
    mode: EmitMode | None = None,
    consumers: int | None = None,
    depth: int | None = None,
    blocks: Blocks | None = None,
    strict: bool = False,
    trial: bool = True,
    wait: bool = False,
    check: Check | None = None,
    configs: Configs | None = None,
    tune: str | None = None,
    key: Sequence[str] = (),
    do_bench: Callable[[Callable[[], Any]], float] | None = None,
) -> Any:
    """Have a `@triton.jit` function run as a kernel that Stretto pipelines, where that is faster.

    Stands above `@triton.jit`, above or below `@triton.autotune` and `@triton.heuristics`, alone or
    with options: those of `stretto emit`. The machine is that of the GPU, where none is given. The
    kernel itself stays what it is. Ours is made in another process while Triton's own runs; then
    the two take turns until one is faster. What cannot be done runs as Triton compiles it, with one
    PipelineWarning a reason.

    `wait` has the first launch wait until ours is made; without `trial` ours then runs untimed;
    `check="first"` runs both on copies at the first launch of a kind, and compares; `strict` waits,
    and raises what could not be done.

    With `tune`, the configuration is chosen at the first launch of a kind of arguments: of all
    `configs` (values of constexprs that launches then leave out), depths and numbers of consumers
    the first by the model (``model``), or the fastest of the first K (``measure:5``). `key` names
    arguments for whose values it is chosen anew; `do_bench` tells a call's milliseconds.
    """
    if check not in (None, "first"):
        raise StrettoError(f'check={check!r} is not known; give check="first", or leave it out')
    asked = Asked(machine, mode, consumers, depth, blocks)
    settings = Settings(asked, strict, trial, wait, check is not None)
    if tune is not None:
        from stretto.triton.tuning import Tuned, Tuning  # noqa: PLC0415 - it knows this one

        tuning = Tuning([{}] if configs is None else configs, tune, key, do_bench)
        tuned = partial(Tuned, settings=settings, tuning=tuning)
        return tuned if kernel is None else tuned(kernel)
    if configs is not None:
        from stretto.launching.tuning import HINT  # noqa: PLC0415 - slow to load

        raise StrettoError(f"configs are given, and tune is not; {HINT}")
    if kernel is None:
        return partial(_hooked, settings=settings)
    return _hooked(kernel, settings)


def _hooked(kernel: Any, settings: Settings) -> Any:
    """The kernel itself, whose launches are decided by us."""
    if os.environ.get("STRETTO") != "0" and type(kernel).__name__ != "InterpretedFunction":
        hook(jitted(kernel), settings)
    return kernel


def jitted(kernel: Any) -> Any:
    """The `@triton.jit` function under autotuners and heuristics."""
    found = kernel
    while not hasattr(found, "_do_compile") and hasattr(found, "fn"):
        found = found.fn
    if not all(hasattr(found, name) for name in ("_do_compile", "run", "params", "signature")):
        kind = type(kernel).__name__
        raise StrettoError(f"pipeline stands above @triton.jit, not above a {kind}")
    return found
