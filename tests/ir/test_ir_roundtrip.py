"""Loop -> MLIR -> Loop changes nothing; nor does custom -> generic -> custom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import parse_loop
from generated import Problem, problems
from stretto import limits
from stretto.ir import read_mlir, write_mlir
from stretto.ir.loops import read_loops
from stretto.ir.loops.writer import print_module
from stretto.ir.parsing import parse_module
from stretto.loop import (
    Access,
    Constraint,
    Demand,
    Dependence,
    Facts,
    Loop,
    Op,
    Operand,
    Storage,
    TileType,
    Use,
    Value,
    check,
)
from stretto.machine import Machine, load_machine

EXAMPLES = Path(__file__).parents[2] / "examples"
BLACKWELL = load_machine("blackwell")


def read_back(text: str, machine: Machine = BLACKWELL) -> Loop:
    found = read_loops(parse_module(text, "written.mlir"), machine)
    assert found.left_alone == ()
    (item,) = found.loops
    return item.loop


def survives(loop: Loop, machine: Machine = BLACKWELL) -> str:
    """The loop's text, once it is known to read back as the loop in both forms."""
    custom, generic = write_mlir(loop), write_mlir(loop, generic=True)
    assert read_back(custom, machine) == loop
    assert read_back(generic, machine) == loop
    assert print_module(parse_module(generic).module) == custom
    assert print_module(parse_module(custom).module, generic=True) == generic
    return custom


@given(problems())
def test_generated_loops_survive(problem: Problem) -> None:
    survives(problem.loop, problem.machine)


# Names and numbers that no identifier and no 64 bits hold, and fields `problems` leaves alone.

