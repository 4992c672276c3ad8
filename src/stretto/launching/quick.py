"""Launches of one kind, ready for any addresses: a function that asks as little as it can.

    arguments(…) of a first launch ──► which of what the kernel takes is an address, a descriptor of
                                       an address, or the same in every launch of the kind
    ──► def launch(x, y, z, stream, …, a, b, c, M, …): three addresses, compared, handed on

What is written must overlap nothing: that is compared for each launch. Descriptors are encoded once
an address. What is not as in the first launch (an address that is no multiple of 16, a tensor with
gaps) goes another, slower way.
"""

# Triton has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any

from stretto.launching.loading import Bound, Tensor, TensorView

HEAD = ("x", "y", "z", "stream", "function", "packed", "metadata", "enter", "exit")
"""What Triton hands a launcher before the arguments."""
DESCRIPTORS = 4096
"""That are kept of each parameter; beyond, all are forgotten."""
ALIGNED = 16

Launch = Callable[..., object]


@dataclass(frozen=True)
class Guard:
    """Who answers for a launch that fails."""

    last: list[Any]
    """Has who launched last."""
    owner: Any
    counter: list[int]
    """Of launches."""
    failed: Callable[[Exception, int], BaseException]
    """What is raised where a launch on a stream has raised."""


def quick_launch(
    bound: Bound,
    grid: tuple[int, ...],
    names: Sequence[str],
    given: Mapping[str, Any],
    slowly: Launch,
    guard: Guard,
) -> Launch:
    """Launches of the kind that `bound` is the first of; `slowly` takes what is not like it."""
    loaded, launcher = bound.loaded, getattr(bound.compiled, "run", None)
    if launcher is None:
        return slowly
    tensors = {name: value for name, value in bound.values.items() if isinstance(value, Tensor)}
    if any(isinstance(value, TensorView) for value in bound.values.values()):
        return slowly  # the user's own descriptors
    if not all(hasattr(given[name], "nbytes") for name in tensors):
        return slowly
    space: dict[str, Any] = {"slowly": slowly, "launcher": launcher}
    space |= {"last": guard.last, "owner": guard.owner, "failed": guard.failed}
    space["counter"] = guard.counter
    raw = _raw(launcher)
    places = {id(value): name for name, value in tensors.items()}
    taken: list[str] = []
    described: list[str] = []
    metadata = iter(getattr(bound.compiled.metadata, "tensordesc_meta", None) or ())
    blocks, tiles = bound.work(grid)
    every_value: tuple[Any, ...] = (*bound.taken, *tiles, loaded.options["num_warps"])
    for number, value in enumerate(every_value):
        if isinstance(value, Tensor):
            if id(value) not in places:
                return slowly
            taken.append(f"at_{places[id(value)]}")
        elif hasattr(value, "block_shape"):
            if id(value.base) not in places:
                return slowly
            base = places[id(value.base)]
            encode, more = _encoder(value, next(metadata, None), raw is not None)
            space |= {f"known_{number}": {}, f"encode_{number}": encode}
            described += [
                f"    described_{number} = known_{number}.get(at_{base})",
                f"    if described_{number} is None:",
                f"        if len(known_{number}) >= {DESCRIPTORS}:",
                f"            known_{number}.clear()",
                f"        described_{number} = encode_{number}(at_{base})",
                f"        known_{number}[at_{base}] = described_{number}",
            ]
            taken += [f"described_{number}", *more]
        else:
            space[f"constant_{number}"] = value
            taken.append(f"constant_{number}")
    parameters = [f"p_{name}" if name in tensors else f"_{name}" for name in names]
    every = ", ".join((*HEAD, *parameters))
    lines = [f"def launch({every}):"]
    lines += [f"    at_{name} = p_{name}.data_ptr()" for name in tensors]
    lines += [
        "    try:",
        "        hooked = enter is not None and (enter.calls or exit.calls)",
        "    except AttributeError:  # a hook that is no chain of hooks",
        "        hooked = True",
        f"    if hooked or {_unlike(loaded.written, tensors)}:",
        f"        return slowly({every})",
        *described,
    ]
    space |= {"compiled_function": bound.compiled.function}
    space |= {"compiled_packed": bound.compiled.packed_metadata}
    rest = ", ".join(taken)
    at = ", ".join(str(int(n)) for n in (*blocks, 1, 1)[:3])
    if raw is None:
        head = f"{at}, stream, compiled_function, compiled_packed, None, None, None"
        call = f"launcher({head}, {rest})"
    else:
        space |= {"raw": raw, "cooperative": launcher.launch_cooperative_grid}
        space["dependent"] = launcher.launch_pdl
        head = f"{at}, stream, compiled_function, cooperative, dependent, None, None"
        call = f"raw({head}, compiled_packed, None, None, None, {rest})"
    lines += [
        "    last[0] = owner",
        "    counter[0] += 1",
        "    try:",
        f"        {call}",
        "    except Exception as error:",
    ]
    lines += ["        raise failed(error, stream) from error"]
    exec("\n".join(lines), space)  # names are those of parameters, numbers our own
    return space["launch"]


