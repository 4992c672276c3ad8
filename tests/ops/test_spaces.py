"""Memory spaces and the tiles in them: what nobody knows, or what does not fit, is said."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest

import stretto
from stretto import DocumentError, LoopError, StrettoError, build, solve
from stretto.cli.main import main
from stretto.exact import ProofOptions
from stretto.exact.objectives import NAMES, goal_of, up_to
from stretto.frontends.documents import read_source
from stretto.loop import Dependence, Facts, Loop, Op, Storage, TileType, Use, Value, check
from stretto.ops.spaces import REGISTERS, SPACES, Space

ROOT = Path(__file__).parents[2]


def made_up(space: str) -> Loop:
    """Made by hand, past the types."""
    storage = Storage("x", cast("Space", space), 1 << 30)
    op = Op("load", "load", results=("v",), writes=("x",), uses=(Use("tma", 1),), latency=1)
    return Loop("made_up", (op,), (Value("v", TileType((4,), "f32"), "x"),), (storage,))


# Spaces -------------------------------------------------------------------------------------------


def test_a_space_that_is_none_is_a_fault_with_those_that_are() -> None:
    (fault,) = check(made_up("shared"))
    assert (fault.path, fault.code) == ("$.storages[0].space", "unknown-space")
    assert fault.message == (
        "storage `x` is in `shared`, which is no memory space; known: smem, tmem, register"
    )


@pytest.mark.parametrize("space", SPACES)
def test_spaces_that_are(space: str) -> None:
    assert check(made_up(space)) == ()


def test_the_builder_knows_its_spaces() -> None:
    loop = build("gemm")
    ring = loop.storage("ring", cast("Any", "shared"), "128x64xf16")
    loop.op("load", "async.tiled_tma_load", type="128x64xf16", into=ring)
    with pytest.raises(LoopError, match="`shared`, which is no memory space; known: smem"):
        loop.finish()


def test_nobody_schedules_or_explains_an_unknown_space() -> None:
    for work in (stretto.prepare, stretto.schedule, stretto.explain):
        with pytest.raises(LoopError, match="no memory space"):
            work(made_up("shared"))


def test_a_document_with_an_unknown_space(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((ROOT / "examples" / "gemm.json").read_text())
    document["storages"][0]["space"] = "shared"
    file = tmp_path / "gemm.json"
    file.write_text(json.dumps(document))
    assert main(["bounds", str(file)]) == 1
    told = capsys.readouterr().err
    assert "$.storages[0].space: error:" in told
    assert "smem" in told


def test_a_dump_with_an_unknown_space() -> None:
    record = {
        "kind": "ttg.local_alloc",
        "scope": "loop:0",
        "operands": [],
        "result_types": ["!ttg.memdesc<128x64xf16, #ttg.nvmma_shared<{}>, #ttg.mystery_memory>"],
    }
    text = json.dumps(
        {
            "schema_version": "ddg-0.1",
            "kernel": {"name": "odd"},
            "ops": {"op0": record},
            "loops": [],
        }
    )
    with pytest.raises(DocumentError, match=r"no known memory space.*expected one of #ttg\.shared"):
        read_source("odd.json", text)


# Tiles in buffers ---------------------------------------------------------------------------------


def filled(tile: str, buffer: str | int, **how: Any) -> Loop:
    loop = build("tiles", machine="b200-pipes")
    ring = loop.storage("ring", "smem", buffer, **how)
    loop.op("load", "async.tiled_tma_load", type=tile, into=ring)
    return loop.finish()


def test_a_tile_of_its_buffers_size() -> None:
    assert filled("64x64xf16", "64x64xf16").storages[0].bytes == 8192
    assert filled("64x64xf16", "32x64xf32").storages[0].bytes == 8192  # another shape, as many


def test_a_small_tile_in_a_large_buffer() -> None:
    with pytest.raises(LoopError) as caught:
        filled("64x64xf16", "128x128xf16")
    assert str(caught.value) == (
        "tiles: $.ops[0].writes[0]: error: `load` fills `ring`, 128x128xf16, 32,768 bytes, with "
        "64x64xf16, 8,192; declare the buffer by the tile's type, or by its bytes if they are meant"
    )


@pytest.mark.parametrize("buffer", ["64x64xf16", 8192])
def test_a_large_tile_in_a_small_buffer(buffer: str | int) -> None:
    with pytest.raises(
        LoopError,
        match=r"values\[0\].type: error: value `load`, 128x128xf16, takes 32,768 bytes; storage "
        r"`ring` has 8,192",
    ):
        filled("128x128xf16", buffer)


def test_an_update_of_a_part() -> None:
    loop = build("tiles", machine="b200-pipes")
    acc = loop.storage("acc", "tmem", "128x128xf32", fixed=True)
    a, b = loop.live_in("a", "64x64xf16"), loop.live_in("b", "64x64xf16")
    loop.op("mma", "async.dot", a, b, type="64x64xf32", update=acc)
    with pytest.raises(LoopError, match="`mma` fills `acc`, 128x128xf32, 65,536 bytes, with 64x"):
        loop.finish()


def test_padding_is_meant_where_bytes_are_given_and_is_remarked_on() -> None:
    ready = solve.prepare(filled("64x64xf16", 8448))
    told = "`load` fills `ring`, 8,448 bytes, with 64x64xf16, 8,192 bytes, and nothing else writes"
    assert any(told in note.text for note in ready.notes)
    assert any(told in line.text for line in solve.schedule_prepared(ready).warnings)
    assert not any("fills" in note.text for note in solve.prepare(filled("64x64xf16", 8192)).notes)


def test_views_may_be_smaller_and_never_larger() -> None:
    def viewed(type: str) -> Loop:
        loop = build("views", machine="b200-pipes")
        ring = loop.storage("ring", "smem", "128x64xf16")
        tile = loop.op("load", "async.tiled_tma_load", type="128x64xf16", into=ring)
        loop.op("half", "slice", tile, type=type, view=True)
        return loop.finish()

    assert viewed("64x64xf16").values[1].storage == "ring"
    assert viewed("64x64xf32").values[1].storage == "ring"  # as many bytes, of another element
    with pytest.raises(LoopError, match="value `half`, 256x64xf16, takes 32,768 bytes"):
        viewed("256x64xf16")


def test_parts_written_by_several() -> None:
    """Nothing is left out where two operations write a half each."""
    ops = tuple(
        Op(name, "load", results=(name,), writes=("x",), uses=(Use("tma", 1),), latency=1)
        for name in ("low", "high")
    )
    values = tuple(Value(op.name, TileType((4,), "f32"), "x") for op in ops)
    loop = Loop("halves", ops, values, (Storage("x", "smem", 32),))
    assert check(loop) == ()
    assert not any("fills" in note.text for note in solve.prepare(loop).notes)


# A space that is new ------------------------------------------------------------------------------

LAST_ROW = "MemorySpace(REGISTERS,"
ROW = 'MemorySpace("cache", "the cache", foreign=("#my.cache",)),'
BUDGET = '[budgets.cache]\nbytes = 40000\nsource = "test"\n\n'
TYPE = """
@irdl_attr_definition
class CacheRefType(_Tile):
    name = "nv_tileas.cache_ref"


