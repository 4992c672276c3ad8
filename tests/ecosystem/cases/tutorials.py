"""Triton's tutorials, at the sizes that they benchmark."""

import torch
from launches import module_of

fp16 = torch.float16


def _tutorial(name):
    return module_of(f"tutorials.{name}")


def _halves(*shape):
    return torch.zeros(*shape, dtype=fp16)


def t01_vector_add():
    vector = _tutorial("01-vector-add")
    vector.add(torch.zeros(98432), torch.zeros(98432))


def t02_fused_softmax():
    _tutorial("02-fused-softmax")  # it compiles one when it is imported


def t03_matrix_multiplication():
    _tutorial("03-matrix-multiplication").matmul(_halves(4096, 4096), _halves(4096, 4096))


def t04_low_memory_dropout():
    dropout = _tutorial("04-low-memory-dropout")
    rows = torch.zeros(1 << 20)
    dropout.dropout(rows, x_keep=torch.ones(1 << 20, dtype=torch.int32), p=0.5)
    dropout.seeded_dropout(rows, p=0.5, seed=123)


def t05_layer_norm():
    norm = _tutorial("05-layer-norm")
    rows, weight = _halves(4096, 8192).requires_grad_(), _halves(8192).requires_grad_()
    made = norm.layer_norm(rows, (8192,), weight, weight, 1e-5)
    made.backward(torch.zeros_like(made))


def t06_fused_attention():
    fused = _tutorial("06-fused-attention")
    for width in (64, 128):
        for causal in (False, True):
            q, k, v = (_halves(4, 32, 2048, width).requires_grad_() for _ in range(3))
            made = fused.attention(q, k, v, causal, 1.3, False)
            made.backward(torch.zeros_like(made))


def t07_extern_functions():
    _tutorial("07-extern-functions")


def t08_grouped_gemm():
    grouped = _tutorial("08-grouped-gemm")
    a, b = ([_halves(1024, 1024) for _ in range(4)] for _ in range(2))
    grouped.group_gemm_fn(a, b)
    grouped.group_gemm_tma_fn(a, b)


def t09_persistent_matmul():
    persistent = _tutorial("09-persistent-matmul")
    a, b = _halves(4096, 4096), _halves(4096, 4096)
    persistent.matmul(a, b.T)
    persistent.matmul_persistent(a, b.T)
    persistent.matmul_tma(a, b, False)
    persistent.matmul_tma_persistent(a, b, False)
    persistent.matmul_descriptor_persistent(a, b, False)


def t11_programmatic_dependent_launch():
    _tutorial("11-programmatic-dependent-launch").add(
        torch.zeros(1 << 20), torch.zeros(1 << 20), launch_pdl=False
    )
