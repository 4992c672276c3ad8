"""SGLang: what its server calls for a model of eight billion parameters, and for experts."""

import torch
from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd
from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd
from sglang.kernels.ops.attention.merge_state import merge_state_triton
from sglang.kernels.ops.attention.prefill_attention import context_attention_fwd

bf16 = torch.bfloat16
BATCH, HEADS, GROUPS, WIDTH, TOKENS = 32, 32, 8, 128, 32768


def _decoding(heads=HEADS, groups=GROUPS, width=WIDTH, values=WIDTH):
    q, o = torch.zeros(BATCH, heads, width).to(bf16), torch.zeros(BATCH, heads, values).to(bf16)
    k = torch.zeros(TOKENS, groups, width, dtype=bf16)
    v = torch.zeros(TOKENS, groups, values, dtype=bf16)
    starts = torch.arange(BATCH + 1, dtype=torch.int32) * 1024
    places = torch.arange(TOKENS, dtype=torch.int64)
    logits, sums = torch.zeros(BATCH, heads, 8, values), torch.zeros(BATCH, heads, 8)
    splits = torch.full((BATCH,), 8, dtype=torch.int32)
    decode_attention_fwd(q, k, v, o, starts, places, logits, sums, splits, 8, 0.1, 1.0, 1.0)


def decode():
    _decoding(groups=HEADS)


def decode_of_grouped_heads():
    _decoding()


def decode_of_latent_heads():
    _decoding(16, 1, 576, 512)


def extend():
    q, o = (torch.zeros(4096, HEADS, WIDTH, dtype=bf16) for _ in range(2))
    k, v = (torch.zeros(4096, GROUPS, WIDTH, dtype=bf16) for _ in range(2))
    pages = [torch.zeros(TOKENS, GROUPS, WIDTH, dtype=bf16) for _ in range(2)]
    starts = torch.arange(5, dtype=torch.int32) * 1024
    places = torch.arange(TOKENS, dtype=torch.int64)
    extend_attention_fwd(
        q, k, v, o, *pages, starts, starts, places, None, True, None, 1024, 1.0, 1.0
    )


def prefill():
    q, o = (torch.zeros(4096, HEADS, WIDTH, dtype=bf16) for _ in range(2))
    k, v = (torch.zeros(4096, GROUPS, WIDTH, dtype=bf16) for _ in range(2))
    starts = torch.arange(4, dtype=torch.int32) * 1024
    context_attention_fwd(q, k, v, o, starts, torch.full((4,), 1024), 1024)


def merge_states():
    v, s = torch.zeros(1024, HEADS, WIDTH, dtype=bf16), torch.zeros(1024, HEADS)
    merge_state_triton(v, s, v.clone(), s.clone())


def fp8_product_of_blocks():
    from sglang.kernels.ops.gemm.fp8_kernel import w8a8_block_fp8_matmul_triton

    a, b = (torch.zeros(n, 4096).to(torch.float8_e4m3fn) for n in (1024, 4096))
    w8a8_block_fp8_matmul_triton(a, b, torch.ones(1024, 32), torch.ones(32, 32), [128, 128])


def int8_product_of_blocks():
    from sglang.kernels.ops.gemm.int8_kernel import w8a8_block_int8_matmul

    a, b = (torch.zeros(n, 4096, dtype=torch.int8) for n in (1024, 4096))
    w8a8_block_int8_matmul(a, b, torch.ones(1024, 32), torch.ones(32, 32), [128, 128])


def scaled_product():
    from sglang.kernels.ops.gemm.fp8_kernel import triton_scaled_mm

    a, b = (torch.zeros(n, 4096).to(torch.float8_e4m3fn) for n in (1024, 4096))
    triton_scaled_mm(a, b.t(), torch.ones(1024, 1), torch.ones(4096, 1), bf16)


def quantize_to_fp8():
    from sglang.kernels.ops.quantization.fp8_kernel import per_token_group_quant_fp8

    per_token_group_quant_fp8(torch.zeros(1024, 4096, dtype=bf16), 128)


