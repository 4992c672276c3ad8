"""The Triton kernels that ship, each with small inputs, its grid, and what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stretto.simulation.real import rounded

Array = NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One kernel on one set of inputs."""

    inputs: Mapping[str, Any]
    grid: tuple[int, ...]
    expected: Mapping[str, Array]
    tolerance: float


def _random(seed: int, *shape: int, element: str = "f16", scale: float = 1.0) -> Array:
    made = np.random.default_rng(seed).standard_normal(shape).astype(np.float32) * scale
    return rounded(np.asarray(made, dtype=np.float32), element)


def _product(rows: int, columns: int, depth: int) -> tuple[Array, Array, Array]:
    a, b = _random(1, rows, depth), _random(2, depth, columns)
    return a, b, a @ b


def matmul_descriptors() -> Case:
    a, b, c = _product(256, 128, 320)
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros_like(c), "M": 256, "N": 128, "K": 320}
    return Case(inputs, (2, 1), {"c_ptr": c}, 0.05)


def matmul_pointers() -> Case:
    rows, columns, depth = 160, 144, 336
    a, b, c = _product(rows, columns, depth)
    sizes = {"M": rows, "N": columns, "K": depth}
    strides = {"stride_am": depth, "stride_bk": columns, "stride_cm": columns}
    # The last step asks for rows of B behind its end, under a mask that is off.
    inputs = {"a_ptr": a, "b_ptr": b, "c_ptr": np.zeros_like(c), **sizes, **strides}
    return Case(inputs, (4,), {"c_ptr": c}, 0.05)


def matmul_persistent() -> Case:
    rows, columns, depth = 256, 384, 192
    a, b = _random(1, rows, depth), _random(2, columns, depth)
    c = a @ b.T
    inputs = {"a_desc": a, "b_desc": b, "c_desc": np.zeros_like(c)}
    inputs |= {"M": rows, "N": columns, "K": depth}
    return Case(inputs, (4,), {"c_desc": c}, 0.05)


def matmul_fused() -> Case:
    rows, columns, depth = 160, 144, 208
    a, b, c = _product(rows, columns, depth)
    bias = _random(3, columns)
    total = c + bias
    with np.errstate(over="ignore"):
        made = total / (1 + np.exp(-total))
    inputs = {"a_ptr": a, "b_ptr": b, "bias_ptr": bias, "c_ptr": np.zeros_like(c)}
    inputs |= {"M": rows, "N": columns, "K": depth}
    return Case(inputs, (2, 2), {"c_ptr": made}, 0.05)


_HEADS, _LENGTH = 2, 256


