"""flash-linear-attention: its layers' functions, forward and backward, at 2,048 tokens."""

import torch
from fla import ops
from fla.modules import fused_cross_entropy, fused_norm_gate, l2norm, layernorm, rotary
from fla.modules.activations import swiglu as _swiglu
from torch.nn.functional import logsigmoid

TOKENS, HEADS, KEYS, VALUES = 2048, 16, 128, 128
bf16 = torch.bfloat16


def _given(*shape, dtype=bf16):
    return torch.rand(*shape).to(dtype).requires_grad_()


def _qkv(heads=HEADS, values=VALUES, keys=KEYS):
    q, k = (_given(1, TOKENS, heads, keys) for _ in range(2))
    return q, k, _given(1, TOKENS, heads, values)


def _gate(*shape, dtype=torch.float32):
    return logsigmoid(torch.rand(*shape)).to(dtype).requires_grad_()


def _both_ways(result):
    """Backward too, but for what the library refuses on this GPU with this Triton."""
    made = result[0] if isinstance(result, tuple) else result
    made.backward(torch.zeros_like(made))


def gla():
    q, k, v = _qkv()
    _both_ways(ops.chunk_gla(q, k, v, _gate(1, TOKENS, HEADS, KEYS, dtype=bf16)))


def gated_delta_rule():
    q, k, v = _qkv()
    gate, beta = _gate(1, TOKENS, HEADS), _given(1, TOKENS, HEADS)
    _both_ways(ops.chunk_gated_delta_rule(q, k, v, gate, beta, use_qk_l2norm_in_kernel=True))


def gated_delta_rule_step():
    q, k, v = _qkv()
    gate, beta = _gate(1, TOKENS, HEADS), _given(1, TOKENS, HEADS)
    ops.fused_recurrent_gated_delta_rule(q, k, v, gate, beta=beta, output_final_state=True)


def delta_rule():
    q, k, v = _qkv()
    _both_ways(ops.chunk_delta_rule(q, k, v, _given(1, TOKENS, HEADS)))


def retention():
    q, k, v = _qkv()
    _both_ways(ops.chunk_retention(q, k, v))


def simple_gla():
    q, k, v = _qkv()
    _both_ways(ops.chunk_simple_gla(q, k, v, _gate(1, TOKENS, HEADS)))


def linear_attention():
    q, k, v = _qkv()
    _both_ways(ops.chunk_linear_attn(q, k, v))


def gsa():
    q, k, v = _qkv()
    s, g = _given(1, TOKENS, HEADS, 64), _gate(1, TOKENS, HEADS, 64, dtype=bf16)
    _both_ways(ops.chunk_gsa(q, k, v, s, g))


def hgrn():
    x, g = _given(1, TOKENS, 2048, dtype=torch.float32), _gate(1, TOKENS, 2048)
    from fla.ops.hgrn import chunk_hgrn

    _both_ways(chunk_hgrn(x, g))


def rwkv6():
    r, k, v = _qkv(keys=64, values=64)
    w, u = _gate(1, TOKENS, HEADS, 64), _given(HEADS, 64)
    _both_ways(ops.chunk_rwkv6(r, k, v, w, u))


def rwkv7():
    r, k, v = _qkv(keys=64, values=64)
    w = _gate(1, TOKENS, HEADS, 64, dtype=bf16)
    a, b = (_given(1, TOKENS, HEADS, 64) for _ in range(2))
    _both_ways(ops.chunk_rwkv7(r, w, k, v, a, b))


def kda():
    q, k, v = _qkv()
    g, beta = _gate(1, TOKENS, HEADS, KEYS), _given(1, TOKENS, HEADS)
    _both_ways(ops.chunk_kda(q, k, v, g, beta, use_qk_l2norm_in_kernel=True))


