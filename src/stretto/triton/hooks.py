"""Where we come in: after Triton has compiled a kernel, and before it launches it first.

    JITFunction._do_compile ──► CompiledKernel ──► its launcher is made ──► Dispatch in its place

The kernel of the user stays the object that it was, so that whatever else looks at it (an
autotuner, another kernel that calls it, torch.compile) sees nothing new.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import wraps
from typing import Any

from stretto.triton.autotuner import watch_tuners
from stretto.triton.dispatch import Dispatch
from stretto.triton.settings import Settings

MARK = "_stretto"
"""The attribute of a kernel that is to be pipelined: its settings."""
FOR_ALL: list[Callable[[Any], Settings | None]] = []
"""Gives the settings of kernels that are not marked: what is installed."""
DISPATCHES: list[weakref.ref[Dispatch]] = []
"""Of all kernels that were taken."""


def hook(kernel: Any, settings: Settings) -> None:
    """Have the launches of a `@triton.jit` function decided by us from its next compilation on."""
    setattr(kernel, MARK, settings)
    watch(type(kernel))
    watch_tuners()


def watch(kind: type) -> None:
    """See what functions of a class compile."""
    owner = next(each for each in kind.__mro__ if "_do_compile" in vars(each))
    original = vars(owner)["_do_compile"]
    if hasattr(original, MARK):
        return

    @wraps(original)
    def compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = original(self, *args, **kwargs)
        settings = _settings(self)
        if settings is not None:
            _adopt(kernel, settings)
        return kernel

    setattr(compiled, MARK, True)
    setattr(owner, "_do_compile", compiled)  # noqa: B010 - of no class that we know


def restore_all() -> None:
    """Give all kernels that were taken their own launchers back."""
    for reference in DISPATCHES:
        found = reference()
        if found is not None:
            found.restore()
    DISPATCHES.clear()


def _settings(function: Any) -> Settings | None:
    if os.environ.get("STRETTO") == "0":
        return None
    is_gluon = getattr(function, "is_gluon", None)
    if is_gluon is not None and is_gluon():
        return None
    own: Settings | None = vars(function).get(MARK)
    if own is None and FOR_ALL:
        own = FOR_ALL[-1](function)
    return own


def _adopt(kernel: Any, settings: Settings) -> None:
    """Stand where the launcher of a compiled kernel will be, once it is made."""
    if not all(hasattr(kernel, name) for name in ("_init_handles", "_run", "src", "asm")):
        return  # of an asynchronous compilation, or of a Triton that we do not know
    initialize = kernel._init_handles

    def initialized() -> None:
        loaded = kernel.module is not None
        initialize()
        if not loaded:
            del kernel._init_handles  # the class's own again
            dispatch = Dispatch(kernel, settings)
            dispatch.take()
            DISPATCHES.append(weakref.ref(dispatch))

    if kernel.module is None:
        kernel._init_handles = initialized