def _unlike(written: frozenset[str], tensors: Mapping[str, Tensor]) -> str:
    """What a launch must not be: a condition on its addresses."""
    aligned = [f"at_{name}" for name, value in tensors.items() if value.address % ALIGNED == 0]
    parts = [f"({' | '.join(aligned)}) & {ALIGNED - 1}"] if aligned else []
    seen: set[frozenset[str]] = set()
    for one in tensors:
        for other in tensors:
            pair = frozenset((one, other))
            if one not in written or one == other or pair in seen:
                continue
            seen.add(pair)
            parts.append(
                f"(at_{one} < at_{other} + p_{other}.nbytes"
                f" and at_{other} < at_{one} + p_{one}.nbytes)"
            )
    if seen:  # what has gaps reaches further than its bytes
        parts += [f"not p_{name}.is_contiguous()" for name in tensors]
    return " or ".join(parts) or "False"


def _raw(launcher: Any) -> Any:
    """The C function under a launcher of Triton 3.6, where nothing else has to be done."""
    scratch = ("global_scratch_size", "profile_scratch_size")
    if getattr(launcher, "arg_annotations", None) is not None:
        return None  # of another Triton, which takes arguments otherwise
    if not all(getattr(launcher, name, 1) == 0 for name in scratch):
        return None
    if not all(hasattr(launcher, n) for n in ("launch", "launch_cooperative_grid", "launch_pdl")):
        return None
    found = launcher.launch
    if getattr(found, "__closure__", None):
        cells = dict(zip(found.__code__.co_freevars, found.__closure__, strict=True))
        found = cells["launcher"].cell_contents if "launcher" in cells else None
    return found


def _encoder(
    descriptor: Any, metadata: Mapping[str, Any] | None, raw: bool
) -> tuple[Callable[[int], Any], list[str]]:
    """What makes a descriptor of an address, and what a launcher wants to know beside it."""
    if not raw or metadata is None:

        def made(address: int) -> Any:
            return replace(descriptor, base=replace(descriptor.base, address=address))

        return made, []
    driver: Any = import_module("triton.backends.nvidia.driver")
    fill = import_module("triton.runtime").driver.active.utils.fill_tma_descriptor
    shape, strides = list(descriptor.shape), list(descriptor.strides)
    if metadata["fp4_padded"]:
        shape[-1] *= 2
    about = (
        metadata["swizzle"],
        metadata["elem_size"],
        driver.TMA_DTYPE_DEVICE_TO_HOST[metadata["elem_type"]],
        metadata["block_size"],
        shape,
        strides,
        1 if descriptor.padding == "nan" else 0,
    )
    return partial(_filled, fill, about), [str(int(n)) for n in (*shape, *strides)]


def _filled(fill: Callable[..., Any], about: tuple[Any, ...], address: int) -> Any:
    return fill(address, *about)
