"""Dependence-graph dumps: graphs, storages, inner loops, and faults with their path."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from stretto.errors import DocumentError
from stretto.frontends import Source
from stretto.frontends.documents import read_source
from stretto.loop import Access, Loop, Place, Use
from stretto.lower_bounds import compute_bounds
from stretto.solve import prepare

LAYOUT = "#ttg.blocked<{order = [1, 0]}>"


def tensor(shape: str) -> str:
    return f"tensor<{shape}, {LAYOUT}>"


def shared(shape: str) -> str:
    return f"!ttg.memdesc<{shape}, #ttg.nvmma_shared<{{}}>, #ttg.shared_memory>"


def tmem(shape: str) -> str:
    return f"!ttg.memdesc<{shape}, #ttng.tensor_memory_encoding<>, #ttng.tensor_memory, mutable>"


def record(kind: str, scope: str, operands: list[Any], types: list[str], **attributes: Any) -> Any:
    return {
        "kind": kind,
        "scope": scope,
        "operands": [{"op": o} if isinstance(o, str) else o for o in operands],
        "result_types": types,
        "attributes": attributes,
    }


def node(id: int, ref: str, kind: str, pipe: str, latency: int, held: int, **more: Any) -> Any:
    return {
        "id": id,
        "op_ref": ref,
        "op_kind": kind,
        "pipeline": pipe,
        "latency": latency,
        "self_latency": held,
        "occupancy": held,
        "min_warps": 1,
        "is_super_node": False,
        **more,
    }


def edge(src: int, dst: int, latency: int, distance: int = 0) -> Any:
    kind = "loop_carried" if distance else "data"
    return {"src": src, "dst": dst, "latency": latency, "distance": distance, "kind": kind}


SEGMENTS = {"operandSegmentSizes": [1, 1, 1, 0, 1, 1, 0, 0]}
FALSE = {"const": 0, "type": "i1"}


def nested(accumulator: str = "128x128xf32", use_acc: Any = FALSE) -> dict[str, Any]:
    """A persistent product: the inner K loop is one node of the outer loop over tiles."""
    carried = {"iter_arg": {"loop": 0, "idx": 0}}
    ops = {
        "acc": record("ttng.tmem_alloc", "loop:1", [], [tmem(accumulator)]),
        "zero": record("ttng.tmem_store", "loop:1", ["acc", FALSE], []),
        "load": record("tt.descriptor_load", "loop:0", [{"arg": "a"}], [tensor("128x64xf16")]),
        "tile": record("ttg.local_alloc", "loop:0", ["load"], [shared("128x64xf16")]),
        "turned": record("ttg.memdesc_trans", "loop:0", ["tile"], [shared("64x128xf16")]),
        "mma": record(
            "ttng.tc_gen5_mma", "loop:0", ["tile", "turned", "acc", carried, FALSE], [], **SEGMENTS
        ),
        "yield0": record("scf.yield", "loop:0", [{"const": -1, "type": "i1"}], []),
        "for": record("scf.for", "loop:1", [FALSE, FALSE, FALSE, use_acc], ["i1"]),
        "out": record("ttng.tmem_load", "loop:1", ["acc"], [tensor(accumulator)]),
        "bias": record("tt.descriptor_load", "loop:1", [{"arg": "b"}], [tensor("128x128xf16")]),
        "wide": record("arith.extf", "loop:1", ["bias"], [tensor("128x128xf32")]),
        "yield1": record("scf.yield", "loop:1", [], []),
        "outer": record("scf.for", "function", [FALSE, FALSE, FALSE], []),
    }
    inner = {
        "nodes": [
            node(0, "load", "tt.descriptor_load", "TMA", 556, 96),
            node(1, "tile", "ttg.local_alloc", "NONE", 0, 0),
            node(2, "turned", "ttg.memdesc_trans", "NONE", 0, 0),
            node(3, "mma", "ttng.tc_gen5_mma", "TC", 559, 256),
        ],
        "edges": [edge(0, 1, 556), edge(1, 2, 0), edge(1, 3, 0), edge(2, 3, 0), edge(3, 3, 256, 1)],
    }
    outer = {
        "nodes": [
            node(0, "acc", "ttng.tmem_alloc", "NONE", 0, 0),
            node(1, "zero", "ttng.tmem_store", "CUDA", 96, 48),
            node(
                2,
                "for",
                "scf.for",
                "NONE",
                4096,
                0,
                is_super_node=True,
                inner_ii=256,
                prologue_latency=256,
            ),
            node(3, "out", "ttng.tmem_load", "CUDA", 532, 256),
            node(4, "bias", "tt.descriptor_load", "TMA", 652, 192),
            node(5, "wide", "arith.extf", "CUDA", 105, 64),
        ],
        "edges": [
            edge(0, 1, 0),
            edge(0, 3, 0),
            edge(2, 3, 4096),
            edge(2, 3, 4000),
            edge(4, 5, 652),
        ],
    }
    return {
        "schema_version": "ddg-0.1",
        "config": {"smem_budget_bytes": 232448, "tmem_budget_bytes": 262144},
        "kernel": {"name": "k", "args": []},
        "ops": ops,
        "loops": [
            {"loop_id": 0, "is_outer": False, "trip_count": 4, "ddg": inner},
            {"loop_id": 1, "is_outer": True, "trip_count": 4, "ddg": outer},
        ],
    }


def read(document: dict[str, Any]) -> Source:
    return read_source("k.json", json.dumps(document))


def loops(document: dict[str, Any]) -> tuple[Loop, Loop]:
    inner, outer = read(document).loops
    return inner, outer


def test_several_loops_a_file_onto_the_pipes() -> None:
    inner, outer = loops(nested())
    assert (inner.name, outer.name) == ("k.0", "k.1")
    assert inner.machine == outer.machine == "b200-pipes"
    assert inner.op("descriptor_load_0").uses == (Use("TMA", 96),)
    assert inner.op("local_alloc_1").uses == ()
    mma = inner.op("tc_gen5_mma_3")
    assert (mma.uses, mma.latency) == ((Use("TC", 256),), 559)
    for loop in (inner, outer):
        prepare(loop)


def test_edges_become_flows_with_their_own_latency() -> None:
    inner, outer = loops(nested())
    flows = {(d.src, d.dst, d.latency, d.distance) for d in inner.dependences if d.kind == "flow"}
    assert ("tc_gen5_mma_3", "tc_gen5_mma_3", 256, 1) in flows
    assert ("descriptor_load_0", "local_alloc_1", 556, 0) in flows
    doubled = [d for d in outer.dependences if (d.src, d.dst) == ("for_2", "tmem_load_3")]
    assert max(d.latency for d in doubled) == 4096


def test_load_and_alloc_are_one_storage_and_views_alias_it() -> None:
    inner, _ = loops(nested())
    (ring,) = [s for s in inner.storages if s.space == "smem"]
    assert (ring.bytes, ring.fixed) == (16384, False)
    assert inner.op("descriptor_load_0").writes == (ring.name,)
    assert inner.op("local_alloc_1").writes == ()
    assert inner.op("memdesc_trans_2").reads == ()
    assert Access(ring.name) in inner.op("tc_gen5_mma_3").reads
    homes = {v.name: v.storage for v in inner.values}
    assert homes["descriptor_load_0"] == homes["memdesc_trans_2"] == ring.name


def test_an_accumulator_from_outside_is_fixed_and_updated_in_place() -> None:
    inner, _ = loops(nested())
    (acc,) = [s for s in inner.storages if s.space == "tmem"]
    assert (acc.bytes, acc.fixed) == (65536, True)
    mma = inner.op("tc_gen5_mma_3")
    assert acc.name in mma.writes
    assert Access(acc.name) in mma.reads


def test_a_product_that_overwrites_does_not_read() -> None:
    document = nested()
    document["ops"]["mma"]["operands"][3] = FALSE
    inner, _ = loops(document)
    (acc,) = [s for s in inner.storages if s.space == "tmem"]
    assert Access(acc.name) not in inner.op("tc_gen5_mma_3").reads


def test_an_inner_loop_is_one_operation_with_a_slot_of_its_own() -> None:
    _, outer = loops(nested())
    inner = outer.op("for_2")
    assert outer.slots == ("inner_loop_0",)
    assert inner.uses == (Use("inner_loop_0", 4096),)
    names = {s.name: s for s in outer.storages}
    acc = next(s for s in outer.storages if s.space == "tmem")
    assert not acc.fixed  # allocated in the outer body: fresh every iteration
    assert acc.name in inner.writes
    ring = next(s for s in names.values() if s.bytes == 16384)
    assert ring.fixed  # the inner loop's own ring, one copy for the outer loop
    assert ring.name in inner.writes
    bounds = compute_bounds(outer, prepare(outer).machine)
    assert (bounds.mii, bounds.witness.limit) == (4096, "inner_loop_0")


def test_a_load_without_alloc_has_a_storage_too() -> None:
    _, outer = loops(nested())
    (bias,) = [s for s in outer.storages if s.bytes == 32768]
    assert outer.op("descriptor_load_4").writes == (bias.name,)
    assert outer.op("extf_5").reads == (Access(bias.name),)


def test_a_dead_fill_is_said_and_ignored() -> None:
    source = read(nested())
    (note,) = source.notes
    assert note.place == Place("k.1")
    assert note.text.startswith("`tmem_store_1` fills tmem_0, which inner loop `for_2` overwrites")
    assert source.loops[1].op("tmem_store_1").writes == ()


@pytest.mark.parametrize("use_acc", [{"const": -1, "type": "i1"}, {"op": "zero"}])
def test_a_fill_that_may_be_read_is_kept(use_acc: Any) -> None:
    source = read(nested(use_acc=use_acc))
    assert source.notes == ()
    outer = source.loops[1]
    assert outer.op("tmem_store_1").writes == ("tmem_0",)
    assert Access("tmem_0") in outer.op("for_2").reads
    orders = {(d.src, d.dst) for d in outer.dependences if d.kind in ("memory", "output")}
    assert ("tmem_store_1", "for_2") in orders


def set_at(document: Any, place: tuple[Any, ...], value: Any) -> Any:
    document = copy.deepcopy(document)
    inner = document
    for step in place[:-1]:
        inner = inner[step]
    if value is None:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return document


NODE = ("loops", 0, "ddg", "nodes", 0)
BAD: list[tuple[tuple[Any, ...], Any, str]] = [
    ((*NODE, "pipeline"), "DMA", r"\$\.loops\[0\]\.ddg\.nodes\[0\]\.pipeline: error: is \"DMA\""),
    ((*NODE, "latency"), -1, r"nodes\[0\]\.latency: error: is -1; expected a whole number"),
    ((*NODE, "occupancy"), None, r"nodes\[0\]\.occupancy: error: is missing"),
    ((*NODE, "op_ref"), "nobody", r"nodes\[0\]\.op_ref: error: is 'nobody'; expected a key of"),
    (("loops", 0, "ddg", "edges", 0, "src"), 99, r"edges\[0\]\.src: error: is 99; expected the id"),
    (("loops", 1, "ddg", "nodes", 2, "op_ref"), "zero", r"nodes\[2\]\.op_ref: error: is a super"),
    (("ops", "mma", "operands"), 5, r"\$\.ops\.mma\.operands: error: is 5; expected a list"),
    (("schema_version",), "ddg-9", r"\$\.schema_version: error: is 'ddg-9'; expected \"ddg-0\.1\""),
    (("kernel",), None, r"\$\.kernel: error: is missing"),
    (("loops",), {}, r"\$\.loops: error: is \{\}; expected a list"),
]


@pytest.mark.parametrize(("place", "value", "message"), BAD)
def test_faults_have_their_path(place: tuple[Any, ...], value: Any, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read(set_at(nested(), place, value))
    assert re.search(message, str(caught.value)), str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "k.json: error: is empty"),
        ("   \n", "k.json: error: is empty"),
        ("{}", "k.json: $: error: is no loop that Stretto knows"),
        ("[1]", "k.json: $: error: is no loop"),
        ("hello", "k.json:1:1: error: not JSON"),
    ],
)
def test_other_inputs_are_named(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_source("k.json", text)
    assert str(caught.value).startswith(message)
