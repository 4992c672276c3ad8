"""Decorated kernels where torch is: custom operators, helpers, autotuners.

No GPU is needed: what is looked at is whether torch and Triton still know the kernel for one.
"""

# Triton and torch have no types, and are not installed where the other tests run.
# pyright: basic, reportMissingImports=false, reportInvalidTypeForm=false

from __future__ import annotations

import pytest

import stretto.triton

torch = pytest.importorskip("torch", reason="torch is not installed")
triton = pytest.importorskip("triton", reason="Triton is not installed: make test-gpu has it")
tl = pytest.importorskip("triton.language")


@stretto.triton.pipeline
@triton.jit
def doubled(x):
    return x * 2


@stretto.triton.pipeline
@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):  # noqa: N803, ARG001
    for at in range(0, n, BLOCK):
        where = at + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + where, mask=where < n)
        tl.store(y_ptr + where, doubled(x), mask=where < n)


def test_a_decorated_kernel_is_a_kernel_for_torch() -> None:
    wrapped = torch.library.wrap_triton(scaled)
    assert wrapped is not None
    assert isinstance(scaled, triton.runtime.autotuner.Autotuner)


def test_a_decorated_helper_is_called_by_other_kernels() -> None:
    kernel = stretto.triton.read(
        scaled.fn.fn,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32"},
        constexprs={"BLOCK": 64, "EVEN": True},
    )
    assert "arith.mulf" in str(kernel) or kernel.name == "scaled"


def test_a_decorated_kernel_is_traced() -> None:
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table  # noqa: PLC0415

    assert kernel_side_table.get_kernel(kernel_side_table.add_kernel(scaled.fn.fn)) is scaled.fn.fn
