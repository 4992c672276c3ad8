"""Cut Cross-Entropy: the logits are never written."""

import torch
from cut_cross_entropy import linear_cross_entropy


def loss():
    rows = torch.zeros(1024, 2048, dtype=torch.bfloat16, requires_grad=True)
    classes = torch.zeros(32000, 2048, dtype=torch.bfloat16, requires_grad=True)
    linear_cross_entropy(rows, classes, torch.randint(0, 32000, (1024,))).backward()


def loss_with_softcap():
    rows = torch.zeros(1024, 2048, dtype=torch.bfloat16, requires_grad=True)
    classes = torch.zeros(32000, 2048, dtype=torch.bfloat16, requires_grad=True)
    linear_cross_entropy(rows, classes, torch.randint(0, 32000, (1024,)), softcap=30.0).backward()
