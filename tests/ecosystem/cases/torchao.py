"""torchao: products in 8 and 4 bits, and what quantizes for them."""

import torch
from torchao.kernel import blockwise_quantization as blockwise
from torchao.kernel import intmm_triton
from torchao.prototype.blockwise_fp8_training import kernels as training
from torchao.prototype.hqq.mixed_mm import pack_2xint4, triton_mixed_mm
from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm_cuda

M, N, K = 2048, 4096, 4096
bf16, fp8 = torch.bfloat16, torch.float8_e4m3fn


def _fp8(*shape):
    return torch.zeros(*shape).to(fp8)


def fp8_product_of_blocks():
    a, b = _fp8(M, K), _fp8(N, K)
    blockwise.blockwise_fp8_gemm(a, torch.ones(M, K // 128), b, torch.ones(N // 128, K // 128))


def quantize_rows():
    blockwise.fp8_blockwise_act_quant(torch.zeros(M, K, dtype=bf16))


def quantize_blocks():
    made, scales = blockwise.fp8_blockwise_weight_quant(torch.zeros(N, K, dtype=bf16))
    blockwise.fp8_blockwise_weight_dequant(made, scales)


def int8_product_of_rows():
    a, b = torch.zeros(M, K, dtype=torch.int8), torch.zeros(N, K, dtype=torch.int8).t()
    scaled_int8_mm_cuda(a, b, torch.ones(M, dtype=bf16), torch.ones(N, dtype=bf16))


def int8_product():
    a, b = torch.zeros(M, K, dtype=torch.int8), torch.zeros(K, N, dtype=torch.int8)
    config = intmm_triton.int8_mm_kernel_configs[3]
    import triton

    made = triton.Config(*config) if isinstance(config, tuple) else config
    intmm_triton.int_matmul_kernel(a, b, torch.zeros(M, N, dtype=torch.int32), made)
    out = torch.zeros(M, N, dtype=bf16)
    intmm_triton.int_scaled_matmul_kernel(a, b, torch.ones(M, 1, dtype=bf16), out, made)


def int4_product():
    packed = pack_2xint4(torch.zeros(K, N, dtype=torch.uint8))
    scales = torch.ones(N * K // 64, 1, dtype=bf16)
    x = torch.zeros(M, K, dtype=bf16)
    triton_mixed_mm(x, packed, scales, scales, group_size=64, kernel_type="compute_bound")


def fp8_training_forward():
    a, a_scale = training.triton_fp8_blockwise_act_quant_lhs(torch.zeros(M, K, dtype=bf16))
    b, b_scale = training.triton_fp8_blockwise_weight_quant_transposed_rhs(
        torch.zeros(N, K, dtype=bf16)
    )
    training.triton_fp8_gemm_1x128_128x128(a, b, a_scale, b_scale)


def fp8_training_backward():
    a, a_scale = training.triton_fp8_blockwise_act_quant_transposed_lhs(
        torch.zeros(M, K, dtype=bf16)
    )
    b, b_scale = training.triton_fp8_blockwise_act_quant_rhs(torch.zeros(M, N, dtype=bf16))
    training.triton_fp8_gemm_1x128_128x1(a, b, a_scale, b_scale)


def sparse_rows_times_dense():
    from torchao.kernel.bsr_triton_ops import bsr_dense_addmm

    dense = torch.zeros(1024, 1024, dtype=bf16)
    weight = torch.eye(1024, dtype=bf16).to_sparse_bsr((64, 64))
    bsr_dense_addmm(dense, weight, dense)
