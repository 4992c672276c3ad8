"""Tile IR bytecode: read as its own writer wrote it and as its own disassembler reads it.

`tileir/` has what cuda-tile 1.7.0 and tileirdisasm 13.4 made of tests/cutile/; `make test-cutile`
makes more of it anew.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from disassembly import compare
from stretto.errors import DocumentError
from stretto.frontends import is_bytecode
from stretto.frontends.tileir import Module, read_bytecode
from stretto.frontends.tileir.attributes import Dense, DivBy, Scalar
from stretto.frontends.tileir.numbers import number_of
from stretto.frontends.tileir.rows import ROWS
from stretto.frontends.tileir.types import Number, Tile
from written_operations import differences, written_names

HERE = Path(__file__).parents[1]
KERNELS = sorted((HERE / "tileir").glob("[a-z]*.tileirbc"))
WRITTEN = sorted((HERE / "tileir").glob("13.*.tileirbc"))
EXAMPLES = sorted((HERE.parent / "examples/cutile").glob("*.tileirbc"))
MUTATIONS = 5000 if os.environ.get("STRETTO_HYPOTHESIS") == "deep" else 800


def read(file: Path) -> Module:
    return read_bytecode(file.name, file.read_bytes())


def fault(data: bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        read_bytecode("k.tileirbc", data)
    return str(caught.value)


def altered(data: bytes, at: int, *values: int) -> bytes:
    return data[:at] + bytes(values) + data[at + len(values) :]


SMALL = (HERE / "tileir/early-13.4.tileirbc").read_bytes()
OLD = (HERE / "tileir/numbers-13.1.tileirbc").read_bytes()


@pytest.mark.parametrize("file", KERNELS, ids=lambda file: file.stem)
def test_a_kernel_is_what_the_disassembler_reads(file: Path) -> None:
    (function,) = read(file).functions
    walk = compare(function, file.with_suffix(".txt").read_text("utf-8"))
    assert walk.found == []
    assert walk.operations == sum(1 for _ in function.body.walk())


@pytest.mark.parametrize("file", WRITTEN, ids=lambda file: file.stem)
def test_every_operation_is_what_its_writer_was_asked_for(file: Path) -> None:
    number, unlike = differences(file)
    assert unlike == []
    assert number > 150


def test_every_operation_of_the_newest_version_was_written() -> None:
    ends = {row.name for row in ROWS.values() if row.is_terminator}
    names = {row.name.replace("_", "") for row in ROWS.values() if row.name not in ends}
    assert written_names(HERE / "tileir/13.4-0.json") == names


def test_globals_hints_and_the_version_are_kept() -> None:
    module = read(HERE / "tileir/13.2-0.tileirbc")
    assert module.version == (13, 2)
    assert [one.name for one in module.globals] == ["g0", "g1", "g2"]
    assert [one.alignment for one in module.globals] == [1, 2, 4]
    assert str(module.globals[0].value.type) == "tile<4xi32>"
    (function,) = module.functions
    assert function.name == "kernel"
    assert set(function.hints) == {"sm_90"}


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_are_read_with_places_in_their_source(file: Path) -> None:
    (function,) = read(file).functions
    assert function.name == file.stem
    files = {frame.file for op in function.body.walk() for frame in op.location}
    assert any(name.startswith("examples/cutile/") for name in files)


@pytest.mark.parametrize(
    ("kind", "bits", "value"),
    [
        (Number("f32", 32), 0xFF800000, -float("inf")),
        (Number("f32", 32), 0x3F800000, 1.0),
        (Number("f16", 16), 0x0001, 2.0**-24),
        (Number("bf16", 16), 0xC0A0, -5.0),
        (Number("tf32", 19), 0x1FC00, 1.0),
        (Number("f64", 64), 0xBFF8000000000000, -1.5),
        (Number("f8E4M3FN", 8), 0x7E, 448.0),
        (Number("f8E5M2", 8), 0x7B, 57344.0),
        (Number("f8E8M0FNU", 8), 127, 1.0),
        (Number("f4E2M1FN", 4), 0xF, -6.0),
        (Number("i8", 8), 0xFF, -1),
        (Number("i4", 4), 0x7, 7),
        (Number("i1", 1), 0xFF, True),
    ],
    ids=str,
)
def test_bits_mean_a_number(kind: Number, bits: int, value: float) -> None:
    assert number_of(bits, kind) == value


def test_a_constant_has_one_number_or_all() -> None:
    tile = Tile((2, 2), Number("i16", 16))
    assert list(Dense(tile, b"\x05\0").values()) == [5]
    assert list(Dense(tile, b"\1\0\2\0\3\0\xff\xff").values()) == [1, 2, 3, -1]
    truths = Tile((4,), Number("i1", 1))
    assert list(Dense(truths, b"\x05").values()) == [True, False, True, False]
    assert list(Dense(truths, b"\xff").values()) == [True]
    assert not Dense(tile, b"\1\0\2\0").fits


def test_a_place_names_the_call_and_the_caller() -> None:
    (function,) = read(HERE.parent / "examples/cutile/matmul.tileirbc").functions
    (cast,) = (op for op in function.body.walk() if op.name == "ftof")
    inner, outer = cast.location
    assert (inner.function, outer.function) == ("astype", "matmul")
    assert outer.file == "examples/cutile/matmul.py"


def test_assumptions_and_identities_are_values() -> None:
    (function,) = read(HERE.parent / "examples/cutile/attention_forward_d64.tileirbc").functions
    operations = list(function.body.walk())
    assumed = [op.attributes["predicate"] for op in operations if op.name == "assume"]
    assert DivBy(16) in assumed
    reduced = [op.attributes["identities"] for op in operations if op.name == "reduce"]
    assert (Scalar(Number("f32", 32), 0xFF800000),) in reduced


def test_bytecode_is_known_by_its_first_bytes() -> None:
    assert is_bytecode(SMALL)
    assert not is_bytecode(b"module {}")
    assert "is no Tile IR bytecode; expected 7f 54" in fault(b"module { }\n" * 3)
    assert fault(b"") == "k.tileirbc: offset 0: error: the header takes 8 bytes; 0 are left"


@pytest.mark.parametrize(("major", "minor"), [(13, 0), (13, 5), (12, 9), (14, 1), (250, 1)])
def test_another_version_is_refused_by_its_number(major: int, minor: int) -> None:
    told = f"k.tileirbc: offset 8: error: is Tile IR bytecode {major}.{minor}"
    assert fault(altered(SMALL, 8, major, minor)) == f"{told}; versions 13.1 to 13.4 are read"


def test_every_file_that_ends_too_soon_is_refused() -> None:
    for length in range(len(SMALL)):
        assert fault(SMALL[:length]).startswith("k.tileirbc: offset ")


def test_bytes_after_the_end_are_refused() -> None:
    assert "3 bytes stand after the end section" in fault(SMALL + b"abc")


def test_an_operation_that_came_later_is_refused_in_an_older_file() -> None:
    (function,) = read(HERE / "tileir/numbers-13.1.tileirbc").functions
    first = function.body.operations[0]
    said = fault(altered(OLD, first.offset - 1, 110))
    place = f"k.tileirbc: offset {first.offset - 1}: error: "
    assert said == place + "`atan2` is of version 13.2; the file is of 13.1"


def test_an_operation_that_does_not_exist_is_refused_at_its_place() -> None:
    (function,) = read(HERE / "tileir/early-13.4.tileirbc").functions
    at = function.body.operations[3].offset - 1
    said = fault(altered(SMALL, at, 30))
    assert said == f"k.tileirbc: offset {at}: error: opcode 30 is no operation of a body"


def test_a_value_that_nobody_made_is_refused() -> None:
    (function,) = read(HERE / "tileir/early-13.4.tileirbc").functions
    compared = next(op for op in function.body.operations if op.name == "cmpi")
    said = fault(altered(SMALL, compared.offset + 4, 127))
    assert "operand `rhs` of `cmpi` is value 127 of " in said


def mutated(data: bytes, chance: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 4, 16])):
        at = chance.randrange(12, len(made)) if len(made) > 13 else 0
        kind = chance.randrange(5)
        if kind == 0:
            made[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            made[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        elif kind == 2:
            del made[at : at + chance.choice([1, 1, 2, 8])]
        elif kind == 3:
            made[at:at] = bytes(chance.choice([b"\xff" * 9 + b"\1", b"\0", b"\x80", b"\x29"]))
        else:
            other = chance.randrange(len(made))
            made[at : at + 8] = made[other : other + 8]
    return bytes(made)


def test_no_mutation_does_harm() -> None:
    chance = random.Random(20261116)
    files = [file.read_bytes() for file in (*KERNELS, *WRITTEN, *EXAMPLES)]
    refused: list[DocumentError] = []
    slowest = 0.0
    for _ in range(MUTATIONS):
        data = mutated(chance.choice(files), chance)
        start = time.perf_counter()
        try:
            read_bytecode("k.tileirbc", data)
        except DocumentError as error:
            refused.append(error)
        slowest = max(slowest, time.perf_counter() - start)
    assert len(refused) > MUTATIONS // 2
    assert all(error.path.startswith("offset ") for error in refused)
    assert max(len(str(error)) for error in refused) < 1000
    assert slowest < 5
