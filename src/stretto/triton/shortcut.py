"""Launches that are decided, without asking again what Triton asks at each.

    kernel[grid](a, b, M, …) ──► grid, types, numbers and constants as before? ──► launched
                                    │ no
                                    └──► Triton's own way, where we stand behind its cache

Triton finds out what a launch is specialized for by looking at each argument, and prints the
options of the launch for a key. What a decided launch depends on can be compared in one step. A
kernel whose launches are seldom the same gets Triton's own way back.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stretto.triton.dispatch import Dispatch

DISPATCH = "_stretto_dispatch"
"""The attribute of what Triton compiled: who decides its launches."""
KEPT = 4096
"""Launches that are kept; beyond, all are forgotten and found again."""
SELDOM = 64
"""Launches in a row that were not kept, after which a kernel has Triton's own way back."""
RESERVED = frozenset({"grid", "warmup", "options", "self"})

SOURCE = """
def run({parameters}, *, grid, warmup=False, **options):
    key = None
    if not warmup:
        try:
            {addresses}
            at = grid({named}) if callable(grid) else grid
            if at.__class__ is not tuple:
                at = tuple(at)
            device = get_device()
            key = (
                device, at, function.hash, {key}
            )
            if options:
                key = (key, tuple(options.items()))
            found = known(key)
            if (
                found is not None
                and not ({aligned}) & 15
                and not function.pre_run_hooks
                and not function.used_global_vals
                and not runtime.debug
                and not (runtime.launch_enter_hook.calls or runtime.launch_exit_hook.calls)
            ):
                kernel, launch = found
                x, y, z = at if len(at) == 3 else (*at, 1, 1)[:3]
                launch(
                    x, y, z, get_stream(device), kernel.function, kernel.packed_metadata,
                    None, None, None, {every}
                )
                return kernel
            if ({aligned}) & 15:
                key = None
        except (AttributeError, TypeError):  # arguments or hooks of another kind
            key = None
    return missed(key, ({every},), grid, warmup, options)
"""


def shorten(dispatch: Dispatch) -> None:
    """Give a function a shorter way to its launches, where its signature lets us."""
    function: Any = dispatch.function
    launched = dispatch.launched
    parameters = list(function.signature.parameters.values())
    kinds = {parameter.kind for parameter in parameters}
    names = [parameter.name for parameter in parameters]
    if (
        launched is None
        or "run" in vars(function)
        or kinds != {inspect.Parameter.POSITIONAL_OR_KEYWORD}
        or RESERVED.intersection(names)
        or any(name.startswith("at_") or name in _SPACE for name in names)
        or launched.descriptors
        or not launched.tensors
    ):
        return
    try:
        active = import_module("triton.runtime").driver.active
        runtime = import_module("triton.knobs").runtime
        get_device, get_stream = active.get_current_device, active.get_current_stream
    except (ImportError, AttributeError):  # a Triton that we do not know
        return
    tensors = [names[n] for n in launched.tensors]
    others = [name for name in names if name not in tensors]
    space: dict[str, Any] = {
        "function": function,
        "runtime": runtime,
        "get_device": get_device,
        "get_stream": get_stream,
    }
    shortcut = _Shortcut(function)
    space |= {"known": shortcut.known.get, "missed": shortcut.missed}
    signature: list[str] = []
    for parameter in parameters:
        if parameter.default is parameter.empty:
            signature.append(parameter.name)
        else:
            space[f"default_{parameter.name}"] = parameter.default
            signature.append(f"{parameter.name}=default_{parameter.name}")
    key = [f"{n}.dtype" for n in tensors] + others + [f"{n}.__class__" for n in others]
    source = SOURCE.format(
        parameters=", ".join(signature),
        addresses="; ".join(f"at_{name} = {name}.data_ptr()" for name in tensors),
        aligned=" | ".join(f"at_{name}" for name in tensors),
        named="{" + ", ".join(f"{name!r}: {name}" for name in names) + "}",
        key=", ".join(key),
        every=", ".join(names),
    )
    exec(source, space)
    function.run = space["run"]


_SPACE = frozenset(
    {"key", "device", "found", "kernel", "launch", "x", "y", "z", "at", "function", "known"}
    | {"runtime", "get_device", "get_stream", "missed"}
)
"""Names of a shortcut's own."""


def lengthen(function: Any) -> None:
    """Triton's own way again."""
    vars(function).pop("run", None)


class _Shortcut:
    """What one function has been launched with."""

    def __init__(self, function: Any) -> None:
        self.known: dict[object, tuple[Any, Callable[..., object]]] = {}
        self._function = function
        self._run: Callable[..., Any] = function.run
        self._seldom = 0

    def missed(
        self, key: Any, values: tuple[Any, ...], grid: Any, warmup: bool, options: Any
    ) -> Any:
        """Triton's own way; what comes of it is kept, once it is decided."""
        kernel = self._run(*values, grid=grid, warmup=warmup, **options)
        dispatch: Dispatch | None = None if kernel is None else vars(kernel).get(DISPATCH)
        launch = None
        if key is not None and dispatch is not None:
            _, at, *_ = key[0] if options else key
            launch = dispatch.decided((*at, 1, 1)[:3], values)
        if launch is not None:
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[key] = kernel, launch
            self._seldom = 0
        elif not warmup:
            self._seldom += 1
            if self._seldom >= SELDOM:
                lengthen(self._function)
        return kernel