def comba():
    q, k, v = _qkv()
    gate, beta = _gate(1, TOKENS, HEADS), _given(1, TOKENS, HEADS)
    _both_ways(ops.chunk_comba(q, k, v, _given(1, TOKENS, HEADS, KEYS), gate, beta))


def mesa_net():
    q, k, v = _qkv()
    g, beta = _gate(1, TOKENS, HEADS), _given(1, TOKENS, HEADS)
    _both_ways(ops.chunk_mesa_net(q, k, v, g, beta, _given(HEADS, KEYS, dtype=torch.float32)))


def path_attention():
    q, k, v = _qkv(keys=64, values=64)
    w = _given(1, TOKENS, HEADS, 64, dtype=torch.float32)
    beta = _given(1, TOKENS, HEADS, dtype=torch.float32)
    _both_ways(ops.parallel_path_attn(q, k, v, w, beta))


def attention():
    q, k, v = _qkv()
    _both_ways(ops.parallel_attn(q, k, v))


def grouped_attention_in_a_window():
    q, _, _ = _qkv(64)
    _, k, v = _qkv(8)
    _both_ways(ops.parallel_attn(q, k, v, window_size=512))


def forgetting_attention():
    q, k, v = _qkv()
    _both_ways(ops.parallel_forgetting_attn(q, k, v, _gate(1, TOKENS, HEADS)))


def native_sparse_attention():
    q, _, _ = _qkv(64, keys=64)
    _, k, v = _qkv(4, keys=64, values=64)
    g = _given(1, TOKENS, 64)
    blocks = torch.zeros(1, TOKENS, 4, 16, dtype=torch.int64)
    _both_ways(ops.parallel_nsa(q, k, v, g, g, None, blocks))


def stickbreaking_attention():
    from fla.ops.stickbreaking_attn import parallel_stickbreaking_attn

    q, k, v = _qkv()
    _both_ways(parallel_stickbreaking_attn(q, k, v))


def based():
    from fla.ops.based import fused_chunk_based

    q, k, v = _qkv(keys=16)
    _both_ways(fused_chunk_based(q, k, v))


def rebased():
    from fla.ops.rebased import parallel_rebased

    q, k, v = _qkv(keys=16)
    _both_ways(parallel_rebased(q, k, v))


def ttt_linear():
    q, k, v = _qkv(keys=64, values=64)
    w, b = _given(HEADS, 64), _given(HEADS, 64)
    from fla.ops.ttt import chunk_ttt_linear

    eta = _given(1, TOKENS, HEADS, 1)
    _both_ways(chunk_ttt_linear(q, k, v, w, b, eta))


def layer_norm():
    rows = _given(TOKENS, 2048)
    _both_ways(layernorm.layer_norm(rows, _given(2048), _given(2048)))


def norm_with_gate():
    rows, gate = _given(TOKENS, 128), _given(TOKENS, 128)
    _both_ways(fused_norm_gate.rms_norm_gated(rows, gate, _given(128), None))


def l2_norm():
    _both_ways(l2norm.l2_norm(_given(1, TOKENS, HEADS, KEYS)))


def rotary_embedding():
    q = _given(1, TOKENS, HEADS, KEYS)
    _both_ways(rotary.rotary_embedding(q, *(torch.rand(TOKENS, 64).to(bf16) for _ in range(2))))


def cross_entropy():
    logits, labels = _given(TOKENS, 32000), torch.randint(0, 32000, (TOKENS,))
    loss, _ = fused_cross_entropy.cross_entropy_loss(logits, labels)
    loss.backward(torch.zeros_like(loss))


def swiglu():
    _both_ways(_swiglu(_given(TOKENS, 5632), _given(TOKENS, 5632)))


def causal_convolution():
    from fla.modules.convolution import causal_conv1d

    _both_ways(causal_conv1d(_given(1, TOKENS, 2048), _given(2048, 4), activation="silu"))


def token_shift():
    from fla.modules.token_shift import token_shift as shift

    _both_ways(shift(_given(1, TOKENS, 2048)))
