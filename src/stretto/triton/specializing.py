"""What Triton compiles a kernel for, from the arguments of a launch: asked of Triton itself.

matmul[grid](a, b, c, M, N, K, BLOCK=128, num_warps=8)
  ──► a: *fp16, a multiple of 16; M: i32, a multiple of 16; K: 1, a constant; BLOCK: 128
"""

# Triton has no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stretto.errors import StrettoError
from stretto.triton.reading import Specialization, found_triton

CHOSEN = ("num_warps", "num_stages", "maxnreg")
"""Options of a launch that a schedule answers."""


@dataclass(frozen=True)
class Specialized:
    """A launch as Triton sees it."""

    what: Specialization
    given: Mapping[str, Any]
    """Every parameter's argument, defaults among them."""
    key: str


class Specializer:
    """Asks Triton about the launches of one kernel on one target."""

    def __init__(self, kernel: Any, target: tuple[str, int]) -> None:
        jit: Any = import_module("triton.runtime.jit")
        self._kernel = kernel
        self._knobs: Any = import_module("triton.knobs")
        self._backend = found_triton().backend(target)
        self._binder = jit.create_function_from_signature(
            kernel.signature, kernel.params, self._backend
        )
        self._plain: dict[str, Any] = vars(self._backend.parse_options({}))

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Specialized:
        """What a launch is compiled for; StrettoError where our kernels have no such thing."""
        given, special, options = self._binder(*args, **kwargs)
        if getattr(self._kernel, "debug", None) or self._knobs.runtime.debug:
            options = {"debug": True, **options}
        for name, value in options.items():
            if name not in CHOSEN and value != self._plain.get(name):
                raise StrettoError(f"the launch asks for {name}={value}, which is not emitted")
        names: list[str] = list(given)
        signature: dict[str, str] = {}
        constexprs: dict[tuple[int, ...], Any] = {}
        attributes: dict[tuple[int, ...], list[list[Any]]] = {}
        for number, (name, (type, *more)) in enumerate(zip(names, special, strict=True)):
            if not isinstance(type, str):
                raise StrettoError(f"`{name}` is a tuple; give its parts one by one")
            signature[name] = type
            if type == "constexpr":
                constexprs[(number,)] = given[name]
            elif more and isinstance(more[0], str):
                attributes[(number,)] = self._backend.parse_attr(more[0])
        # A function that is given as a constant counts by what it is, not by what it is called.
        told = [(type, getattr(value, "cache_key", value)) for type, value, *_ in special]
        key = f"{told!r} {sorted(options.items())!r}"
        return Specialized(Specialization(signature, constexprs, attributes, options), given, key)
