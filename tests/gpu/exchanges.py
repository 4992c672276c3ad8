"""Conversions of layouts, compiled: `python exchanges.py PYTHON` (`make test-gpu`).

    load in one layout ──► convert ──► store in another      128x64xf16, mma_64 to rows_128_64

None takes more shared memory, by the compiler's own figure, than `exchanged` says, and few take
less than a quarter of it. The pairs of layouts are random, and the same each time.
"""

# ruff: noqa: T201

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path

from stretto.kernel.types import Scalar, Tile
from stretto.program.builder.exchange import exchanged, holders
from stretto.program.layouts import Factor, Layout, Product, Rows

PAIRS = 40
WORKERS = 2
TRITON = {"i8": "*i8", "f16": "*fp16", "f32": "*fp32", "i64": "*i64"}
LOOSE = 0.1
"""Of the pairs: those that may take less than a quarter of what we say."""
SOURCE = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

A = gl.constexpr({source})
B = gl.constexpr({target})


@gluon.jit
def places(LAYOUT: gl.constexpr):
    rows = gl.arange(0, {rows}, gl.SliceLayout(1, LAYOUT))
    return rows[:, None] * {columns} + gl.arange(0, {columns}, gl.SliceLayout(0, LAYOUT))[None, :]


@gluon.jit
def converting(x, y, num_warps: gl.constexpr):
    gl.store(y + places(B), gl.convert_layout(gl.load(x + places(A)), B))
"""


def layout(draw: random.Random, shape: tuple[int, int], warps: int, bits: int) -> Layout:
    """Some layout that a tile may have: of a product, of its left factor, in rows or columns."""
    kind = draw.randrange(6)
    product = Product(min(shape[1], draw.choice([16, 64, 128, 256])), warps, 16)
    if kind < 3 and shape[0] >= 16 * warps:
        return Factor(product, 32 // bits) if kind == 2 and bits <= 16 else product
    return Rows(shape, warps, draw.choice([1, 2, 4, 8]), draw.choice([None, None, 0]))


def text(one: Layout) -> str:
    """As Gluon writes it."""
    if isinstance(one, Factor):
        return f"gl.DotOperandLayout(0, {one.product.text}, {one.width})"
    assert isinstance(one, Product | Rows)
    return one.text


def pairs(folder: Path) -> list[tuple[str, int, str]]:
    """Files of kernels that convert, what we say each takes, and what it is."""
    draw, found = random.Random(1), list[tuple[str, int, str]]()
    while len(found) < PAIRS:
        warps, element = draw.choice([4, 4, 8]), Scalar(draw.choice(list(TRITON)))
        shape = draw.choice([16, 64, 128]), draw.choice([16, 64, 128, 256])
        tile = Tile(shape, element)
        source, target = (layout(draw, shape, warps, element.bits) for _ in range(2))
        said = exchanged(holders(source, shape), holders(target, shape), tile)
        if source == target or said > 65_536:
            continue
        file = folder / f"pair_{len(found)}"
        rows, columns = shape
        sizes = {"rows": rows, "columns": columns}
        file.with_suffix(".py").write_text(
            SOURCE.format(source=text(source), target=text(target), **sizes)
        )
        parameters = dict.fromkeys("xy", TRITON[element.element])
        meta = {"kernel": "converting", "parameters": parameters, "descriptors": {}}
        file.with_suffix(".json").write_text(json.dumps({**meta, "warps": warps, "maxnreg": None}))
        found.append((str(file), said, f"{tile}, {text(source)} to {text(target)}"))
    return found


def compiled(python: str, files: list[str]) -> list[int]:
    """The shared memory that each takes."""
    command = [python, str(Path(__file__).parent / "cubin.py"), *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line)["smem"] for line in done.stdout.splitlines()]


def main(python: str) -> int:
    """How many fail."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPool(WORKERS) as pool:
        asked = pairs(Path(folder))
        files = [file for file, _, _ in asked]
        parts = [files[n::WORKERS] for n in range(WORKERS)]
        made = pool.starmap(compiled, [(python, part) for part in parts])
    taken = {
        file: bytes
        for part, sizes in zip(parts, made, strict=True)
        for file, bytes in zip(part, sizes, strict=True)
    }
    failed = 0
    for file, said, what in asked:
        if taken[file] > said:
            print(f"{what}: takes {taken[file]:,} bytes, and we say {said:,}")
            failed += 1
    loose = sum(4 * taken[file] < said for file, said, _ in asked)
    failed += loose > LOOSE * len(asked)
    seconds = time.monotonic() - begun
    print(f"{len(asked)} conversions, {failed} failed, {loose} loose, {seconds:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1]) else 0)
