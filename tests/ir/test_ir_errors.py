"""Errors in MLIR texts: where they stand, how they look, and that nothing worse comes out."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stretto.diagnostics import Diagnostic, MlirError
from stretto.errors import StrettoError
from stretto.ir import read_mlir
from stretto.ir.parsing import NOT_RECOGNIZED, Parsed, make_context, parse_module, verify_module

EXAMPLES = Path(__file__).parents[2] / "examples"


def refused(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(MlirError) as caught:
        parse_module(text, "k.mlir")
    return caught.value.diagnostics


def test_a_diagnostic_as_text() -> None:
    note = Diagnostic("note", "from here", "k.mlir", 2, 3, "\t\tdefine")
    told = Diagnostic("error", "3 is not 4", "k.mlir", 7, 5, "  a b c", (note,))
    assert told.render().split("\n") == [
        "k.mlir:7:5: error: 3 is not 4",
        "  a b c",
        "    ^",
        "k.mlir:2:3: note: from here",
        "\t\tdefine",
        "\t\t^",
    ]


def test_a_diagnostic_without_a_place() -> None:
    assert Diagnostic("warning", "hm", "k.mlir").render() == "k.mlir: warning: hm"


def test_an_error_is_its_diagnostics() -> None:
    error = MlirError([Diagnostic("error", "a", "f", 1, 1), Diagnostic("error", "b", "f", 2, 1)])
    assert isinstance(error, StrettoError)
    assert str(error) == "f:1:1: error: a\nf:2:1: error: b"
    again = pickle.loads(pickle.dumps(error))
    assert again.diagnostics == error.diagnostics
    assert str(again) == str(error)


def test_the_caret_stands_below_the_operation() -> None:
    (told,) = refused(
        "func.func @f(%x: tensor<4xf32>) {\n"
        "  %a, %t = nv_tileas.async.smem_read %x : tensor<4xf32> -> f32, !nv_tileas.token\n"
        "  func.return\n}\n"
    )
    assert (told.line, told.column) == (2, 12)
    assert told.render().split("\n")[2] == " " * 11 + "^"


def test_the_caret_stands_below_the_attribute() -> None:
    (told,) = refused(
        "func.func @f(%x: f32) {\n"
        "  %a = arith.negf %x {other = 1, tileas.schedule.constraint.gid = -1} : f32\n"
        "  func.return\n}\n"
    )
    assert told.text[told.column - 1 :].startswith("tileas.schedule.constraint.gid")


def test_in_generic_form_too() -> None:
    (told,) = refused(
        '"builtin.module"() ({\n  %x = "arith.constant"() <{value = 1.0 : f32}> : () -> f32\n'
        '  %a = "arith.negf"(%x) {stretto.latency = -1} : (f32) -> f32\n}) : () -> ()\n'
    )
    assert (told.line, told.message) == (
        3,
        "`stretto.latency` is -1; expected a whole number of at least 0",
    )


def test_every_fault_is_told_in_the_order_of_the_text() -> None:
    line = "  %a{} = arith.negf %x {{tileas.schedule.constraint.gid = -1}} : f32\n"
    text = "func.func @f(%x: f32) {\n" + line.format(0) + line.format(1) + "  func.return\n}\n"
    assert [told.line for told in refused(text)] == [2, 3]


def test_lines_of_a_part_count_from_the_beginning_of_its_file() -> None:
    (told,) = refused("\n" * 40 + "func.func @f() {\n  oops\n}\n")
    assert told.line == 42


def test_windows_lines() -> None:
    (told,) = refused("func.func @f() {\r\n  %a = arith.negf %b : f32\r\n  func.return\r\n}\r\n")
    assert (told.line, told.column) == (2, 19)
    assert told.text == "  %a = arith.negf %b : f32"


def test_twice_defined() -> None:
    (told,) = refused("func.func @f(%x: f32) {\n  %x = arith.negf %x : f32\n  func.return\n}\n")
    assert "SSA value %x is already defined" in told.message
    assert (told.line, told.column) == (2, 3)


def test_a_value_of_another_region() -> None:
    text = (
        "func.func @f(%n: index, %x: f32) {\n"
        "  scf.for %i = %n to %n step %n {\n    %a = arith.negf %x : f32\n  }\n"
        "  %b = arith.negf %a : f32\n  func.return\n}\n"
    )
    (told,) = refused(text)
    assert (told.line, told.column, told.message) == (5, 19, "`%a` is not defined")


BLOCKS = """func.func @f(%c: i1, %x: f32) {{
  "cf.cond_br"(%c)[^a, ^b] <{{operandSegmentSizes = array<i32: 1, 0, 0>}}> : (i1) -> ()
^a:
  %y = arith.negf %x : f32
  "cf.br"()[^b] : () -> ()
^b:
  %z = arith.negf {} : f32
  func.return
}}
"""


def test_dominance_between_blocks() -> None:
    """Only the branch that makes it may use it; what the entry has reaches everywhere."""
    (told,) = refused(BLOCKS.format("%y"))
    assert (told.line, told.notes[0].line) == (7, 4)
    parse_module(BLOCKS.format("%x"))


def test_an_operation_may_not_use_its_own_result() -> None:
    (told,) = refused("func.func @f() {\n  %a = arith.negf %a : f32\n  func.return\n}\n")
    assert "where its definition does not reach" in told.message


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "there is nothing to parse"),
        ("  \n", 1, 1, "there is nothing to parse"),
        ("func.func", 1, 10, "symbol name"),
        ("func.func @f() {}\noops", 2, 1, "`oops` is no operation of a known dialect"),
        ("oops", 0, 0, "is not recognized"),
        ('// "\n"a' + "b" * 400, 2, 1, "this string does not end on its line"),
        ('"' + "b" * 400 + '\\q"', 1, 1, "an escape that MLIR does not know"),
        ("nv_tileas.nonsense\n", 1, 1, ""),
        ("func.func @f() {\n  %a = \n}", 3, 1, "operation name expected"),
        ('module { "a.b"() {x = } : () -> () }', 1, 23, ""),
    ],
)
def test_what_cannot_be_parsed(text: str, line: int, column: int, message: str) -> None:
    (told,) = refused(text)
    assert (told.line, told.column) == (line, column)
    assert message in told.message


def test_an_unknown_operation_where_none_is_allowed() -> None:
    with pytest.raises(MlirError) as caught:
        parse_module(
            '"func.func"() ({}) : () -> ()\n%x = "a.b"() : () -> i1',
            "k.mlir",
            context=make_context(allow_unregistered=False),
        )
    (told,) = caught.value.diagnostics
    assert (told.line, told.column) == (2, 6)
    assert told.message == "`a.b` is no operation of a known dialect"


def test_a_verifier_of_others_that_raises_what_it_likes() -> None:
    (told,) = refused(
        "func.func @f(%x: i32, %c: i1) {\n"
        "  %r = scf.while (%y = %x) : (i32) -> i64 {\n"
        "    scf.condition(%c) %y : i32\n"
        "  } do {\n  ^bb0(%z: i32):\n    scf.yield %z : i32\n  }\n  func.return\n}\n"
    )
    assert (told.line, told.column) == (2, 8)
    assert "expected i64, got i32" in told.message


def test_deep_nesting_is_refused() -> None:
    (told,) = refused("module {" * 3000)
    assert told.message == "nested too deeply"


def test_a_module_that_others_parsed_has_no_places_but_all_its_faults() -> None:
    line = "  %a = arith.negf %x {stretto.latency = -1} : f32\n"
    text = "func.func @f(%x: f32) {\n" + line + "  func.return\n}"
    parsed = parse_module(text, verify=False)
    (told,) = verify_module(Parsed.of_module(parsed.module))
    assert told.line == 0
    assert told.render().startswith("<module>: error: `stretto.latency` is -1")


KERNELS = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.mlir")}


@given(st.sampled_from(sorted(KERNELS)), st.data())
def test_broken_kernels_are_refused_or_read_but_never_crash(name: str, data: st.DataObject) -> None:
    text = KERNELS[name]
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 12))
    put = data.draw(
        st.sampled_from(
            ["", "", "0", "-", "%a", "!sum", ", ", "}", "{", '"', "x", "?", "128", "\x00"]
        )
    )
    broken = text[:at] + put + text[at + cut :]
    lines = [1]
    try:
        read_mlir("broken.mlir", broken)
    except MlirError as error:
        lines = [told.line or (told.message == NOT_RECOGNIZED) for told in error.diagnostics]
    assert min(lines) >= 1


@pytest.mark.parametrize("text", ["", "  \n", "// only a comment\n", "// one\n  // two"])
def test_nothing_to_parse(text: str) -> None:
    with pytest.raises(MlirError, match=r"k.mlir:1:1: error: there is nothing to parse"):
        parse_module(text, "k.mlir")
