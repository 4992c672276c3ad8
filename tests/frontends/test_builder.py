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


def test_a_view_in_registers_takes_none_of_its_own() -> None:
    loop = build("l")
    x = loop.op("x", "k", type="128xf32")
    column = loop.op("column", "expand_dims", x, type="128x1xf32", view=True)
    wide = loop.op("wide", "broadcast", column[-1], type="128x64xf32", view=True)
    loop.op("use", "k", wide)
    made = loop.finish()
    bytes_of = {value.name: value.register_bytes for value in made.values}
    assert (bytes_of["x"], bytes_of["column"], bytes_of["wide"]) == (512, 0, 0)
    # Whoever reads the view reads x: `use` the one of the iteration before.
    assert made.readers["x"] == (("column", 0), ("wide", 1), ("use", 1))


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