NAMES = st.text(
    st.one_of(st.sampled_from('abc_.01 "\\%#\n'), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=6,
)
NATURALS = st.one_of(st.integers(0, 3), st.just(2**63 - 1), st.just(2**64), st.just(10**30))
ROOMY = 1 << 20
"""Bytes of a storage in which every tile below has room."""
CYCLES = st.one_of(st.integers(0, 3), st.just(limits.CYCLES))
FACTS = st.builds(
    Facts,
    memory_range=st.none() | st.tuples(st.integers(0, 3), st.integers(4, 9)),
    contiguity=st.none() | st.integers(1, 9),
    divisibility=st.none() | st.integers(1, 9),
    constancy=st.none() | st.integers(1, 9),
    bounds=st.none() | st.tuples(st.integers(-9, 0), st.integers(0, 9)),
    buffer=st.sampled_from([None, "global", "smem", "tmem", "register"]),
    bank=st.none() | NATURALS,
    bank_width=st.none() | NATURALS,
    bank_pairs=st.none() | NATURALS,
    bytes=st.none() | NATURALS,
    scratch=st.none() | NATURALS,
    cluster=st.sampled_from([None, True, False]),
    tag=st.none() | NATURALS,
)
TYPES = st.sampled_from(
    [
        "4xf32",
        "f16",
        "i1",
        "index",
        "2x3x4xbf16",
        "8xf8E4M3FN",
        "token",
        "ptr",
        "4xsi8",
        "i17",
        "tf32",
    ]
)


@st.composite
def odd_loops(draw: st.DrawFn) -> Loop:
    """A loop like those of `problems`, under odd names and with every other field filled."""
    base = draw(problems()).loop
    parts = (base.ops, base.values, base.storages)
    names = [[part.name for part in kind] for kind in parts]
    ops, values, storages = (
        dict(
            zip(
                old,
                draw(st.lists(NAMES, min_size=len(old), max_size=len(old), unique=True)),
                strict=True,
            )
        )
        for old in names
    )

    def op(old: Op) -> Op:
        resolved = draw(st.booleans())
        return replace(
            old,
            name=ops[old.name],
            kind=draw(st.sampled_from([old.kind, "async.wgmma", "ünknown kind"])),
            operands=tuple(
                replace(
                    o, value=values[o.value], distance=o.distance + draw(st.sampled_from([0, 0, 7]))
                )
                for o in old.operands
            ),
            results=tuple(values[name] for name in old.results),
            reads=tuple(replace(r, storage=storages[r.storage]) for r in old.reads),
            writes=tuple(storages[name] for name in old.writes),
            uses=old.uses if resolved else None,
            latency=draw(CYCLES) if resolved else None,
            encoding=draw(st.none() | NAMES),
            facts=draw(FACTS),
            constraint=replace(old.constraint, pending=draw(st.booleans())),
            parent=draw(st.none() | st.just(ops[base.ops[0].name])) if old != base.ops[0] else None,
        )

    taken = {operand.value for old in base.ops for operand in old.operands}
    fixed = sorted(storages[s.name] for s in base.storages if s.fixed)

    def value(old: Value) -> Value:
        # Who takes what lives in a ring reads it, and must come after who writes it.
        homes = fixed if old.name in taken else sorted(storages.values())
        home = draw(st.none() | st.sampled_from(homes or [None]))
        type = draw(st.none() | TYPES)
        return Value(values[old.name], TileType.parse(type) if type else None, home)

    loop = Loop(
        name=draw(NAMES),
        ops=tuple(op(old) for old in base.ops),
        values=tuple(draw(st.permutations([value(old) for old in base.values]))),
        storages=tuple(
            replace(s, name=storages[s.name], bytes=ROOMY + draw(NATURALS)) for s in base.storages
        ),
        stated=tuple(
            replace(
                d,
                src=ops[d.src],
                dst=ops[d.dst],
                latency=draw(CYCLES),
                via=draw(st.just("") | NAMES),
            )
            for d in base.stated
        ),
        machine=draw(st.sampled_from([None, "blackwell", "b200-pipes"])),
        slots=tuple(draw(st.lists(NAMES, max_size=2, unique=True))),
        force_serial=draw(st.booleans()),
    )
    # What is used after its fixed storage has been written again cannot have lived there.
    faults = [fault for fault in check(loop) if fault.code == "overwritten"]
    lost = {loop.ops[f.place.op or 0].operands[int(f.place.field[1])].value for f in faults}
    loop = replace(
        loop,
        values=tuple(replace(v, storage=None) if v.name in lost else v for v in loop.values),
    )
    assert check(loop) == ()
    return loop


@given(odd_loops())
def test_odd_loops_survive(loop: Loop) -> None:
    survives(loop)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_shipped_loops_survive(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if '"stretto.loop/1"' not in text:
        assert '"stretto.schedule/1"' in text
        return
    loop = parse_loop(path.name, text)
    assert read_mlir("written.mlir", write_mlir(loop)) == ((loop,), ())
    survives(loop)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mlir")), ids=lambda path: path.stem)
def test_shipped_kernels_print_the_same_through_the_generic_form(path: Path) -> None:
    custom = print_module(parse_module(path.read_text(encoding="utf-8"), path.name).module)
    generic = print_module(parse_module(custom).module, generic=True)
    assert print_module(parse_module(generic).module) == custom
    assert read_mlir("a", generic) == read_mlir("a", custom)


def one(*ops: Op, **fields: object) -> Loop:
    loop = replace(Loop("one", ops), **fields)  # pyright: ignore[reportArgumentType]
    assert check(loop) == ()
    return loop


def test_a_value_read_before_the_text_defines_it() -> None:
    first = Op("first", "k", operands=(Operand("late"),), results=("a",))
    second = Op("second", "k", results=("late",))
    loop = one(first, second, values=(Value("a"), Value("late", TileType((4,), "f32"))))
    assert 'stretto.operands = [{value = "late"}]' in survives(loop)


def test_ssa_says_what_it_can() -> None:
    """No attribute repeats what names, types and operands already say."""
    tile = TileType((4,), "f32")
    make = Op("x", "k", operands=(Operand("in"),), results=("x",))
    use = Op("y", "k", operands=(Operand("x"), Operand("y", 1), Operand("x", 3)), results=("y",))
    text = survives(one(make, use, values=tuple(Value(n, tile) for n in ("in", "y", "x"))))
    assert "stretto." not in text
    assert text.count("iter_args") == 1


def test_names_that_xdsl_would_cut() -> None:
    """`x_1` is `x` to xDSL, and a number is no hint at all."""
    ops = [Op(name, "k", results=(name,)) for name in ("x", "x_1", "7", "y_z", "loop")]
    survives(one(*ops, values=tuple(Value(op.name) for op in ops)))


def test_everything_at_once() -> None:
    storages = (Storage("ring", "smem", 64, depth=2), Storage("acc", "tmem", 10**30, fixed=True))
    op = Op(
        "load",
        "async.tiled_tma_load",
        operands=(Operand("in", 0, 5), Operand("out", 9)),
        results=("out", "token"),
        reads=(Access("acc"), Access("ring", 1)),
        writes=("ring", "acc"),
        uses=(Use("tma", 8), Use("own", 3, 2, 2)),
        demands=(Demand("register_bank", 2), Demand("register_bank", 0)),
        latency=limits.CYCLES,
        encoding="tma_load",
        facts=Facts(bounds=(-1, 1), cluster=False),
        constraint=Constraint(gid=0, leader_gid=3, stage_offset=4, max_depth=2, pending=True),
    )
    view = Op("view", "transpose", operands=(Operand("out"),), results=("seen",), parent="load")
    loop = one(
        op,
        view,
        values=(
            Value("seen", TileType((2,), "f32"), view_of="out"),
            Value("token"),
            Value("in", TileType((), "ptr")),
            Value("out", TileType((2,), "f32")),
            Value("unused", TileType((2, 2), "f16"), "ring"),
        ),
        storages=storages,
        stated=(Dependence("load", "load", 3, 1, "anti", "why"), Dependence("load", "view", 0)),
        slots=("own",),
        machine="blackwell",
        force_serial=True,
    )
    survives(loop)