def quantize_to_int8():
    from sglang.kernels.ops.quantization.int8_kernel import (
        per_token_group_quant_int8,
        per_token_quant_int8,
    )

    per_token_quant_int8(torch.zeros(1024, 4096, dtype=bf16))
    per_token_group_quant_int8(torch.zeros(1024, 4096, dtype=bf16), 128)


def awq():
    from sglang.kernels.ops.quantization.awq_triton import (
        awq_dequantize_triton,
    )

    packed = torch.zeros(4096, 512, dtype=torch.int32)
    awq_dequantize_triton(
        packed, torch.ones(32, 4096).half(), torch.zeros(32, 512, dtype=torch.int32)
    )


def mixture_of_experts():
    import triton.language as tl
    from sglang.kernels.ops.moe.fused_moe_triton_kernels import invoke_fused_moe_kernel

    rows, weights = torch.zeros(1024, 4096, dtype=bf16), torch.zeros(8, 2048, 4096, dtype=bf16)
    chosen, shares = torch.zeros(1024, 2, dtype=torch.int32), torch.ones(1024, 2)
    padded, blocks = 1024 * 2 + 8 * 64, 40
    config = {
        "BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8,
        "num_warps": 4, "num_stages": 4,
    }  # fmt: skip
    invoke_fused_moe_kernel(
        rows, weights, None, torch.zeros(1024, 2, 2048, dtype=bf16), None, None, None, shares,
        chosen, torch.zeros(padded, dtype=torch.int32), torch.zeros(blocks, dtype=torch.int32),
        torch.tensor([padded], dtype=torch.int32), False, 2, config, tl.bfloat16,
        False, False, False, False, False,
    )  # fmt: skip


def mamba():
    from sglang.kernels.ops.mamba.triton_ops.ssd_combined import mamba_chunk_scan_combined

    x = torch.zeros(1, 4096, 64, 64, dtype=bf16)
    b, c = (torch.zeros(1, 4096, 8, 128, dtype=bf16) for _ in range(2))
    mamba_chunk_scan_combined(
        x, torch.zeros(1, 4096, 64), torch.zeros(64), b, c, 256, D=torch.zeros(64),
        dt_softplus=True, dt_bias=torch.zeros(64), out=torch.zeros_like(x),
        return_final_states=True,
    )  # fmt: skip


def mamba_step():
    from sglang.kernels.ops.mamba.triton_ops.mamba_ssm import selective_state_update

    state, x = torch.zeros(32, 64, 64, 128), torch.zeros(32, 64, 64, dtype=bf16)
    turn = torch.zeros(64, 64, 128)
    b, c = (torch.zeros(32, 8, 128, dtype=bf16) for _ in range(2))
    selective_state_update(
        state, x, torch.zeros(32, 64, 64), turn, b, c, torch.zeros(64, 64), out=torch.zeros_like(x)
    )


def lightning_attention():
    from sglang.kernels.ops.attention.linear.lightning_attn import lightning_attention as _lightning

    q, k, v = (torch.zeros(1, 32, 2048, 128, dtype=bf16) for _ in range(3))
    _lightning(q, k, v, torch.zeros(32))


def batch_invariant():
    from sglang.srt.batch_invariant_ops import batch_invariant_ops as ops

    rows, weights = (torch.zeros(2048, 4096, dtype=bf16) for _ in range(2))
    ops.matmul_persistent(rows, weights.t())
    ops.log_softmax(torch.zeros(256, 32000, dtype=bf16))
    ops.mean_dim(rows, 1)
    ops.rms_norm(rows, torch.zeros(4096, dtype=bf16))


def bmm_batch_invariant():
    from sglang.srt.batch_invariant_ops import batch_invariant_ops as ops

    ops.bmm_batch_invariant(*(torch.zeros(8, 1024, 1024, dtype=bf16) for _ in range(2)))


def fused_rms_norm():
    from sglang.kernels.ops.layernorm.fused_rmsnorm import (
        fused_dual_residual_rmsnorm,
        fused_rmsnorm,
    )

    rows, weight = torch.zeros(1024, 4096, dtype=bf16), torch.zeros(4096, dtype=bf16)
    fused_rmsnorm(rows, weight, 1e-6)
    fused_dual_residual_rmsnorm(rows, rows.clone(), weight, weight, 1e-6)
