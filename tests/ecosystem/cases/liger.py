"""Liger Kernel, as a trainer of a model of eight billion parameters calls it."""

import torch
from liger_kernel import ops
from liger_kernel.ops.fused_neighborhood_attention import (
    LigerFusedNeighborhoodAttentionFunction as Neighborhood,
)
from liger_kernel.ops.grpo_loss import GrpoLossFunction as Grpo
from liger_kernel.ops.mlp import LigerMLPFunction as Mlp

ROWS, HIDDEN, VOCABULARY = 2048, 4096, 32000
bf16 = torch.bfloat16


def _given(*shape, dtype=bf16):
    return torch.zeros(shape, dtype=dtype, requires_grad=True)


def _both_ways(result):
    """Forward is done; and backward."""
    made = result[0] if isinstance(result, tuple) else result
    made.backward(torch.zeros_like(made))


def _labels(classes=VOCABULARY, rows=ROWS):
    return torch.randint(0, classes, (rows,))


def rms_norm():
    _both_ways(ops.LigerRMSNormFunction.apply(_given(ROWS, HIDDEN), _given(HIDDEN), 1e-6))


def rms_norm_of_heads():
    heads = _given(1, ROWS, 32, 128)
    _both_ways(ops.LigerRMSNormFunction.apply(heads, _given(128), 1e-6))


def fused_add_rms_norm():
    rows, added = _given(ROWS, HIDDEN), _given(ROWS, HIDDEN)
    _both_ways(ops.LigerFusedAddRMSNormFunction.apply(rows, added, _given(HIDDEN), 1e-6))


def layer_norm():
    rows = _given(ROWS, HIDDEN)
    _both_ways(ops.LigerLayerNormFunction.apply(rows, _given(HIDDEN), _given(HIDDEN), 1e-5))


def group_norm():
    images = _given(8, 512, 64 * 64)
    weight, bias = _given(512), _given(512)
    _both_ways(ops.LigerGroupNormFunction.apply(images, weight, bias, 512, 32, 1e-5))


def poly_norm():
    _both_ways(ops.LigerPolyNormFunction.apply(_given(ROWS, HIDDEN), _given(3), _given()))


def dyt():
    alpha, gamma, beta = _given(1), _given(HIDDEN), _given(HIDDEN)
    _both_ways(ops.LigerDyTFunction.apply(_given(ROWS, HIDDEN), alpha, gamma, beta))


def cross_entropy():
    logits = _given(ROWS, VOCABULARY)
    _both_ways(ops.LigerCrossEntropyFunction.apply(logits, _labels(), None))


def fused_linear_cross_entropy():
    rows, weight = _given(256, 1024), _given(VOCABULARY, 1024)
    found = ops.LigerFusedLinearCrossEntropyFunction.apply(rows, weight, _labels(rows=256))
    _both_ways(found)


def kl_div():
    told, true = _given(ROWS, VOCABULARY), torch.zeros(ROWS, VOCABULARY, dtype=bf16)
    _both_ways(ops.LigerKLDivLossFunction.apply(told, true))


def jsd():
    told, true = _given(ROWS, VOCABULARY), torch.zeros(ROWS, VOCABULARY, dtype=bf16)
    _both_ways(ops.LigerJSDFunction.apply(told, true))


def tvd():
    told, true = _given(ROWS, VOCABULARY), torch.zeros(ROWS, VOCABULARY, dtype=bf16)
    _both_ways(ops.LigerTVDLossFunction.apply(told, true))


def grpo_loss():
    logits, ids = _given(2, 513, VOCABULARY), torch.zeros(2, 512, dtype=torch.int64)
    old, ref = torch.zeros(2, 512), torch.zeros(2, 512)
    advantages, mask = torch.zeros(2), torch.ones(2, 512)
    _both_ways(Grpo.apply(logits, old, ref, ids, advantages, mask, 0.9, 0.04, 0.2, 0.2, False))


def swiglu():
    _both_ways(ops.LigerSiLUMulFunction.apply(_given(ROWS, 14336), _given(ROWS, 14336)))


def geglu():
    _both_ways(ops.LigerGELUMulFunction.apply(_given(ROWS, 14336), _given(ROWS, 14336)))


def relu_squared():
    _both_ways(ops.LigerReLUSquaredFunction.apply(_given(ROWS, 14336)))


def rope():
    q, k = _given(1, 32, ROWS, 128), _given(1, 8, ROWS, 128)
    turns = torch.zeros(1, ROWS, 128, dtype=bf16)
    q, k = ops.LigerRopeFunction.apply(q, k, turns, turns)
    (q.sum() + k.sum()).backward()


def qwen2vl_mrope():
    q, k = _given(1, 32, ROWS, 128), _given(1, 8, ROWS, 128)
    turns = torch.zeros(3, 1, ROWS, 128, dtype=bf16)
    ops.LigerQwen2VLMRopeFunction.apply(q, k, turns, turns, [16, 24, 24])


def llama4_rope():
    q, k = _given(1, ROWS, 32, 128), _given(1, ROWS, 8, 128)
    ops.LigerLlama4RopeFunction.apply(q, k, torch.zeros(ROWS, 64, dtype=torch.complex64))


def softmax():
    _both_ways(ops.LigerSoftmaxFunction.apply(_given(ROWS, VOCABULARY)))


def sparsemax():
    _both_ways(ops.LigerSparsemaxFunction.apply(_given(ROWS, HIDDEN), -1))


def embedding():
    from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

    _both_ways(LigerEmbeddingFunction.apply(_given(VOCABULARY, HIDDEN), _labels()))


def multi_token_attention():
    scores = _given(1, 4, 512, 512, dtype=torch.float32)
    weight = _given(4, 4, 3, 3, dtype=torch.float32)
    _both_ways(ops.LigerMultiTokenAttentionFunction.apply(scores, weight, None, 1, 1))


def neighborhood_attention():
    q, k, v = (_given(1, 8, 1024, 64) for _ in range(3))
    _both_ways(Neighborhood.apply(q, k, v, 7, 1, None))


def fused_moe():
    from liger_kernel.ops.fused_moe import LigerFusedMoEFunction

    chosen = torch.randint(0, 8, (512, 2), dtype=torch.int32)
    gates, down = _given(8, 2 * 1024, 1024), _given(8, 1024, 1024)
    weights = torch.ones(512, 2, dtype=bf16)
    _both_ways(LigerFusedMoEFunction.apply(_given(512, 1024), gates, down, chosen, weights))


def mlp():
    gate, up, down = _given(2048, 1024), _given(2048, 1024), _given(1024, 2048)
    _both_ways(Mlp.apply(_given(512, 1024), gate, up, down))


def attn_res():
    stacked = _given(4, 1, ROWS, 1024)
    _both_ways(ops.LigerAttnResFunction.apply(stacked, _given(1024), _given(1024), 1e-6))


def mm_int8_by_int2():
    from liger_kernel.ops.experimental.mm_int8int2 import matmul

    matmul(torch.zeros(512, 1024, dtype=torch.int8), torch.zeros(256, 512, dtype=torch.uint8))
