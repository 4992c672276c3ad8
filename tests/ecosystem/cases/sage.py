"""SageAttention: scores of 8-bit products, weights times values in half precision."""

import torch
from sageattention import core


def _qkv(heads=32, width=128, length=4096):
    return [torch.rand(1, heads, length, width).half() for _ in range(3)]


def attention():
    core.sageattn(*_qkv())


def causal_attention():
    core.sageattn(*_qkv(width=64), is_causal=True)


def attention_of_width_96():
    core.sageattn(*_qkv(width=96))


def attention_of_several_lengths():
    q, k, v = (torch.rand(2048, 16, 128).half() for _ in range(3))
    ends = torch.tensor([0, 512, 2048], dtype=torch.int32)
    core.sageattn_varlen(q, k, v, ends, ends, 1536, 1536)
