"""Clusters: each block of one has clocks and memory of its own, and hears of others by barriers."""

from __future__ import annotations

from pathlib import Path

import pytest

from stretto.errors import DocumentError
from stretto.sanitizer.checking import check
from stretto.sanitizer.finding import Report
from stretto.sanitizer.launches import Settings

HEAD = """
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout, allocate_tensor_memory, clc, tcgen05_mma, tcgen05_mma_barrier_count,
)
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor


def described(array, block, *bases):
    layout = gl.NVMMASharedLayout.get_default_for(block, gl.float16, cga_layout=bases)
    return TensorDescriptor.from_tensor(array, block, layout)


def half(*sizes):
    return torch.randn(*sizes, dtype=torch.float16)
"""
MULTICAST = (
    HEAD
    + """
@gluon.jit
def kernel(x, y):
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0], cga_layout=[[0, 0]])
    slot = gl.allocate_shared_memory(x.dtype, x.block_shape, x.layout)
    full = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    for step in range(3):
        mbarrier.expect(full, x.nbytes_per_cta)
        tma.async_load(x, [0, step * 64], full, slot, multicast=True)
        mbarrier.wait(full, step & 1)
        slot.load(layout)
        fence_async_shared()
        gl.barrier(cluster=True)
    mbarrier.invalidate(full)


def launches():
    x = described(half(64, 192), [64, 64], (0, 0))
    yield kernel, (1,), (x, x), {"num_ctas": 2}
"""
)
PAIR = (
    HEAD
    + """
@gluon.jit
def kernel(a, b, out, steps):
    a_slot = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    b_slot = gl.allocate_shared_memory(b.dtype, b.block_shape, b.layout)
    layout: gl.constexpr = TensorMemoryLayout([128, 64], 1, [(1, 0), (2, 0)], two_ctas=True)
    total = allocate_tensor_memory(gl.float32, [512, 64], layout)
    full = mbarrier.allocate_mbarrier(two_ctas=True)
    done = mbarrier.allocate_mbarrier()
    mbarrier.init(full, count=1)
    mbarrier.init(done, count=tcgen05_mma_barrier_count([a_slot, b_slot], True, True))
    for step in range(steps):
        mbarrier.expect(full, a.nbytes_per_cta + b.nbytes_per_cta)
        tma.async_load(a, [0, step * 64], full, a_slot, multicast=True)
        tma.async_load(b, [step * 64, 0], full, b_slot, multicast=True)
        mbarrier.wait(full, step & 1)
        tcgen05_mma(
            a_slot, b_slot, total, use_acc=step > 0, multicast=True, mbarriers=[done]
        )
        mbarrier.wait(done, step & 1)
    mbarrier.invalidate(full)
    mbarrier.invalidate(done)
    tile = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
    tile.store(total.load().to(out.dtype))
    fence_async_shared()
    tma.async_store(out, [0, 0], tile)
    tma.store_wait(0)


def launches():
    a, b, out = half(512, 256), half(256, 64), torch.empty(512, 64, dtype=torch.float16)
    yield kernel, (1,), (
        described(a, [512, 64], (1, 0), (2, 0)), described(b, [64, 64], (0, 1), (0, 0)),
        described(out, [512, 64], (1, 0), (2, 0)), 4,
    ), {"num_ctas": 4}
"""
)
REFERENCE = """
def kernel(a, b, out, steps):
    out[...] = (a.astype("f4") @ b.astype("f4")).astype("f2")
"""


def checked(folder: Path, text: str, reference: str = "") -> Report:
    (folder / "kernel.py").write_text(text)
    (folder / "reference.py").write_text(reference)
    against = folder / "reference.py" if reference else None
    return check(
        folder / "kernel.py", against=against, settings=Settings(seeds=(0, 1, 2), steps=500)
    )


def rules(report: Report) -> set[str]:
    return {finding.rule for finding in report.findings if not finding.note}


def test_a_multicast_copy_waits_for_the_readers_of_all_blocks(tmp_path: Path) -> None:
    assert rules(checked(tmp_path, MULTICAST)) == set()
    alone = MULTICAST.replace("gl.barrier(cluster=True)", "gl.barrier()")
    found = checked(tmp_path, alone).findings
    assert {f.rule for f in found} >= {"overwritten-too-early"}
    assert any("block 0" in f.message and "block 1" in f.message for f in found)


