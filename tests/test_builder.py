"""The Python builder: what its few words mean."""

from __future__ import annotations

import pytest

from stretto import LoopError, build
from stretto.loop import Access, Operand


def test_operands_in_storages_are_reads() -> None:
    loop = build("l")
    ring = loop.storage("ring", "smem", "128x64xf16")
    a = loop.op("load", "async.tiled_tma_load", type="128x64xf16", into=ring)
    seen = loop.op("trans", "transpose", a, type="64x128xf16", view=True)
    loop.op("use", "async.smem_read", seen[-1])
    made = loop.finish()
    assert made.storage("ring").bytes == 16384
    assert made.op("load").writes == ("ring",)
    assert made.op("trans").reads == ()
    assert made.op("use").reads == (Access("ring", 1),)
    assert made.op("use").operands == (Operand("trans", 1),)
    assert {v.name: v.storage for v in made.values} == {
        "load": "ring",
        "trans": "ring",
        "use": None,
    }


def test_updates_read_and_write_in_place() -> None:
    loop = build("l")
    acc = loop.storage("acc", "tmem", 1024, fixed=True)
    total = loop.carried("total", storage=acc)
    loop.op("mma", "async.dot", total[-1].after(5), update=acc, defines=total)
    op = loop.finish().op("mma")
    assert (op.reads, op.writes, op.results) == ((Access("acc"),), ("acc",), ("total",))
    assert op.operands == (Operand("total", 1, 5),)


def test_the_future_cannot_be_read() -> None:
    loop = build("l")
    m = loop.carried("m")
    with pytest.raises(IndexError, match="lies in the future"):
        m[1]


def test_finish_tells_everything_that_is_wrong() -> None:
    loop = build("l")
    loop.op("a", "k", build("other").live_in("ghost"))
    loop.op("a", "k")
    loop.depends("a", "nobody", 3)
    with pytest.raises(LoopError) as caught:
        loop.finish()
    told = str(caught.value)
    assert "`a` stands 2 times" in told
    assert "`ghost`" in told
    assert "no operation `nobody`" in told
