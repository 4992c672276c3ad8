"""Every wait and every arrival of some emitted kernels, left out one by one: each is missed.

    mbarrier.wait(k_tile_full.index(slot), phase)      ──►  pass      a tile is read that may not be
                                                                      there yet: compute

The emulator knows who has heard of what, so that it is no matter of timing (`stretto.sanitizer`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from test_emit import attention, gemm

from gluon_cases import emitted
from gluon_emulator import EmulationError

SYNCHRONIZES = re.compile(r"mbarrier\.(wait|arrive|expect)\(|= warpgroup_mma_wait\(")
Run = Callable[[str], None]


def _gemm(source: str) -> None:
    for trips in (1, 7):
        gemm(source, trips)


def _attention(source: str) -> None:
    for trips in (1, 5):
        attention(source, trips, 64, 64)


KERNELS: dict[str, tuple[str, int, int | None, Run]] = {
    "product": ("triton/matmul_descriptors", 1, 4, _gemm),
    "product of two": ("triton/matmul_descriptors", 2, 2, _gemm),
    "attention of two": ("triton/attention_forward_d64", 2, 2, _attention),
}
LAST = "the last turn of a ring: nobody fills that slot again"
BOTH = "a wait for the product's other tile, handed back behind the same product, says as much"
REDUNDANT = {
    ("product", "compute, epilogue", "arrive", "a_tile_free"): LAST,
    ("product", "compute, epilogue", "arrive", "b_tile_free"): LAST,
    ("product", "compute, else", "arrive", "a_tile_free"): LAST,
    ("product", "compute, else", "arrive", "b_tile_free"): LAST,
    ("product", "copy, kernel", "wait", "b_tile_free"): BOTH,
    ("product of two", "copy, kernel", "wait", "a_0_tile_free"): BOTH,
    ("product of two", "copy, kernel", "wait", "a_1_tile_free"): BOTH,
    ("attention of two", "compute_1, epilogue", "arrive", "v_tile_free"): LAST,
    ("attention of two", "compute_1, else", "arrive", "k_tile_free"): LAST,
    ("attention of two", "compute_1, else", "arrive", "v_tile_free"): LAST,
}
"""What may be left out: kernel, agent and part, what is done to which barrier; and why."""


@cache
def source_of(kernel: str) -> str:
    name, consumers, depth, _ = KERNELS[kernel]
    return emitted(name, consumers, depth=depth).source


def dropped(source: str) -> Iterator[tuple[str, str, str]]:
    """Of each such line: its function, itself, and the source without it."""
    lines, function, section = source.splitlines(), "", ""
    for n, line in enumerate(lines):
        if line.startswith("def "):
            function = line.removeprefix("def ").partition("_agent(")[0]
        if line.strip().startswith(("# ", "else:")):
            section = line.strip(" #:").partition(",")[0]
        if SYNCHRONIZES.search(line):
            gap = line[: len(line) - len(line.lstrip())]
            text = "\n".join([*lines[:n], f"{gap}pass", *lines[n + 1 :]])
            yield f"{function}, {section}", line.partition("  # stage")[0].strip(), text


@pytest.mark.parametrize("kernel", KERNELS)
def test_whatever_is_left_out_is_missed(kernel: str) -> None:
    run = KERNELS[kernel][3]
    run(source_of(kernel))
    survivors: list[tuple[str, str, str, str]] = []
    count = 0
    for where, line, text in dropped(source_of(kernel)):
        count += 1
        try:
            run(text)
        except (EmulationError, AssertionError, TypeError):
            continue
        what, barrier = re.findall(r"\w+", line)[1:3]
        survivors.append((kernel, where, what, barrier))
    assert count > 15
    assert survivors == [one for one in REDUNDANT if one[0] == kernel]