def _attention(depth: int, causal: bool) -> dict[str, Array]:
    q, k, v = (
        _random(s, _HEADS, _LENGTH, depth, element="bf16").astype(np.float64) for s in (1, 2, 3)
    )
    scale = float(np.float32(np.log2(np.e) / np.sqrt(depth)))
    scores = q @ np.swapaxes(k, 1, 2) * scale
    if causal:
        scores = np.where(np.tri(_LENGTH, dtype=bool), scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    p = np.exp2(scores - highest)
    weight = p.sum(-1, keepdims=True)
    lse = (highest + np.log2(weight))[..., 0]
    return {"q": q, "k": k, "v": v, "o": p / weight @ v, "lse": lse, "p": p / weight}


def _flat(array: Array) -> Array:
    return array.reshape(-1, array.shape[-1]).astype(np.float32)


def _scale(depth: int) -> float:
    return float(np.float32(np.log2(np.e) / np.sqrt(depth)))


def attention_forward(depth: int, causal: bool) -> Case:
    made = _attention(depth, causal)
    rows = _HEADS * _LENGTH
    inputs: dict[str, Any] = {f"{n}_ptr": _flat(made[n]) for n in "qkv"}
    inputs |= {"o_ptr": np.zeros((rows, depth)), "lse_ptr": np.zeros(rows)}
    inputs |= {"scale": _scale(depth), "length": _LENGTH, "total_rows": rows}
    expected = {"o_ptr": _flat(made["o"]), "lse_ptr": made["lse"].reshape(-1)}
    return Case(inputs, (_LENGTH // 128, _HEADS), expected, 0.03)


def _backward(depth: int, causal: bool) -> tuple[dict[str, Any], dict[str, Array]]:
    made = _attention(depth, causal)
    do = _random(4, _HEADS, _LENGTH, depth, element="bf16").astype(np.float64)
    delta = (made["o"] * do).sum(-1)
    dp = do @ np.swapaxes(made["v"], 1, 2)
    ds = made["p"] * (dp - delta[..., None])
    natural = _scale(depth) * np.log(2)
    grads = {
        "dq": ds @ made["k"] * natural,
        "dk": np.swapaxes(ds, 1, 2) @ made["q"] * natural,
        "dv": np.swapaxes(made["p"], 1, 2) @ do,
    }
    rows = _HEADS * _LENGTH
    inputs: dict[str, Any] = {f"{n}_ptr": _flat(made[n]) for n in "qkv"}
    inputs |= {"do_ptr": _flat(do), "lse_ptr": made["lse"].reshape(-1)}
    inputs |= {"delta_ptr": delta.reshape(-1), "scale": _scale(depth)}
    inputs |= {"length": _LENGTH, "total_rows": rows}
    return inputs, {name: _flat(grad) for name, grad in grads.items()}


def attention_backward_kv(causal: bool) -> Case:
    inputs, grads = _backward(64, causal)
    zeros = np.zeros_like(grads["dk"])
    expected = {"dk_ptr": grads["dk"], "dv_ptr": grads["dv"]}
    return Case({**inputs, "dk_ptr": zeros, "dv_ptr": zeros}, (2, _HEADS), expected, 0.05)


def attention_backward_q(causal: bool) -> Case:
    inputs, grads = _backward(64, causal)
    expected = {"dq_ptr": grads["dq"]}
    return Case({**inputs, "dq_ptr": np.zeros_like(grads["dq"])}, (2, _HEADS), expected, 0.05)


def layer_norm() -> Case:
    rows, columns = 3, 2500
    x = _random(1, rows, columns)
    gamma, beta = _random(2, columns, element="f32"), _random(3, columns, element="f32")
    mean = x.mean(-1)
    rstd = 1 / np.sqrt((x * x).mean(-1) - mean * mean + 1e-5)
    y = (x - mean[:, None]) * rstd[:, None] * gamma + beta
    inputs = {"x_ptr": x, "y_ptr": np.zeros_like(x), "gamma_ptr": gamma, "beta_ptr": beta}
    inputs |= {"mean_ptr": np.zeros(rows), "rstd_ptr": np.zeros(rows)}
    inputs |= {"stride": columns, "columns": columns, "epsilon": 1e-5}
    expected = {"y_ptr": y, "mean_ptr": mean, "rstd_ptr": rstd}
    return Case(inputs, (rows,), expected, 0.02)


def softmax() -> Case:
    rows, columns = 7, 777
    x = _random(1, rows, columns, element="f32", scale=3.0)
    e = np.exp(x - x.max(-1, keepdims=True))
    inputs = {"y_ptr": np.zeros_like(x), "x_ptr": x, "x_stride": columns, "y_stride": columns}
    inputs |= {"rows": rows, "columns": columns}
    # More blocks than rows: the last returns at once.
    return Case(inputs, (8,), {"y_ptr": e / e.sum(-1, keepdims=True)}, 1e-5)


CASES: dict[str, Callable[[], Case]] = {
    "matmul_descriptors": matmul_descriptors,
    "matmul_pointers": matmul_pointers,
    "matmul_persistent": matmul_persistent,
    "matmul_fused": matmul_fused,
    "attention_forward_d64": lambda: attention_forward(64, False),
    "attention_forward_d128": lambda: attention_forward(128, False),
    "attention_forward_d64_causal": lambda: attention_forward(64, True),
    "attention_forward_d128_causal": lambda: attention_forward(128, True),
    "attention_backward_kv": lambda: attention_backward_kv(False),
    "attention_backward_q": lambda: attention_backward_q(False),
    "attention_backward_kv_causal": lambda: attention_backward_kv(True),
    "attention_backward_q_causal": lambda: attention_backward_q(True),
    "layer_norm": layer_norm,
    "softmax": softmax,
}
