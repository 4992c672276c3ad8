"""The cuTile kernels that ship, each with small inputs, its grid, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from kernel_numpy import Array, rounded
from stretto.kernel import Scalar

LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Case:
    """One kernel on one set of inputs."""

    arguments: Sequence[Any]
    """As the user's function has them, without constants."""
    grid: tuple[int, ...]
    expected: Mapping[int, Array]
    """What arguments are afterwards, by number."""
    tolerance: float


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def halves(*shape: int) -> Array:
    return normal(*shape).astype(np.float16)


def brains(seed: int, *shape: int) -> Array:
    made = np.random.default_rng(seed).standard_normal(shape)
    return rounded(made, Scalar("bf16"))


def matmul(grid: int) -> Case:
    a, b = halves(256, 192), halves(192, 256)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    return Case((a, b, np.zeros_like(a, shape=(256, 256))), (grid,), {2: wanted}, 0.05)


def fused() -> Case:
    a, b, bias = halves(128, 64), halves(64, 256), halves(256)
    total = a.astype(np.float32) @ b.astype(np.float32) + bias
    wanted = total / (1 + np.exp(-total))
    return Case((a, b, bias, np.zeros_like(a, shape=(128, 256))), (1, 2), {3: wanted}, 0.05)


def probabilities(q: Array, k: Array, *, causal: bool) -> tuple[Array, Array]:
    """Of each query and key, and the logarithm of each query's sum."""
    scores = np.einsum("hmd,hnd->hmn", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[1:], np.bool_)), scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    sums = np.exp(scores - top).sum(-1, keepdims=True)
    return np.exp(scores - top) / sums, (top + np.log(sums))[..., 0]


def forward(d: int, causal: bool) -> Case:
    q, k, v = (brains(seed, 2, 256, d) for seed in range(3))
    wanted = probabilities(q, k, causal=causal)[0] @ v
    return Case((q, k, v, np.zeros_like(q), LOG2_E / np.sqrt(d)), (2, 2), {3: wanted}, 0.03)


def backward(queries: bool) -> Case:
    q, k, v, do = (brains(seed, 1, 256, 128) for seed in range(4))
    weight = 1 / np.sqrt(128)
    p, lse = probabilities(q, k, causal=False)
    delta = (do * (p @ v)).sum(-1).astype(np.float32)
    norms = (lse * LOG2_E).astype(np.float32)
    ds = p * (np.einsum("hmd,hnd->hmn", do, v) - delta[..., None]) * weight
    given = (q, k, v, do, norms, delta, np.zeros_like(q))
    if queries:
        dq = np.einsum("hmn,hnd->hmd", ds, k)
        return Case((*given, weight * LOG2_E, weight), (2, 1), {6: dq}, 0.03)
    dk, dv = np.einsum("hmn,hmd->hnd", ds, q), np.einsum("hmn,hmd->hnd", p, do)
    more = (np.zeros_like(q), weight * LOG2_E, weight)
    return Case((*given, *more), (2, 1), {6: dk, 7: dv}, 0.03)


def layer_norm() -> Case:
    x, weight, bias = halves(3, 2576), halves(2576), halves(2577)[:2576].copy()
    wide = x.astype(np.float32)
    away = wide - wide.mean(1, keepdims=True)
    wanted = away / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * weight + bias
    return Case((x, weight, bias, np.zeros_like(x), 2576, 1e-5), (3,), {3: wanted}, 0.02)


def softmax() -> Case:
    x = halves(4, 2576)
    powers = np.exp(x.astype(np.float32))
    wanted = powers / powers.sum(1, keepdims=True)
    return Case((x, np.zeros_like(x)), (1,), {1: wanted}, 1e-4)


CASES: dict[str, Callable[[], Case]] = {
    "matmul": partial(matmul, 4),
    "matmul_persistent": partial(matmul, 3),
    "matmul_bias_silu": fused,
    "attention_forward_d64": partial(forward, 64, False),
    "attention_forward_d128": partial(forward, 128, False),
    "attention_forward_d64_causal": partial(forward, 64, True),
    "attention_forward_d128_causal": partial(forward, 128, True),
    "attention_backward": partial(backward, False),
    "attention_backward_dq": partial(backward, True),
    "layer_norm": layer_norm,
    "softmax": softmax,
}
"""By the name of the example."""
