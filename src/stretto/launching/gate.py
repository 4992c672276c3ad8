"""Whether a kernel of ours is worth a trial: what is predicted of it, and of the framework's own.

    ours       program, machine code ─► predict ─┐
    Triton's   cubin ────────────────► predict ─┴─► longer by more than both may be wrong: not tried

Only kernels whose products are recognized in both are judged; of all others a trial tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stretto.compile.emitted import EmittedKernel
from stretto.errors import StrettoError
from stretto.kernel import Kernel
from stretto.machine import Machine
from stretto.prediction.kernel_time import predict_kernel, predict_stock
from stretto.prediction.stock import Stock

MARGIN = 1.25
"""How many times as long ours must be predicted to take. Of 33 pairs that were measured on an H200
(benchmarks/gpu/results/stock-h200-2026-11-19.json) nine were predicted so slow; all of them took
1.3 to 2.5 times as long; where Triton's own spills nothing, ours was at most 1.14 times as fast,
against Triton's, as predicted."""

FURTHER = 1.12
"""How many times further predictions of ours fall short than those of Triton's own: medians of the
same pairs, 0.71 and 0.79 of what was measured. With the medians of all others, which of both is
faster is right in 22 of 24 pairs that differ by more than 10 %, as predicted in 19."""


def why_slower(
    made: EmittedKernel,
    stock: Stock,
    machine: Machine,
    grid: tuple[int, ...],
    given: Mapping[str, Any],
) -> str:
    """Why a kernel is not tried; empty where it may be faster, or nothing is predicted."""
    if stock.spilled:  # which takes longer than machine code tells
        return ""
    numbers = numbers_of(made.subject.kernel, given)
    try:
        ours = predict_kernel(made.subject, machine, grid, numbers).seconds
        theirs = predict_stock(made.subject, stock, machine, grid, numbers).seconds
    except StrettoError:
        return ""
    if FURTHER * ours <= MARGIN * theirs:
        return ""
    return f"predicted to take {ours * 1e6:.3g} µs, Triton's own kernel {theirs * 1e6:.3g}"


def numbers_of(kernel: Kernel, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of a launch's arguments those that trip counts follow from: numbers, descriptors' shapes."""
    known = {parameter.name for parameter in kernel.parameters}
    return {
        name: tuple(value.shape) if hasattr(value, "base") else value
        for name, value in given.items()
        if name in known and (type(value) in (int, float) or hasattr(value, "base"))
    }
