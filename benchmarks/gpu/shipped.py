"""Every kernel that ships, as its file is: on what it is launched, and whether its answer is right.

examples/triton/matmul_fused.ttir   ──►  8192 x 8192 x 8192, 64 x 64 blocks
examples/cutile/softmax.tileirbc    ──►  16384 rows of 8192, 4096 blocks
"""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
SIZE, HEADS, LENGTH, ROWS, COLUMNS = 8192, 16, 8192, 16384, 8192
SHORT = 1000
"""Columns of a row that fits into one tile."""
SMS = 132


def files():
    """By name: the file of a kernel."""
    found = sorted(EXAMPLES.glob("triton/*.ttir")) + sorted(EXAMPLES.glob("cutile/*.tileirbc"))
    return {f"{file.parent.name}_{file.stem}": file for file in found}


def split(name):
    """Who wrote it, and what it does."""
    who, _, what = name.partition("_")
    return who, what


def width(name):
    """Of a head."""
    return 64 if "d64" in name or name.startswith("triton_attention_backward") else 128


def grid_of(name):
    """Blocks."""
    match split(name):
        case "cutile", "matmul":
            return ((SIZE // 128) ** 2,)
        case _, "matmul_pointers":
            return ((SIZE // 128) ** 2,)
        case _, "matmul_persistent":
            return (SMS,)
        case _, what if what.startswith("matmul"):
            return (SIZE // 128, SIZE // 128)
        case "triton", "softmax":
            return (SMS * 8,)
        case "cutile", "softmax":
            return (ROWS // 4,)
        case _, "layer_norm":
            return (ROWS,)
        case _:
            return (LENGTH // 128, HEADS)


def numbers_of(name):
    """What a prediction is to know of the launch."""
    heads = (HEADS, LENGTH, width(name))
    square, rows = (SIZE, SIZE), (ROWS, COLUMNS)
    match split(name):
        case "triton", "softmax":
            return {"rows": ROWS, "columns": SHORT}
        case "triton", "layer_norm":
            return {"columns": COLUMNS}
        case "triton", what if what.startswith("matmul"):
            return dict.fromkeys("MNK", SIZE)
        case "triton", _:
            return {"length": LENGTH}
        case _, "matmul_bias_silu":
            return {"arg0": square, "arg1": square, "arg2": (SIZE,), "arg3": square}
        case _, what if what.startswith("matmul"):
            return dict.fromkeys(("arg0", "arg1", "arg2"), square)
        case _, "softmax":
            return {"arg0": rows, "arg1": rows}
        case _, "layer_norm":
            wide = (COLUMNS,)
            return {"arg0": rows, "arg1": wide, "arg2": wide, "arg3": rows, "arg4": COLUMNS}
        case _, what if what.startswith("attention_forward"):
            return dict.fromkeys(("arg0", "arg1", "arg2", "arg3"), heads)
        case _, what:
            made = 2 if what == "attention_backward" else 1
            found = {f"arg{n}": heads for n in (*range(4), *range(6, 6 + made))}
            return found | {"arg4": heads[:2], "arg5": heads[:2]}


def problem(name):
    """Arguments, grid, floating point operations, and how far off the answer is."""
    _, what = split(name)
    if what.startswith("matmul"):
        made = product(name)
    elif what in ("softmax", "layer_norm"):
        made = rows(name)
    else:
        made = attention(name)
    args, flops, off = made
    return args, grid_of(name), flops, off


def product(name):
    """C = A B, or Bᵀ, biased and activated or not."""
    import types

    import measure
    import torch

    who, what = split(name)
    p = measure.Gemm(SIZE, SIZE, SIZE)
    bias = torch.randn(SIZE, device="cuda", dtype=torch.float16)

    def off():
        wanted = p.a @ (p.b.T if (who, what) == ("triton", "matmul_persistent") else p.b)
        if what in ("matmul_fused", "matmul_bias_silu"):
            wanted = torch.nn.functional.silu(wanted + bias)
        return measure.error(p.c, wanted.double())

    if who == "cutile":
        args = (p.a, p.b, bias, p.c) if what == "matmul_bias_silu" else (p.a, p.b, p.c)
    elif what == "matmul_persistent":
        described = (
            types.SimpleNamespace(base=t, shape=list(t.shape), strides=list(t.stride()))
            for t in (p.a, p.b, p.c)
        )
        args = (*described, *p.sizes)
    elif what == "matmul_fused":
        args = (p.a, p.b, bias, p.c, *p.sizes)
    elif what == "matmul_pointers":
        args = (p.a, p.b, p.c, *p.sizes, SIZE, SIZE, SIZE)
    else:
        args = (p.a, p.b, p.c, *p.sizes)
    return args, p.flops, off


def rows(name):
    """Softmax or layer norm of rows."""
    import measure
    import torch

    if name == "triton_layer_norm":
        p = measure.Norm(ROWS, COLUMNS)
        args, x, y, some = p.args, p.x, p.y, (p.gamma, p.beta)
    elif name == "cutile_layer_norm":
        x = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.float16)
        some = tuple(torch.randn(COLUMNS, device="cuda", dtype=torch.float16) for _ in range(2))
        y = torch.full_like(x, float("nan"))
        args = (x, *some, y, COLUMNS, 1e-5)
    else:
        short = name == "triton_softmax"
        kind, wide = (torch.float32, SHORT) if short else (torch.float16, COLUMNS)
        x = torch.randn(ROWS, wide, device="cuda", dtype=kind)
        y, some = torch.full_like(x, float("nan")), ()
        args = (y, x, wide, wide, ROWS, wide) if short else (x, y)

    def off():
        part = x[:64].double()
        if some:
            weights = [w.double() for w in some]
            wanted = torch.nn.functional.layer_norm(part, part.shape[1:], *weights, 1e-5)
        else:
            wanted = part.softmax(-1)
        return measure.error(y[:64], wanted)

    return args, None, off


def attention(name):
    """Forward and backward; backward's answers are checked by measure.py."""
    import measure
    import torch

    who, what = split(name)
    d = width(name)
    causal, back = "causal" in name, "backward" in name
    p = measure.Attention(d, causal, HEADS, LENGTH, "bfloat16")
    tensors = [p.q, p.k, p.v, p.do]
    if who == "cutile":
        tensors = [p.heads_of(t) for t in tensors]
    if back:
        p.lse.fill_(12.0)
        keys = "kv" in name or what == "attention_backward"
        made = [p.dk, p.dv] if keys else [p.dq]
        flops = (4 if keys else 3) * 2 * p.heads * p.length**2 * d * (0.5 if causal else 1)
        if who == "cutile":
            flat = [t.view(p.heads, p.length) for t in (p.lse, p.delta)]
            made = [p.heads_of(t) for t in made]
            return (*tensors, *flat, *made, p.scale, d**-0.5), flops, None
        rest = (p.lse, p.delta, p.scale, p.length, p.heads * p.length)
        return (*tensors, *made, *rest), flops, None

    def off():
        q, k, v = (p.heads_of(t)[:1].float() for t in (p.q, p.k, p.v))
        scores = q[:, -256:] @ k.transpose(1, 2) / d**0.5
        if causal:
            at = torch.arange(p.length, device="cuda")
            scores = scores.masked_fill(at[None, :] > at[-256:, None], float("-inf"))
        return measure.error(p.heads_of(p.o)[:1, -256:], (scores.softmax(-1) @ v).double())

    if who == "cutile":
        return (*tensors[:3], p.heads_of(p.o), p.scale), p.flops, off
    return (*tensors[:3], p.o, p.lse, p.scale, p.length, p.heads * p.length), p.flops, off
