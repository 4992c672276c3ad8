"""Real arrays: both pipelines compute what NumPy computes directly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from programs import ready
from stretto import StrettoError
from stretto.materialization import MODES, Mode
from stretto.simulation import simulate
from stretto.simulation.real import Array, Real, rounded

BOTH = pytest.mark.parametrize("mode", MODES)
STEPS = 9


def numbers(seed: int, *shape: int, element: str = "bf16") -> Array:
    """Random numbers that the element type holds exactly."""
    made = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return rounded(made, element)


def counted(iteration: int) -> int:
    return iteration


def each(array: Array) -> Callable[[int], Array]:
    return lambda iteration: array[iteration]


def close(found: Array, wanted: Array, tolerance: float) -> None:
    """Within a tolerance, as a part of the largest number wanted."""
    assert found.shape == wanted.shape
    assert np.max(np.abs(found - wanted)) <= tolerance * np.max(np.abs(wanted))


@BOTH
@pytest.mark.parametrize("steps", [0, 1, STEPS])
def test_gemm(mode: Mode, steps: int) -> None:
    case = ready("gemm")
    a = numbers(1, STEPS, 128, 64, element="f16")
    b = numbers(2, STEPS, 64, 128, element="f16")
    start = numbers(3, 128, 128, element="f32")
    domain = Real(
        case.loop,
        live_ins={"k": counted},
        contents={"acc": start},
        loads={"load_a": each(a), "load_b": each(b)},
    )
    run = simulate(case.loop, case.machine, case.analysis, steps, mode, domain=domain)
    assert run.success
    wide_a, wide_b = a[:steps].astype(np.float64), b[:steps].astype(np.float64)
    wanted = start + np.einsum("smk,skn->mn", wide_a, wide_b)
    close(run.trace.final["acc"], wanted.astype(np.float32), 1e-6)


@BOTH
def test_attention_forward(mode: Mode) -> None:
    """Softmax in base 2 over all keys at once, against the online softmax of the loop."""
    case = ready("attention_forward")
    q = numbers(1, 128, 128)
    k, v = numbers(2, STEPS, 64, 128), numbers(3, STEPS, 64, 128)
    scale = 0.125
    domain = Real(
        case.loop,
        live_ins={"step": counted, "base": 0, "scale": scale},
        initial={"m": np.full(128, -np.inf, np.float32), "l": np.zeros(128, np.float32)},
        contents={"q_tile": q, "o_acc": np.zeros((128, 128), np.float32)},
        loads={"load_k": each(k), "load_v": each(v)},
    )
    run = simulate(case.loop, case.machine, case.analysis, STEPS, mode, domain=domain)
    assert run.success
    keys = k.reshape(-1, 128).astype(np.float64)
    scores = q.astype(np.float64) @ keys.T * scale
    top = scores.max(axis=1, keepdims=True)
    weights = np.exp2(scores - top)
    total = weights.sum(axis=1)
    wanted = (weights @ v.reshape(-1, 128).astype(np.float64)) / total[:, None]
    (found_max,) = run.trace.results["new_max", STEPS - 1]
    (found_sum,) = run.trace.results["new_l", STEPS - 1]
    close(found_max, top[:, 0].astype(np.float32), 1e-5)
    close(found_sum, total.astype(np.float32), 1e-4)
    # Probabilities are bfloat16 on their way to the second product: 8 bits.
    close(run.trace.final["o_acc"] / found_sum[:, None], wanted.astype(np.float32), 2**-7)


@BOTH
def test_attention_backward(mode: Mode) -> None:
    case = ready("attention_backward")
    k, v = numbers(1, 128, 64), numbers(2, 128, 64)
    q, do = numbers(3, STEPS, 64, 64), numbers(4, STEPS, 64, 64)
    lse = numbers(5, STEPS, 64, element="f32") + np.float32(4)
    delta = numbers(6, STEPS, 64, element="f32")
    scale = 0.0625
    zero = np.zeros((128, 64), np.float32)
    domain = Real(
        case.loop,
        live_ins={"step": counted, "base": 0, "scale": scale},
        contents={"k_tile": k, "v_tile": v, "dk_acc": zero, "dv_acc": zero},
        loads={
            "load_q": each(q),
            "load_do": each(do),
            "load_lse": each(lse),
            "load_delta": each(delta),
        },
    )
    run = simulate(case.loop, case.machine, case.analysis, STEPS, mode, domain=domain)
    assert run.success
    p = np.exp2(np.einsum("md,snd->smn", k, q) * scale - lse[:, None, :])
    ds = p * (np.einsum("md,snd->smn", v, do) - delta[:, None, :])
    close(run.trace.final["dv_acc"], np.einsum("smn,snd->md", p, do), 2**-6)
    close(run.trace.final["dk_acc"], np.einsum("smn,snd->md", ds, q), 2**-6)
    dq = np.einsum("smn,md->snd", ds, k) * scale
    found = np.stack([run.trace.results["store_dq", i][0] for i in range(STEPS)])
    close(found, dq, 2**-6)


@BOTH
def test_layernorm(mode: Mode) -> None:
    case = ready("layernorm")
    x = numbers(1, STEPS, 16, 512, element="f16")
    gamma, beta = numbers(2, 16, 512, element="f32"), numbers(3, 16, 512, element="f32")
    domain = Real(
        case.loop,
        live_ins={
            "index": counted,
            "inverse_n": np.full(16, 1 / 512, np.float32),
            "epsilon": np.full(16, 1e-5, np.float32),
            "gamma": gamma,
            "beta": beta,
        },
        loads={"load_x": each(x)},
    )
    run = simulate(case.loop, case.machine, case.analysis, STEPS, mode, domain=domain)
    assert run.success
    wide = x.astype(np.float64)
    mean, spread = wide.mean(axis=2, keepdims=True), wide.var(axis=2, keepdims=True)
    wanted = (wide - mean) / np.sqrt(spread + 1e-5) * gamma + beta
    found = np.stack([run.trace.results["store_y", i][0] for i in range(STEPS)])
    close(found, wanted.astype(np.float32), 2**-10)


def test_rounding_is_to_the_nearest_even() -> None:
    # 1 + 2^-8 lies between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between that and 1 + 2^-6.
    given = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-12, -np.inf], np.float32)
    wanted = np.array([1, 1 + 2**-6, 1 + 2**-7, -np.inf], np.float32)
    assert np.array_equal(rounded(given, "bf16"), wanted)
    assert np.array_equal(rounded(np.array([1 + 2**-12], np.float32), "f16"), [1])


def test_what_is_not_known_is_said() -> None:
    case = ready("gemm")
    domain = Real(case.loop)
    with pytest.raises(StrettoError, match="no real value is given for live-in `k`"):
        simulate(case.loop, case.machine, case.analysis, 1, domain=domain)
    four = ready("four_op")
    strange = Real(four.loop, functions={})
    op = four.loop.op("write")
    with pytest.raises(StrettoError, match="what `unheard` computes"):
        strange.apply(replace(op, kind="unheard"), 0, [], [])
