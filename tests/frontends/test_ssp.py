"""Modulo problems of CIRCT: read in every form that its tools printed, every fault in its place."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import stretto
from stretto import DocumentError
from stretto.cli.main import main
from stretto.loop import Dependence, Use

EXAMPLE = Path(__file__).parents[2] / "examples" / "formats" / "fir.ssp.mlir"
PROBLEM = """// two products on one unit that is busy for three cycles
ssp.instance @two of "ModuloProblem" [II<7>] {
  library {
    operator_type @mul [latency<4>]
    operator_type @"wire 1" [latency<0>]
  }
  resource {
    resource_type @dsp [limit<1>, ii<3>]
  }
  graph {
    %0 = operation<@mul> @a(@b [dist<2>]) uses[@dsp] [t<0>]
    %1 = operation<@mul> @b(%0) uses[@dsp] [t<5>]
    operation<@"wire 1">(%0, %1 [dist<1>])
  }
}
"""


def _read(text: str) -> stretto.Source:
    file = io.StringIO(text)
    file.name = "p.mlir"  # pyright: ignore[reportAttributeAccessIssue]
    return stretto.read(file)


def test_a_problem_is_a_loop_on_the_machine_of_its_resources() -> None:
    (loop,) = _read(PROBLEM)
    assert [(op.name, op.kind, op.uses, op.latency) for op in loop.ops] == [
        ("a", "mul", (Use("dsp", 3),), 4),
        ("b", "mul", (Use("dsp", 3),), 4),
        ("op2", "wire 1", (Use("wire 1", 1),), 0),
    ]
    assert loop.stated == (
        Dependence("b", "a", 4, 2, "order"),
        Dependence("a", "b", 4, 0, "flow"),
        Dependence("a", "op2", 4, 0, "flow"),
        Dependence("b", "op2", 4, 1, "flow"),
    )
    found = stretto.schedule(loop, prove=True)
    capacities = {slot.name: slot.capacity for slot in found.problem.machine.slots}
    assert capacities == {"dsp": 1, "wire 1": None}
    # One unit, held for 3 cycles by each, would allow 6: then b is 3 or 9 after a, or 15. But it is
    # 4 after a at least, and the next a but one 4 after b, so 2 × 6 - 4 = 8 at most.
    assert (found.ii, found.proved) == (7, True)


def test_limits_may_stand_on_operators_and_uses_before_the_operands() -> None:
    old = """ssp.instance @old of "ModuloProblem" {
      ssp.library { ssp.operator_type @port [latency<1>, limit<1>] }
      graph {
        %0 = operation<@port> @a()
        %1 = ssp.operation<@port> @b()
      }
    }"""
    middle = """ssp.instance @middle of "ModuloProblem" {
      library { operator_type @load [latency<1>] }
      resource { resource_type @port [limit<1>] }
      graph {
        %0 = operation<@load> uses[@port] @a()
        %1 = operation<@load> uses[@port]()
      }
    }"""
    for text in (old, middle):
        assert stretto.schedule(_read(text)[0]).ii == 2


def test_types_are_found_in_libraries_outside_by_their_whole_way() -> None:
    text = """module @m {
      ssp.library @lib { operator_type @add [latency<2>] }
    }
    ssp.library @lib { operator_type @add [latency<5>] }
    ssp.resource @units { resource_type @alu [limit<2>] }
    ssp.instance @i of "ModuloProblem" {
      library @own { operator_type @add [latency<9>] }
      graph {
        operation<@add>()
        operation<@own::@add>()
        operation<@i::@own::@add>()
        operation<@lib::@add>() uses[@units::@alu]
        operation<@m::@lib::@add>()
      }
    }"""
    (loop,) = _read(text)
    assert [op.latency for op in loop.ops] == [9, 9, 9, 5, 2]
    assert loop.ops[3].uses == (Use("units::alu", 1),)


def test_a_cyclic_problem_is_limited_by_its_recurrence_alone() -> None:
    text = """ssp.instance @c of "CyclicProblem" {
      library { operator_type @f [latency<3>] }
      graph {
        %0 = operation<@f> @x(@y [dist<2>])
        operation<@f> @y(%0)
        operation<@f>(%0)
        operation<@f>(%0)
      }
    }"""
    assert stretto.schedule(_read(text)[0]).ii == 3


def test_other_problems_are_left_alone_with_a_note() -> None:
    other = 'ssp.instance @o of "SharedOperatorsProblem" { library {} graph {} }\n'
    source = _read(other + PROBLEM)
    assert [loop.name for loop in source] == ["two"]
    told = "`o` is of kind SharedOperatorsProblem, not of ModuloProblem or CyclicProblem"
    assert source.notes[0].text == f"{told}: it is left alone"
    with pytest.raises(DocumentError, match="has no modulo problem; `o` is of kind"):
        _read(other)


def test_delays_inside_a_cycle_are_noted() -> None:
    text = PROBLEM.replace("[latency<4>]", "[latency<4>, zIn<1.0 : f32>, zOut<2.5e-01 : f32>]")
    source = _read(text)
    assert "mul state delays inside a cycle" in source.notes[0].text
    assert source[0].op("a").latency == 4


def test_the_example_is_scheduled_from_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(EXAMPLE.read_text(encoding="utf-8")))
    assert main(["schedule", "-"]) == 0
    assert "fir on fir: II 3 is the MII, limited by slot port" in capsys.readouterr().out


FAULTS = [
    ("@mul> @a", "@mull> @a", r"11:20: error: no operator type @mull; known: mul, "),
    ("uses[@dsp] [t<0>]", "uses[@dps]", r"error: no resource type @dps; known: dsp"),
    ("@b [dist<2>]", "@q", r"p\.mlir:11:29: error: no operation @q; known: a, b"),
    ("(%0) uses", "(%9) uses", r"error: no operation %9; known: 0, 1"),
    ("latency<4>", "latency<-4>", r"`latency` is -4; expected a whole number of at least 0"),
    ("ii<3>", "ii<0>", r"`ii` is 0; expected a whole number of at least 1"),
    ("operation<@mul> @a", "operation<> @a", r"has no operator type"),
    ("%1 =", "%0 =", r"`0` stands twice"),
    ("@b(%0)", "@a(%0)", r"`a` stands twice"),
    (
        "operator_type @mul",
        "operators @mul",
        r"4:5: error: found `operators`; expected operator_type",
    ),
    ("library {", "book {", r"3:3: error: found `book`; expected library, resource or graph"),
    ("  }\n}\n", "", r"error: found the end of the file; expected operation"),
    ("latency<4>", "latency<4", r"4:34: error: found `\]`; expected `>`"),
    ("(%0, ", "(0, ", r"13:26: error: found `0`; expected a result"),
    ("ssp.instance @two of", "ssp.instance @two for", r"found `for`; expected `of`"),
    ("// two", "$ two", r"1:1: error: found '\$'; expected a problem of ssp"),
]


@pytest.mark.parametrize(("old", "new", "told"), FAULTS)
def test_a_fault_has_its_place(old: str, new: str, told: str) -> None:
    assert old in PROBLEM
    with pytest.raises(DocumentError, match=told):
        _read(PROBLEM.replace(old, new, 1))


def test_the_generic_form_is_refused_with_what_to_do() -> None:
    with pytest.raises(
        DocumentError, match="expected the form that circt-opt prints, not the generic one"
    ):
        _read('"ssp.instance"() ({}) {problemName = "ModuloProblem"} : () -> ()\n')


def test_a_problem_of_one_name_may_stand_once() -> None:
    with pytest.raises(DocumentError, match="problem `two` stands twice"):
        _read(PROBLEM + PROBLEM)
