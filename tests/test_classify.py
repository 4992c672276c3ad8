"""The classifier: every opcode and tag has an encoding, and each fact changes some outcome."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stretto.loop import (
    Facts,
    Loop,
    LoopError,
    Note,
    Op,
    Operand,
    Place,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine, load_machine
from stretto.machine.formula import FormulaError
from stretto.resources import summarize
from stretto.resources.prepare import classify, resolve
from stretto.resources.table import ReservationTable

BLACKWELL = load_machine("blackwell", {})
B200 = load_machine("b200-pipes", {})
TILE = TileType((128, 64), "f16")
VALUES = {
    "tile": Value("tile", TILE),
    "square": Value("square", TileType((64, 128), "f16")),
    "out": Value("out", TILE),
}
STORAGES = {"ring": Storage("ring", "smem", TILE.bytes)}
FULL = Facts(
    contiguity=64,
    divisibility=16,
    constancy=1,
    bounds=(0, 4096),
    buffer="smem",
    bank=0,
    bank_width=64,
    bank_pairs=1,
    bytes=16384,
)


def classified(kind: str, facts: Facts = FULL, machine: Machine = BLACKWELL) -> Op:
    op = Op("it", kind, (Operand("tile"), Operand("square")), ("out",), facts=facts)
    return classify(op, machine, VALUES, STORAGES).op


def held(op: Op) -> list[tuple[str, int, int]]:
    return [(use.slot, use.offset, use.duration) for use in op.vector.uses]


# The four encodings of the reference, word for word ---------------------------------------


@pytest.mark.parametrize(
    ("kind", "rows", "latency"),
    [
        ("async.tiled_tma_load", [0x8800] * 8, 8),
        ("async.wgmma", [0x40400] * 8, 16),
        ("async.smem_write", [0x8000] * 7, 7),
        ("async.smem_read", [0x4000] * 7, 7),
    ],
)
def test_the_four_encodings(kind: str, rows: list[int], latency: int) -> None:
    op = classified(kind)
    table = ReservationTable(BLACKWELL, len(rows))
    table.commit("op", op.vector, 0)
    assert list(table.rows()) == rows
    assert op.latency == latency


# Coverage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", BLACKWELL.tags, ids=lambda tag: f"{tag.tag:#04x}")
def test_every_tag_has_an_encoding_of_its_latency_and_slot(tag: object) -> None:
    row = next(t for t in BLACKWELL.tags if t is tag)
    encodings = [e for e in BLACKWELL.encodings if e.tag == row.tag]
    assert encodings
    for encoding in encodings:
        assert set(row.slots) & {use.slot for use in encoding.uses}
        durations = {u.duration.cost({}) for u in encoding.uses if u.slot in row.slots}
        assert durations == {row.latency}
        # The reference states one exception: the accumulator of an MMA is ready after 16.
        is_mma = "tc_and_mma" in row.slots
        assert encoding.latency.cost({}) == (16 if is_mma else row.latency)
    stated = classify(Op("it", "anything", facts=Facts(tag=row.tag)), BLACKWELL).op
    assert set(row.slots) & {use.slot for use in stated.uses or ()}


def test_a_tag_the_table_does_not_give_is_refused() -> None:
    with pytest.raises(FormulaError, match="blackwell has no row with tag 0x11"):
        classify(Op("it", "anything", facts=Facts(tag=0x11)), BLACKWELL)


@pytest.mark.parametrize("machine", [BLACKWELL, B200], ids=lambda m: m.name)
def test_every_opcode_has_an_encoding(machine: Machine) -> None:
    for opcode in machine.opcodes:
        op = classified(opcode, machine=machine)
        assert op.resolved
        assert check(Loop("l", (replace(op, operands=(), results=()),)), machine) == ()


def test_every_encoding_can_be_reached() -> None:
    kinds = ["f16", "f32", "f64", "i32"]
    buffers = ["smem", "tmem", "global", "register"]
    reached: set[str | None] = set()
    for opcode in [*BLACKWELL.opcodes, "nobody.knows"]:
        for element in kinds:
            for buffer in buffers:
                for divisibility in (16, 2):
                    values = {"out": Value("out", TileType((128, 64), element))}
                    facts = Facts(buffer=buffer, divisibility=divisibility)
                    op = Op("it", opcode, results=("out",), facts=facts)
                    reached.add(classify(op, BLACKWELL, values).encoding)
    assert reached == {encoding.name for encoding in BLACKWELL.encodings}


def test_the_families_that_must_be_there() -> None:
    slots = {
        "async.tmem_load": ["tp_tmem_rd"],
        "async.tmem_store": ["tp_tmem_wr"],
        "async.tmem_copy": ["tp_smem_rd", "tp_tmem_wr"],
        "async.gnic_read": ["tp_gnic_rd"],
        "async.gnic_write": ["tp_gnic_wr"],
        "arith.addi": ["dual_alu"],
        "arith.muli": ["alu_or_fmaheavy"],
        "math.exp2": ["xu"],
        "async.cp_async": ["lsu", "tp_smem_wr"],
        "barrier": ["issue"],
    }
    for opcode, expected in slots.items():
        assert [use.slot for use in classified(opcode).uses or ()] == expected


# Types and facts --------------------------------------------------------------------------


def test_element_types_select_the_slot() -> None:
    def slot_of(kind: str, element: str) -> str:
        values = {"out": Value("out", TileType((128,), element))}
        op = classify(Op("it", kind, results=("out",)), BLACKWELL, values).op
        return op.vector.uses[0].slot

    assert slot_of("arith.addf", "bf16") == "fp32x2_fp16ultra"
    assert slot_of("arith.addf", "f32") == "alu_or_fmaheavy"
    assert slot_of("math.exp2", "f32") == "xu"
    assert slot_of("math.exp2", "f64") == "xu64"


BREAKS: list[tuple[str, Facts, str]] = [
    ("divisibility", replace(FULL, divisibility=8), "not divisible by 16 bytes (divisibility 8)"),
    (
        "contiguity",
        replace(FULL, contiguity=4),
        "shorter than 16 bytes (contiguity 4, element_bits",
    ),
    ("bytes", replace(FULL, bytes=24), "not a multiple of 16 bytes (bytes 24)"),
    ("constancy", replace(FULL, constancy=8192), "a broadcast, not a tile (constancy 8192"),
    ("bounds", replace(FULL, bounds=(0, 1 << 40)), "does not fit 32 bits"),
]


@pytest.mark.parametrize(("fact", "facts", "why"), BREAKS)
def test_a_load_unfit_for_tma_falls_to_the_load_store_path(
    fact: str, facts: Facts, why: str
) -> None:
    op = Op("it", "async.tiled_tma_load", results=("out",), facts=facts)
    fit = classify(replace(op, facts=FULL), BLACKWELL, VALUES)
    unfit = classify(op, BLACKWELL, VALUES)
    assert (fit.encoding, fit.notes) == ("tma_load", ())
    assert held(fit.op) == [("tma", 0, 8), ("tp_smem_wr", 0, 8)]
    assert unfit.encoding == "tma_load_by_threads"
    assert "lsu" in [use.slot for use in unfit.op.vector.uses]
    assert len(unfit.notes) == 1
    assert why in unfit.notes[0].text, fact
    assert unfit.notes[0].text.endswith("; takes tma_load_by_threads")


def test_what_is_not_known_breaks_nothing() -> None:
    bare = classify(Op("it", "async.tiled_tma_load"), BLACKWELL)
    assert bare.encoding == "tma_load"


def test_the_buffer_selects_the_transport() -> None:
    by_fact = {
        space: classified("async.copy", replace(FULL, buffer=space)).vector.uses[0].slot
        for space in ("smem", "tmem", "global", "register")
    }
    assert by_fact == {
        "smem": "tp_smem_wr",
        "tmem": "tp_tmem_wr",
        "global": "tp_gnic_wr",
        "register": "dual_alu",
    }
    copy = Op("it", "async.copy", writes=("ring",))
    assert classify(copy, BLACKWELL, {}, STORAGES).encoding == "copy_to_smem"


def test_bank_facts_draw_on_pools_and_allow_fusion() -> None:
    demands = {d.pool: d.units for d in classified("math.fma").demands}
    assert demands == {"register_bank": 1, "bank_width": 64}
    assert classified("math.fma", Facts()).demands == ()

    def reads(*banks: int | None) -> int:
        ops = tuple(
            replace(classified("async.smem_read", Facts(bank=b)), name=f"r{i}", results=())
            for i, b in enumerate(banks)
        )
        ops = tuple(replace(op, operands=()) for op in ops)
        return compute_bounds(Loop("l", ops), BLACKWELL).resource.bound

    assert reads(0, 0) == 7
    assert reads(0, 1) == 14
    assert reads(None, None) == 14


def test_an_smem_allocation_takes_the_lock() -> None:
    assert [d.pool for d in classified("alloc_tensor", Facts(buffer="smem")).demands] == [
        "smem_lock"
    ]
    assert classified("alloc_tensor", Facts(buffer="tmem")).demands == ()


# The pipes and their formulas -------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "pipe", "duration", "latency"),
    [
        ("async.tiled_tma_load", [], "128x64xf16", "TMA", 96, 556),
        ("async.tiled_tma_load", [], "256x64xf16", "TMA", 192, 652),
        ("async.tiled_tma_store", ["128x128xf16"], None, "TMA", 1664, 1794),
        ("async.tcgen05_mma", ["128x64xf16", "64x128xf16"], "128x128xf32", "TC", 256, 559),
        ("async.tcgen05_mma", ["128x128xbf16", "128x64xbf16"], "128x64xf32", "TC", 256, 900),
        ("async.tcgen05_mma", ["256x64xf16", "64x256xf16"], "256x256xf32", "TC", 1024, 559),
        ("async.tmem_load", [], "128x64xf32", "CUDA", 128, 266),
        ("async.tmem_store", ["128x128xf32"], None, "CUDA", 48, 96),
        ("arith.mulf", [], "128x64xf32", "CUDA", 64, 69),
        ("arith.mulf", [], "128xf32", "CUDA", 1, 1),
        ("arith.addf", [], "128x128xf32", "CUDA", 128, 130),
        ("arith.truncf", ["128x64xf32"], "128x64xbf16", "CUDA", 32, 52),
        ("math.exp2", [], "128x64xf32", "SFU", 64, 570),
        ("math.exp2", [], "128xf32", "SFU", 1, 8),
        ("reduce.max", ["128x64xf32"], "128xf32", "CUDA", 152, 230),
        ("reduce.sum", ["128x64xf32"], "128xf32", "CUDA", 319, 845),
        ("convert_layout", [], "128x128xf16", "CUDA", 105, 105),
    ],
)
def test_b200_costs_are_the_published_cycle_counts(
    kind: str, inputs: list[str], output: str | None, pipe: str, duration: int, latency: int
) -> None:
    values = {f"i{i}": Value(f"i{i}", TileType.parse(t)) for i, t in enumerate(inputs)}
    results: tuple[str, ...] = ()
    if output is not None:
        values["out"] = Value("out", TileType.parse(output))
        results = ("out",)
    operands = tuple(Operand(f"i{i}") for i in range(len(inputs)))
    op = classify(Op("it", kind, operands, results), B200, values).op
    assert op.uses == (Use(pipe, duration),)
    assert op.latency == latency


# Errors -----------------------------------------------------------------------------------


def test_an_unknown_operation_is_an_error_on_b200_and_a_note_on_blackwell() -> None:
    loop = Loop("l", (Op("x", "ttg.mystery"), Op("y", "arith.mulf")))
    with pytest.raises(LoopError) as caught:
        resolve(loop, B200)
    first, second = caught.value.lines("l.json")
    assert first == (
        "l.json: $.ops[0]: error: `x` (ttg.mystery): b200-pipes does not know this operation; "
        "it has no encoding"
    )
    assert "its cost is `max(1, elements // 128)`, and `elements` cannot be told" in second
    resolved = resolve(loop, BLACKWELL)
    told = "`x`: blackwell does not know `ttg.mystery`; takes unknown"
    assert resolved.notes == (Note(Place(resolved.loop.name, 0), told),)
    assert held(resolved.loop.ops[0]) == [("unknown", 0, 7)]


def test_a_product_whose_shapes_disagree_has_no_cost() -> None:
    values = {"a": Value("a", TILE), "b": Value("b", TILE)}
    op = Op("it", "async.dot", (Operand("a"), Operand("b")))
    with pytest.raises(FormulaError, match="`m`, `n`, `k` cannot be told"):
        classify(op, B200, values)


def test_stated_costs_are_kept() -> None:
    op = Op("it", "whatever", uses=(Use("TMA", 3),), latency=9)
    assert classify(op, B200).op is op
    half = classify(Op("it", "arith.addi", latency=40), BLACKWELL).op
    assert (held(half), half.latency) == ([("dual_alu", 0, 2)], 40)


# The block summary ------------------------------------------------------------------------


def test_block_summary_is_deduplicated_and_ordered() -> None:
    kinds = ["async.smem_write", "async.tiled_tma_load", "async.smem_write", "arith.addi"]
    bare = Facts()
    ops = tuple(
        replace(classified(kind, bare), name=f"{i}", operands=(), results=())
        for i, kind in enumerate(kinds)
    )
    summary = summarize(Loop("l", ops), BLACKWELL)
    assert summary.ops == 4
    assert summary.tags == (0x1D, 0x1C, 0x01)
    assert summary.slots == ("tp_smem_wr", "tma", "dual_alu")
    assert dict(summary.pressure) == {"tp_smem_wr": 22, "tma": 8, "dual_alu": 2}
    assert summary.pipelining == ("tp_smem_wr", "tma")
    assert summary.worth_pipelining


def test_arithmetic_alone_is_not_worth_pipelining_on_blackwell() -> None:
    op = replace(classified("arith.addi", Facts()), operands=(), results=())
    assert not summarize(Loop("l", (op,)), BLACKWELL).worth_pipelining
    on_pipes = replace(classified("arith.addi", Facts(), B200), operands=(), results=())
    assert summarize(Loop("l", (on_pipes,)), B200).worth_pipelining


def test_pools_are_summed_over_durations() -> None:
    op = replace(classified("math.fma", Facts(bank_pairs=2)), operands=(), results=())
    assert summarize(Loop("l", (op,)), BLACKWELL).pools == (("register_bank", 8),)
