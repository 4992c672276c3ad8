"""xLSTM's matrix memory: chunks, forward and backward, and single steps."""

import torch
from mlstm_kernels.torch.chunkwise import mlstm_chunkwise__limit_chunk, mlstm_chunkwise__xl_chunk
from mlstm_kernels.torch.parallel import mlstm_parallel__limit_headdim
from mlstm_kernels.torch.recurrent import mlstm_recurrent_step__triton

bf16 = torch.bfloat16


def _given(*shape, dtype=bf16):
    return torch.rand(*shape).to(dtype).requires_grad_()


def _chunks(function, keys=128, values=256, **more):
    q, k = (_given(1, 8, 2048, keys) for _ in range(2))
    v, i, f = _given(1, 8, 2048, values), _given(1, 8, 2048), _given(1, 8, 2048)
    made = function(q, k, v, i, f, **more)
    made = made[0] if isinstance(made, tuple) else made
    made.backward(torch.zeros_like(made))


def xl_chunk():
    _chunks(mlstm_chunkwise__xl_chunk)


def limit_chunk():
    _chunks(mlstm_chunkwise__limit_chunk, chunk_size=64)


def parallel():
    _chunks(mlstm_parallel__limit_headdim, keys=64, values=64)


def step():
    memory, norm, most = _given(8, 8, 256, 512), _given(8, 8, 256), _given(8, 8, 1)
    q, k, v = _given(8, 8, 256), _given(8, 8, 256), _given(8, 8, 512)
    i, f = _given(8, 8, 1), _given(8, 8, 1)
    mlstm_recurrent_step__triton(q, k, v, i, f, memory, norm, most)
