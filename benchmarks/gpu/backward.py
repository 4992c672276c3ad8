"""Attention backward on a GPU: our two kernels beside cuDNN, stock Triton, and Triton's tutorial.

    delta = rows of O times dO      dK, dV by columns      dQ by rows      ours: three launches

Rates count 2.5 times the products of the forward pass, whatever a kernel computes anew; `causal`
counts half of them. The tutorial is measured where its file is given; it is in fp16, as it was
written, all others are in bf16.
"""

from __future__ import annotations

import importlib.util
import sys
from unittest.mock import MagicMock

import triton.language as tl
from measure import Attention, decorated, load, rounds, tell

import triton

SETTINGS = ((4, 2), (8, 2), (8, 3))
"""Warps and stages of stock Triton."""
FORWARD = ((128, 128, 8, 2), (128, 128, 8, 3), (128, 64, 4, 3), (128, 64, 4, 4), (64, 64, 4, 3))
"""Rows, columns, warps and stages of the tutorial's forward kernel: its own settings are more."""


@triton.jit
def row_products(o_ptr, do_ptr, delta_ptr, block: tl.constexpr, d: tl.constexpr):
    """What each row of the gradient of scores is less by."""
    rows = tl.program_id(0) * block + tl.arange(0, block)
    at = rows[:, None] * d + tl.arange(0, d)[None, :]
    o, do = tl.load(o_ptr + at).to(tl.float32), tl.load(do_ptr + at).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(o * do, 1))


def delta(p):
    """The first of three launches."""
    rows = p.heads * p.length
    row_products[(rows // 64,)](p.o, p.do, p.delta, block=64, d=p.d)


def ours(folder, good, p, which):
    """Our kernels of one half, by name."""
    names = [n for n in good if n.startswith(f"backward_{which}_d{p.d}_")]
    names = [n for n in names if n.endswith("_causal") == p.causal]
    return {name: p.backward(load(folder, name), which) for name in names}


def stock(p, which):
    """The same source as Triton compiles it, by its settings."""
    from attention_backward import attention_backward_kv, attention_backward_q

    kernel = attention_backward_kv if which == "kv" else attention_backward_q
    made = (p.dk, p.dv) if which == "kv" else (p.dq,)
    runs = {}
    for across in (64, 128) if p.d == 64 else (64,):
        m, n = (across, 128) if which == "kv" else (128, across)
        for warps, stages in SETTINGS:
            runs[f"stock {across} w{warps} s{stages}"] = (
                lambda m=m, n=n, w=warps, s=stages: kernel[(p.length // 128, p.heads)](
                    p.q, p.k, p.v, p.do, *made, p.lse, p.delta, p.scale, p.length,
                    p.heads * p.length, BLOCK_M=m, BLOCK_N=n, D=p.d, CAUSAL=p.causal,
                    num_warps=w, num_stages=s,
                )
            )  # fmt: skip
    return runs


def fastest(times, begins):
    """The name with the smallest median, of those that begin so."""
    found = {n: sorted(t)[len(t) // 2] for n, t in times.items() if n.startswith(begins)}
    return min(found, key=found.get) if found else None


def cudnn(p):
    """Backward as torch calls it."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    shape = (1, p.heads, p.length, p.d)
    q, k, v = (t.view(shape).detach().requires_grad_() for t in (p.q, p.k, p.v))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=p.causal)
    return lambda: torch.autograd.grad(o, (q, k, v), p.do.view(shape), retain_graph=True)


def tutorial_of(path):
    """Triton's tutorial as a module; it asks for pytest, and does without."""
    sys.modules.setdefault("pytest", MagicMock())
    spec = importlib.util.spec_from_file_location("tutorial", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    kept = [
        c
        for c in made._attn_fwd.configs
        if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"], c.num_warps, c.num_stages) in FORWARD
    ]
    made._attn_fwd.configs = kept or made._attn_fwd.configs
    return made


def tutorial_backward(path, p):
    """Its backward, behind its forward."""
    import torch

    made = tutorial_of(path)
    shape = (1, p.heads, p.length, p.d)
    q, k, v = (t.view(shape).half().requires_grad_() for t in (p.q, p.k, p.v))
    o = made.attention(q, k, v, p.causal, p.d**-0.5, False)
    do = p.do.view(shape).half()
    return lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True)


def backward(folder, good, rows, tutorial, causal):
    """Each half alone, then the whole of it."""
    for d in (128, 64):
        p = Attention(d, causal, 16, 16384 if causal else 8192, "bfloat16")
        p.o.normal_()
        p.lse.fill_(12.0)
        title = f"D{d} N{p.length}" + (" causal" if causal else "")
        chosen = {}
        for which, products in (("kv", 4), ("q", 3)):
            runs = ours(folder, good, p, which) | stock(p, which)
            times = rounds(runs)
            tell(rows, f"backward {which} {title}", times, p.flops / 2 * products)
            for whose in ("backward", "stock"):
                name = fastest(times, whose)
                if name is not None:
                    chosen[which, whose] = runs[name]
        runs = {"cuDNN": cudnn(p)}
        for whose in ("backward", "stock"):
            if ("kv", whose) in chosen and ("q", whose) in chosen:
                kv, q = chosen["kv", whose], chosen["q", whose]
                runs[whose] = lambda kv=kv, q=q, p=p: (delta(p), kv(), q())
        if tutorial is not None and causal:  # its backward always is
            runs["tutorial"] = tutorial_backward(tutorial, p)
        tell(rows, f"whole backward {title}", rounds(runs), p.flops * 2.5)


def tutorials(path, p, specialized=(False, True)):
    """Triton's own forward over its own settings, without and with warp specialization."""
    made = tutorial_of(path)
    q, k, v = (t.view(1, p.heads, p.length, p.d) for t in (p.q, p.k, p.v))
    return {
        f"tutorial{' specialized' * s}": lambda s=s: made.attention(q, k, v, False, p.d**-0.5, s)
        for s in specialized
    }


def tutorial_forward(folder, good, rows, tutorial):
    """Stock Triton's best over its own settings beside ours."""
    if tutorial is None:
        return
    p = Attention(128, False, 16, 16384)
    names = [n for n in good if n.startswith("forward_d128") and "causal" not in n]
    runs = {name: p.forward(load(folder, name)) for name in names} | decorated(p)
    tell(rows, "tutorial D128 N16384", rounds(runs | tutorials(tutorial, p)), p.flops)
