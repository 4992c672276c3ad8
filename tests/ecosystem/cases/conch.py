"""Conch: what an inference server calls."""

import torch
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul as _gelu
from conch.ops.activation.silu_and_mul import silu_and_mul as _silu
from conch.ops.attention.paged_attention import paged_attention as _paged
from conch.ops.attention.varlen_attention import varlen_attention as _varlen
from conch.ops.embedding.rotary_embedding import rotary_embedding as _rotary
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm as _gemma
from conch.ops.normalization.rms_norm import fused_add_rms_norm
from conch.ops.normalization.rms_norm import rms_norm as _norm
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision.nms import nms as _nms

fp16 = torch.float16
BATCH, HEADS, GROUPS, WIDTH, PAGE, PAGES = 32, 32, 8, 128, 32, 1024


def _cache():
    return [torch.zeros(PAGES, PAGE, GROUPS, WIDTH, dtype=fp16) for _ in range(2)]


def paged_attention():
    query = torch.zeros(BATCH, HEADS, WIDTH, dtype=fp16)
    pages = torch.zeros(BATCH, 32, dtype=torch.int32)
    lengths = torch.full((BATCH,), 1000, dtype=torch.int32)
    k, v = _cache()
    _paged(query, k, v, pages, lengths)


def varlen_attention():
    query = torch.zeros(2048, HEADS, WIDTH, dtype=fp16)
    k, v = _cache()
    ends = torch.tensor([0, 512, 2048], dtype=torch.int32)
    pages = torch.zeros(2, 64, dtype=torch.int32)
    lengths = torch.tensor([512, 1536], dtype=torch.int32)
    _varlen(query, k, v, ends, 1536, lengths, 1536, pages, causal=True)


def int8_product():
    a = torch.zeros(1024, 4096, dtype=torch.int8)
    b = torch.zeros(4096, 4096, dtype=torch.int8).t()
    scaled_gemm(a, b, torch.ones(1024, 1), torch.ones(4096, 1), fp16)


def int4_product():
    packed = torch.zeros(512, 4096, dtype=torch.int32)
    scales = torch.ones(32, 4096, dtype=fp16)
    x = torch.zeros(512, 4096, dtype=fp16)
    mixed_precision_gemm(x, packed, scales, None, 4, 8, 128)


def rms_norm():
    _norm(torch.zeros(1024, 4096, dtype=fp16), torch.zeros(4096, dtype=fp16), 1e-6)


def add_rms_norm():
    rows = torch.zeros(1024, 4096, dtype=fp16)
    fused_add_rms_norm(rows, rows.clone(), torch.zeros(4096, dtype=fp16), 1e-6)


def gemma_rms_norm():
    rows = torch.zeros(1024, 4096, dtype=fp16)
    _gemma(rows, torch.zeros(4096, dtype=fp16), 1e-6, rows.clone())


def silu_and_mul():
    _silu(torch.zeros(1024, 28672, dtype=fp16))


def gelu_and_mul():
    _gelu(torch.zeros(1024, 28672, dtype=fp16))


def rotary_embedding():
    q, k = torch.zeros(1024, 4096, dtype=fp16), torch.zeros(1024, 1024, dtype=fp16)
    turns = torch.zeros(4096, 128, dtype=fp16)
    _rotary(torch.arange(1024), q, k, 128, turns)


def quantize_to_fp8():
    scaled_fp8_quant(torch.zeros(1024, 4096, dtype=fp16), torch.ones(1))


def quantize_to_int8():
    scaled_int8_quant(torch.zeros(1024, 4096, dtype=fp16), torch.ones(1))


def nms():
    _nms(torch.rand(4096, 4), torch.rand(4096), 0.5)
