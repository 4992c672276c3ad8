"""FlagGems: PyTorch's own operators, in Triton."""

import flag_gems
import torch

fp16 = torch.float16
ROWS = torch.zeros(2048, 4096, dtype=fp16)
SQUARE = torch.zeros(4096, 4096, dtype=fp16)


def mm():
    flag_gems.mm(ROWS, SQUARE)


def addmm():
    flag_gems.addmm(torch.zeros(4096, dtype=fp16), ROWS, SQUARE)


def bmm():
    flag_gems.bmm(*(torch.zeros(16, 1024, 1024, dtype=fp16) for _ in range(2)))


def mv():
    flag_gems.mv(SQUARE, torch.zeros(4096, dtype=fp16))


def attention():
    q, k, v = (torch.zeros(1, 16, 2048, 128, dtype=fp16) for _ in range(3))
    flag_gems.scaled_dot_product_attention(q, k, v)


def convolution():
    flag_gems.conv2d(torch.zeros(8, 64, 56, 56, dtype=fp16), torch.zeros(64, 64, 3, 3, dtype=fp16))


def softmax():
    flag_gems.softmax(ROWS, -1)


def log_softmax():
    flag_gems.log_softmax(ROWS, -1)


def layer_norm():
    weight = torch.zeros(4096, dtype=fp16)
    flag_gems.layer_norm(ROWS, [4096], weight, weight)


def group_norm():
    images = torch.zeros(8, 512, 64, 64, dtype=fp16)
    flag_gems.group_norm(images, torch.zeros(512).half(), torch.zeros(512).half(), 8, 512, 4096, 32)


def cumsum():
    flag_gems.cumsum(ROWS, 1)


def sum():
    flag_gems.sum_dim(ROWS, [1])


def argmax():
    flag_gems.argmax(ROWS, 1)


def topk():
    flag_gems.topk(ROWS, 8)


def var_mean():
    flag_gems.var_mean(ROWS, [1])


def vector_norm():
    flag_gems.vector_norm(ROWS, 2, [1])


def cross_entropy():
    flag_gems.cross_entropy_loss(ROWS, torch.zeros(2048, dtype=torch.int64))


def embedding():
    flag_gems.embedding(SQUARE, torch.zeros(2048, dtype=torch.int64))


def sort():
    flag_gems.sort(torch.zeros(64, 1024, dtype=torch.int32))


def max_pool():
    flag_gems.max_pool2d_with_indices(torch.zeros(8, 64, 56, 56, dtype=fp16), 3, 2, 1)