_OF_ONE_SPACE = (CacheRefType, """

NEW = """
import json
import stretto
from stretto import build
from stretto.frontends.documents import read_source
from stretto.ir import read_mlir
from stretto.ir import write_mlir
from stretto.ir.dialect.types import SHARED

loop = build("new", machine="b200-pipes")
ring = loop.storage("ring", "cache", "128x64xf16")
tile = loop.op("load", "async.copy", loop.live_in("a", "128x64xf16"), type="128x64xf16", into=ring)
loop.op("use", "math.exp", tile, type="128x64xf16")
loop = loop.finish()
found = stretto.schedule(loop)
text = write_mlir(loop)
(back,), _ = read_mlir("new.mlir", text, None)
record = {
    "kind": "ttg.local_alloc",
    "scope": "loop:0",
    "operands": [],
    "result_types": ["!ttg.memdesc<128x64xf16, #ttg.nvmma_shared<{}>, #my.cache>"],
}
dump = {"schema_version": "ddg-0.1", "kernel": {"name": "k"}, "ops": {"a": record}, "loops": []}
read_source("dump.json", json.dumps(dump))
print(json.dumps({
    "memory": [(row.space, row.used, row.budget) for row in found.memory if row.space == "cache"],
    "warnings": [line.text for line in found.warnings if "cache" in line.text],
    "types": [word for word in ("cache_ref<", "cache>") if word in text],
    "back": [(s.space, s.bytes) for s in back.storages],
    "addressed": "cache" in SHARED.buffers,
}))
"""


def with_cache(
    folder: Path, row: str = ROW, budget: str = BUDGET, type: str = ""
) -> subprocess.CompletedProcess[str]:
    """A copy of the package with one more space, each step as it is given, at work."""
    package = folder / "stretto"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "stretto", package, ignore=ignore)
    for name, before, after in (
        ("ops/spaces.py", LAST_ROW, f"{row}\n        {LAST_ROW}"),
        ("machine/targets/b200-pipes.toml", "[budgets.register]", budget + "[budgets.register]"),
        ("ir/dialect/types.py", "_OF_ONE_SPACE = (", type or "_OF_ONE_SPACE = ("),
    ):
        file = package / name
        text = file.read_text()
        assert text.count(before) == 1
        file.write_text(text.replace(before, after))
    return subprocess.run(
        [sys.executable, "-c", NEW],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


WHOLE = {
    "memory": [["cache", 32768, 40000]],  # a ring of two
    "warnings": [],
    "types": ["cache>"],
    "back": [["cache", 16384]],
    "addressed": True,
}


def test_a_new_space_is_known_everywhere_once_it_is_known(tmp_path: Path) -> None:
    """Budgeted, counted, written and read back: with a row, and bytes on the machine."""
    done = with_cache(tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == WHOLE


def test_a_new_space_with_a_type_of_its_own(tmp_path: Path) -> None:
    done = with_cache(
        tmp_path, ROW.replace("foreign", 'mlir="nv_tileas.cache_ref", foreign'), type=TYPE
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {**WHOLE, "types": ["cache_ref<"]}


def test_a_row_that_is_forgotten_is_told(tmp_path: Path) -> None:
    done = with_cache(tmp_path, row="", budget="")
    assert "`cache`, which is no memory space; known: smem, tmem, register" in done.stderr
    done = with_cache(tmp_path / "budget", row="")
    assert "unknown memory space" in done.stderr or "no memory space" in done.stderr


def test_bytes_that_are_forgotten_are_told(tmp_path: Path) -> None:
    done = with_cache(tmp_path, budget="")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [row[2] for row in told["memory"]] == [None]
    assert told["warnings"] == ["b200-pipes gives no bytes of the cache: nothing limits `cache`"]


def test_a_type_that_is_forgotten_is_told(tmp_path: Path) -> None:
    row = ROW.replace("foreign", 'mlir="nv_tileas.cache_ref", foreign')
    done = with_cache(tmp_path, row)
    assert done.returncode != 0
    assert "nv_tileas.cache_ref" in done.stderr


def test_a_word_of_another_dialect_that_is_forgotten_is_told(tmp_path: Path) -> None:
    done = with_cache(tmp_path, ROW.replace("#my.cache", "#my.cash"))
    assert "makes a buffer in no known memory space" in done.stderr
    assert "#my.cash" in done.stderr


def test_rows_and_words_of_spaces_agree() -> None:
    assert tuple(SPACES) == get_args(Space)
    assert [name for name, row in SPACES.items() if not row.budgeted] == [REGISTERS]
    with pytest.raises(StrettoError, match="`shared` is no memory space; known: smem, tmem"):
        _ = SPACES["shared"]


# Other words --------------------------------------------------------------------------------------


def test_a_buffer_that_is_none() -> None:
    """It would take the costs of some other one."""
    loop = made_up("smem")
    odd = replace(loop, ops=(replace(loop.ops[0], facts=Facts(buffer="shared")),))
    (fault,) = check(odd)
    assert (fault.path, fault.code) == ("$.ops[0].facts.buffer", "unknown-buffer")
    assert fault.message.endswith("which is no buffer; known: global, smem, tmem, register")


def test_a_kind_of_dependence_that_is_none() -> None:
    odd = Dependence("load", "load", 1, 1, cast("Any", "flwo"))
    (fault,) = check(replace(made_up("smem"), stated=(odd,)))
    assert (fault.path, fault.code) == ("$.dependences[0].kind", "unknown-kind")
    assert "no kind `flwo`; known: flow, anti, output, memory, order" in fault.message


@pytest.mark.parametrize("prove", [True, False])
def test_an_objective_that_is_none(prove: bool) -> None:
    known = f"no objective `speed`; known: {', '.join(NAMES)}"
    loop = filled("64x64xf16", "64x64xf16")
    with pytest.raises(StrettoError, match=known):
        stretto.schedule(loop, prove=prove, objective="speed")
    with pytest.raises(StrettoError, match=known):
        _ = ProofOptions("speed").goals
    for ask in (goal_of, up_to):
        with pytest.raises(StrettoError, match=known):
            ask("speed")
