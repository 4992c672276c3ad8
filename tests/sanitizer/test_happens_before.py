"""What a finding keeps of the run around it, and the page that is drawn from it."""

from __future__ import annotations

import json
import re
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stretto.cli.main import main
from stretto.report.happens_before import LETTER

COPIED = "x, [0, step * 64], full.index(step % 2), ring.index(step % 2)"

EARLY = """
import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
TILE = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)


@gluon.jit
def load(x, ring, full, free, steps):
    for step in range(steps):
        mbarrier.wait(free.index(step % 2), ((step // 2) & 1) ^ 1)
        mbarrier.expect(full.index(step % 2), 8192)
        tma.async_load(x, [0, step * 64], full.index(step % 2), ring.index(step % 2))


@gluon.jit
def consume(ring, full, free, steps):
    for step in range(steps):
        mbarrier.wait(full.index(step % 2), (step // 2) & 1)
        mbarrier.arrive(free.index(step % 2), count=1)
        ring.index(step % 2).load(ROWS)  # <too late> & "quoted"


@gluon.jit
def kernel(x, steps):
    ring = gl.allocate_shared_memory(gl.float16, [2, 64, 64], TILE)
    full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    free = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for n in gl.static_range(2):
        mbarrier.init(full.index(n), count=1)
        mbarrier.init(free.index(n), count=1)
    fence_async_shared()
    parts = [(consume, (ring, full, free, steps)), (load, (x, ring, full, free, steps))]
    gl.warp_specialize(parts, [1], [24])


def launches():
    x = torch.randn(64, 512, dtype=torch.float16)
    yield kernel, (1,), (TensorDescriptor.from_tensor(x, [64, 64], TILE), 8), {"num_warps": 4}
"""


@pytest.fixture(name="kernel")
def _kernel(tmp_path: Path) -> str:
    file = tmp_path / "kernel.py"
    file.write_text(EARLY)
    return str(file)


def _excerpts(kernel: str, capsys: pytest.CaptureFixture[str], *more: str) -> list[Any]:
    assert main(["check", kernel, "--json", *more]) == 1
    return [f["excerpt"] for f in json.loads(capsys.readouterr().out)["findings"]]


def _reached(excerpt: Any, start: int) -> set[int]:
    """Steps that come after one, by the order of agents and by the waits of the excerpt."""
    steps, after, queue = excerpt["steps"], {start}, deque([start])
    while queue:
        at = queue.popleft()
        own = (n for n in range(at + 1, len(steps)) if steps[n]["agent"] == steps[at]["agent"])
        heard = (o["second"] for o in excerpt["orders"] if o["first"] == at)
        for step in (*own, *heard):
            if step not in after:
                after.add(step)
                queue.append(step)
    return after


@pytest.mark.parametrize("seeds", ["1", "2", "4"])
def test_no_way_leads_from_one_accused_step_to_the_other(
    kernel: str, capsys: pytest.CaptureFixture[str], seeds: str
) -> None:
    for excerpt in _excerpts(kernel, capsys, "--seeds", seeds):
        accused = [n for n, step in enumerate(excerpt["steps"]) if step["accused"]]
        assert len(accused) == 2
        assert accused[1] not in _reached(excerpt, accused[0])
        numbers = [step["number"] for step in excerpt["steps"]]
        assert numbers == sorted(set(numbers))
        assert numbers[-1] < excerpt["total"]


