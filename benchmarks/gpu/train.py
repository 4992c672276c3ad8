"""A small transformer on kernels of two libraries: `python benchmarks/gpu/train.py RESULTS.json`.

Liger Kernel has its norms, activations and loss, flash-linear-attention its causal attention. Each
step's loss and time are written, and what the GPU's kernels took together once all is warm. Text is
drawn by a generator.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

BEGUN = time.perf_counter()

import torch
from fla.ops.attn.parallel import parallel_attn
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
from liger_kernel.ops.swiglu import LigerSiLUMulFunction
from torch import nn
from torch.nn import functional

STEPS = int(os.environ.get("STEPS", "200"))
LAYERS, WIDTH, HEADS, LENGTH, BATCH, WORDS = 6, 1024, 8, 4096, 16, 8192
PROFILED = 20
"""Steps at the end whose kernels are timed."""


class Norm(nn.Module):
    """The root mean square norm, by Liger."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return LigerRMSNormFunction.apply(x, self.weight.to(x.dtype), 1e-6)


class Layer(nn.Module):
    """Attention by flash-linear-attention, then a gated network by Liger."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Norm(), Norm()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).view(BATCH, LENGTH, 3, HEADS, -1).unbind(2)
        mixed = parallel_attn(q.contiguous(), k.contiguous(), v.contiguous())
        x = x + self.out(mixed.reshape(BATCH, LENGTH, WIDTH))
        gate, value = self.up(self.second(x)).chunk(2, -1)
        return x + self.down(LigerSiLUMulFunction.apply(gate.contiguous(), value.contiguous()))


class Model(nn.Module):
    """Words in, the loss of the next word out."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = Norm()

    def forward(self, text):
        x = self.words(text[:, :-1])
        for layer in self.layers:
            x = layer(x)
        said = functional.linear(self.norm(x), self.words.weight).view(-1, WORDS)
        loss = LigerCrossEntropyFunction.apply(said, text[:, 1:].reshape(-1), None)
        return loss[0] if isinstance(loss, tuple) else loss


def drawn(generator, successors):
    """A batch of text: each second word follows from the one before it, four times of five."""
    given = {"device": "cuda", "generator": generator}
    text = torch.randint(WORDS, (BATCH, LENGTH + 1), **given)
    kept = torch.rand(BATCH, LENGTH // 2, **given) < 0.8
    text[:, 1::2] = torch.where(kept, successors[text[:, :-1:2]], text[:, 1::2])
    return text


def kernels_of(profile):
    """Milliseconds of the GPU in all kernels, and of the longest by name."""
    rows = [(one.key, one.self_device_time_total / 1000) for one in profile.key_averages()]
    rows = sorted((row for row in rows if row[1]), key=lambda row: -row[1])
    return sum(row[1] for row in rows), rows[:12]


def main():
    torch.manual_seed(0)
    model = Model().to("cuda", torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    generator = torch.Generator("cuda").manual_seed(1)
    successors = torch.randperm(WORDS, device="cuda", generator=generator)
    losses, times = [], []

    def step():
        loss = model(drawn(generator, successors))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())

    for number in range(STEPS - PROFILED):
        begin = time.perf_counter()
        step()
        if number < 5 or number % 20 == 0:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    trained = time.perf_counter() - BEGUN
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        begin.record()
        for _ in range(PROFILED):
            step()
        end.record()
        torch.cuda.synchronize()
    kernels, longest = kernels_of(profile)
    found = {
        "seconds": trained,
        "losses": [float(loss) for loss in losses],
        "first_steps_s": times[:5],
        "step_ms": begin.elapsed_time(end) / PROFILED,
        "kernels_ms": kernels / PROFILED,
        "longest": longest,
    }
    Path(sys.argv[1]).write_text(json.dumps(found, indent=1) + "\n")


main()
