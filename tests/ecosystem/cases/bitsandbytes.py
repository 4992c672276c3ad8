"""bitsandbytes: its Triton backend."""

import torch
from bitsandbytes.backends.triton import ops
from bitsandbytes.functional import create_dynamic_map

bf16 = torch.bfloat16


def eight_bits():
    rows, code = torch.zeros(1024, 4096, dtype=bf16), create_dynamic_map()
    made, most = ops.quantize_blockwise(rows, code, 256)
    ops.dequantize_blockwise(made, most, code, 256, bf16)


def four_bits():
    made, most = ops.quantize_4bit(torch.zeros(4096, 4096, dtype=bf16), 64, "nf4", torch.uint8)
    ops.dequantize_4bit(made, most, 64, "nf4", (4096, 4096), bf16)


def adam_in_32_bits():
    g, p = torch.zeros(4096, 1024, dtype=bf16), torch.zeros(4096, 1024, dtype=bf16)
    first, second = torch.zeros(4096, 1024), torch.zeros(4096, 1024)
    ops.optimizer_update_32bit(
        "adam", g, p, first, second, None, 0.0, 0.0, 0.9, 0.999, 0.0, 0.0, 1e-8, 0.01, 1, 1e-3, 1.0
    )