def test_a_multicast_copy_arrives_at_the_barrier_of_each_block(tmp_path: Path) -> None:
    twice = MULTICAST.replace("x.nbytes_per_cta)", "2 * x.nbytes_per_cta)")
    assert "expected-bytes" in rules(checked(tmp_path, twice))


def test_products_of_two_blocks_are_right_and_ordered(tmp_path: Path) -> None:
    report = checked(tmp_path, PAIR, REFERENCE)
    assert rules(report) == set()
    assert not any("reference" in why for why in report.coverage.left_out)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        (("allocate_mbarrier(two_ctas=True)", "allocate_mbarrier()"), {"read-too-early"}),
        (("a.nbytes_per_cta + b", "2 * a.nbytes_per_cta + b"), {"expected-bytes", "deadlock"}),
        (("[a_slot, b_slot], True, True", "[a_slot, b_slot], False, True"), {"too-many-arrivals"}),
        (("step > 0, multicast=True", "step > 0"), {"deadlock"}),
        (("        mbarrier.wait(done, step & 1)\n", ""), {"overwritten-too-early"}),
    ],
)
def test_products_of_two_blocks_with_one_thing_wrong(
    tmp_path: Path, wrong: tuple[str, str], found: set[str]
) -> None:
    assert PAIR.count(wrong[0]) == 1
    assert rules(checked(tmp_path, PAIR.replace(*wrong))) & found


def test_results_are_compared_with_a_reference(tmp_path: Path) -> None:
    doubled = REFERENCE.replace('.astype("f2")', '.astype("f2") * 2')
    (finding,) = checked(tmp_path, PAIR, doubled).findings
    assert finding.rule == "different-result"
    assert "`out` differs from the reference" in finding.message
    returned = 'def kernel(a, b, steps):\n    return {"out": a.astype("f4") @ b.astype("f4")}\n'
    assert rules(checked(tmp_path, PAIR, returned)) == set()
    with pytest.raises(DocumentError, match="neither `kernel` nor `reference`"):
        checked(tmp_path, PAIR, "def other():\n    pass\n")


def test_work_of_other_programs_is_taken_over(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
@gluon.jit
def kernel(out):
    answer = gl.allocate_shared_memory(gl.int64, [2], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    there = mbarrier.allocate_mbarrier()
    mbarrier.init(there, count=1)
    fence_async_shared()
    number = gl.program_id(0)
    busy = gl.to_tensor(True)
    phase = 0
    while busy:
        gl.atomic_add(out + number, 1)
        mbarrier.expect(there, 16)
        clc.try_cancel(answer, there)
        mbarrier.wait(there, phase)
        found = clc.load_result(answer)
        busy = found.is_canceled()
        if busy:
            number = found.program_id(0)
        phase ^= 1
        fence_async_shared()
    mbarrier.invalidate(there)


def launches():
    yield kernel, (3,), (torch.zeros(3, dtype=torch.int32),)
"""
    )
    reference = 'def kernel(out):\n    return {"out": [1, 2, 3]}\n'
    report = checked(tmp_path, text, reference)
    assert rules(report) == set()
    assert any("clc.try_cancel" in why for why in report.coverage.left_out)


def test_who_looks_again_and_again_lets_others_go_on(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
@gluon.jit
def tells(flag):
    gl.store(flag, 1)


@gluon.jit
def looks(flag):
    while gl.load(flag, volatile=True) == 0:
        pass


@gluon.jit
def kernel(flag):
    gl.warp_specialize([(looks, (flag,)), (tells, (flag,))], [4], [24])


@gluon.jit
def forever(flag):
    while gl.load(flag) == 0:
        pass


def launches():
    yield kernel, (1,), (torch.zeros(1, dtype=torch.int32),)
    yield forever, (1,), (torch.zeros(1, dtype=torch.int32),)
"""
    )
    report = checked(tmp_path, text)
    assert any("forever" in why and "was left" in why for why in report.coverage.left_out)
    assert not any("kernel[1]" in why for why in report.coverage.left_out)


@pytest.mark.parametrize("text", ["", "// nothing\n"])
def test_a_dump_without_a_kernel_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kernel.ttgir"
    file.write_text(text)
    with pytest.raises(DocumentError, match="no kernel of TTGIR" if text else "the file is empty"):
        check(file)