def test_waits_stand_behind_what_they_heard_of(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (excerpt,) = _excerpts(kernel, capsys)
    steps = excerpt["steps"]
    assert excerpt["orders"]
    for order in excerpt["orders"]:
        first, second = steps[order["first"]], steps[order["second"]]
        assert order["first"] < order["second"]
        assert second["what"] == "wait"
        assert second["slot"] == order["barrier"]
        assert first["slot"] in (order["barrier"], order["barrier"].replace("full", "ring"))
    arrive = next(n for n, s in enumerate(steps) if s["what"] == "arrive")
    assert any(o["first"] == arrive for o in excerpt["orders"])


def test_arrivals_of_named_barriers_are_orders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meet = (
        'gl.inline_asm_elementwise("bar.sync 5, 256;", "=r,r", [gl.to_tensor(0)], '
        "dtype=gl.int32, is_pure=False, pack=1)"
    )
    text = EARLY.replace(
        "        mbarrier.arrive(free", f"        {meet}\n        mbarrier.arrive(free"
    )
    text = text.replace(
        "        mbarrier.expect(full", f"        {meet}\n        mbarrier.expect(full"
    )
    text = text.replace("[1], [24]", "[4], [24]")
    file = tmp_path / "kernel.py"
    file.write_text(text)
    found = _excerpts(str(file), capsys, "--seeds", "1")
    assert all(step["agent"] for excerpt in found if excerpt for step in excerpt["steps"])
    assert found


def test_a_deadlock_shows_the_last_steps_of_who_waits(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        Path(kernel).read_text().replace("mbarrier.arrive(free.index(step % 2), count=1)", "pass")
    )
    Path(kernel).write_text(text)
    (excerpt,) = _excerpts(kernel, capsys, "--seeds", "1")
    last = {step["agent"]: step["what"] for step in excerpt["steps"]}
    assert last == {"consume": "wait", "load": "wait"}


def test_the_page_stands_alone_and_shows_the_source(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", kernel, "--format", "html"]) == 1
    page = capsys.readouterr().out
    assert "http" not in page.replace("http-equiv", "")
    assert "<mark>" in page
    assert "&lt;too late&gt; &amp; &quot;quoted&quot;" in page
    picture = page[page.index("<svg class=") : page.index("</svg>") + 6]
    drawn = ElementTree.fromstring(picture)
    assert len(drawn.findall("g")) == len(drawn.findall("g/path"))
    assert sum(path.get("class") == "accused" for path in drawn.findall("g/path")) == 2
    assert drawn.find("path[@class='gap']") is not None


def test_labels_of_a_picture_stand_apart(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", kernel, "--format", "html"]) == 1
    page = capsys.readouterr().out
    picture = page[page.index("<svg class=") : page.index("</svg>") + 6]
    rows: dict[str, list[tuple[float, float]]] = {}
    for text in ElementTree.fromstring(picture).findall("g/text"):
        half = LETTER * len(text.text or "") / 2
        at = float(text.attrib["x"])
        rows.setdefault(text.attrib["y"], []).append((at - half, at + half))
    assert len(rows) == 6
    for labels in rows.values():
        ends = [(before[1], after[0]) for before, after in pairwise(sorted(labels))]
        assert all(end < begin for end, begin in ends)


def test_places_that_are_close_are_shown_in_one_piece(
    kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def pieces() -> list[str]:
        main(["check", kernel, "--format", "html", "--seeds", "1"])
        return re.findall("<pre>(.*?)</pre>", capsys.readouterr().out, re.DOTALL)

    apart = pieces()
    assert [piece.count("<mark>") for piece in apart] == [1, 1]
    text = Path(kernel).read_text()
    read = next(line for line in text.splitlines() if "<too late>" in line)
    line = f"def copied(x, step, full, ring):\n    tma.async_load({COPIED})\n"
    late = f"def late(ring, step):\n    {read.strip()}\n"
    near = text.replace(read, "        late(ring, step)")
    near = near.replace(f"tma.async_load({COPIED})", "copied(x, step, full, ring)")
    jit = "@gluon.jit\n"
    Path(kernel).write_text(near.replace(jit, f"{jit}{line}\n\n{jit}{late}\n\n{jit}", 1))
    (piece,) = pieces()
    assert piece.count("<mark>") == 2
    numbers = [int(row.removeprefix("<mark>")[:5]) for row in piece.splitlines()]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_a_sound_kernel_has_a_page_too(
    kernel: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    lines = Path(kernel).read_text().splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if "mbarrier.arrive(free" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    Path(kernel).write_text("".join(lines))
    out = tmp_path / "page.html"
    assert main(["check", kernel, "--format", "html", "-o", str(out)]) == 0
    assert "nothing wrong" in out.read_text()
    assert "<svg" not in out.read_text()
    del capsys
