"""`stretto-opt`: the parts of the driver, and the driver as a whole."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.universe import XDSL_UNIVERSE

from stretto.ir.diagnostics import Diagnostic, Severity
from stretto.ir.opt import reproducer
from stretto.ir.opt.expectations import compare
from stretto.ir.opt.pipeline import PipelineError, options_of, read_pipeline, write_pipeline
from stretto.ir.opt.splitting import Chunk, split
from stretto.ir.opt.timing import Timer
from stretto.ir.passes.generate_schedule import GenerateSchedule
from stretto.ir.passes.verify_schedule import VerifySchedule
from stretto.ir.universe import STRETTO

PASSES = {**XDSL_UNIVERSE.all_passes, **STRETTO.all_passes}

# Pipelines --------------------------------------------------------------------------------


PLAIN = "tileas-generate-schedule{machine=b200-pipes max-ii=40},tileas-verify-schedule"
SPACED = 'tileas-generate-schedule{ max_ii=40 machine="b200-pipes" } , tileas-verify-schedule{}'


@pytest.mark.parametrize("text", [PLAIN, f"builtin.module({PLAIN})", f"any( {SPACED} )"])
def test_pipelines_with_and_without_anchor(text: str):
    expected = (GenerateSchedule(machine="b200-pipes", max_ii=40), VerifySchedule())
    assert read_pipeline(text, PASSES) == expected


def test_flags_alone_are_true_and_paths_need_no_quotes():
    (found,) = read_pipeline("tileas-generate-schedule{strict fuse=false}", PASSES)
    assert found == GenerateSchedule(strict=True, fuse=False)
    (found,) = read_pipeline("mlir-opt{executable=/usr/bin/mlir-opt}", PASSES)
    assert "executable" in str(found)
    assert write_pipeline([found]) == "builtin.module(mlir-opt{executable=/usr/bin/mlir-opt})"


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("tileas-generate", "no pass `tileas-generate`; did you mean", 0),
        ("cse,zzzzzz", "no pass `zzzzzz`; --list-passes", 4),
        ("builtin.module(func.func(cse))", "nested in `func.func`", 15),
        ("builtin.module(cse", "expected `)`", 18),
        ("cse)", "expected the end, found `)`", 3),
        ("cse,", "expected a pass", 4),
        ("tileas-generate-schedule{ii=3}", "has no option `ii`; it has: machine, generator", 25),
        ("tileas-generate-schedule{max-ii=x}", "option `max-ii` is `x`; expected", 25),
        ("tileas-generate-schedule{max-ii=1,2}", "option `max-ii` is `1,2`; expected", 25),
        ("tileas-generate-schedule{max-ii=}", "expected a value", 32),
        ("tileas-generate-schedule{fuse=3}", "option `fuse` is `3`; expected bool", 25),
        ("tileas-generate-schedule{max-ii=3 max_ii=4}", "option `max_ii` stands twice", 34),
        ("tileas-generate-schedule{max-ii=0}", "max-ii is 0; at least 1 is needed", 0),
        ("tileas-verify-schedule{max-stages=-1}", "max-stages is -1; at least 1 is needed", 0),
        ("tileas-generate-schedule{machine=nope}", "no machine `nope`", 0),
        ("tileas-verify-schedule{machine=nope}", "no machine `nope`", 0),
        ("tileas-generate-schedule{max-ii=3", "expected an option or `}`", 33),
    ],
)
def test_pipeline_faults_have_their_place(text: str, message: str, at: int):
    with pytest.raises(PipelineError) as caught:
        read_pipeline(text, PASSES)
    assert message in caught.value.message
    assert caught.value.at == at
    assert str(caught.value).endswith(f"\n  {text}\n  {' ' * at}^")


numbers = st.none() | st.integers(1, 99)


@given(
    st.lists(
        st.builds(
            GenerateSchedule,
            machine=st.sampled_from([None, "blackwell", "b200-pipes"]),
            generator=st.text(min_size=1, max_size=8),
            max_ii=numbers,
            max_stages=numbers,
            fuse=st.booleans(),
            serial_threshold=st.integers(1, 9),
            strict=st.booleans(),
        )
        | st.builds(VerifySchedule, max_stages=numbers)
    )
)
def test_pipelines_survive_writing(passes: list[GenerateSchedule | VerifySchedule]):
    assert read_pipeline(write_pipeline(passes), PASSES) == tuple(passes)


def test_options_are_listed_with_type_and_default():
    assert ("max-ii", "int|None", "") in [
        (name, kind.replace(" ", ""), default)
        for name, kind, default in options_of(GenerateSchedule)
    ]
    assert ("fuse", "bool", "true") in options_of(GenerateSchedule)


# Splitting --------------------------------------------------------------------------------


def test_chunks_keep_the_lines_of_the_file():
    text = "a\n// -----\nb\n  // -----  \n\nc // ----- no marker\n"
    first, second, third = split(text)
    assert (first.text, first.first, first.last) == ("a\n", 1, 2)
    assert second.text.split("\n")[2] == "b"
    assert third.text.split("\n")[5] == "c // ----- no marker"
    assert (third.first, third.last) == (4, 7)


@given(st.lists(st.text("ab\n"), min_size=1, max_size=5))
def test_every_line_of_every_chunk_is_at_its_place(parts: list[str]):
    text = "\n// -----\n".join(parts)
    lines = text.split("\n")
    chunks = split(text)
    assert len(chunks) == len(parts)
    seen = [""] * len(lines)
    for chunk in chunks:
        for number, line in enumerate(chunk.text.split("\n")):
            assert not line or chunk.first <= number + 1 <= chunk.last
            seen[number] += line
    assert seen == ["" if line == "// -----" else line for line in lines]


def test_one_chunk_unless_asked_for():
    assert len(split("a\n// -----\nb", wanted=False)) == 1


# Expectations -----------------------------------------------------------------------------


def told(severity: Severity, line: int, message: str, *notes: Diagnostic) -> Diagnostic:
    return Diagnostic(severity, message, "f.mlir", line, 3, notes=notes)


def judged(text: str, *diagnostics: Diagnostic) -> list[tuple[int, str]]:
    (chunk,) = split(text)
    return [(fault.line, fault.message) for fault in compare("f.mlir", chunk, diagnostics)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("op // expected-error {{bad}}", 1),
        ("// expected-error@+1 {{bad}}\nop", 2),
        ("op\n\n// expected-error@-2 {{bad}}", 1),
        ("// expected-error@3 {{bad}}\n\nop", 3),
        ("op\n// expected-error@above {{bad}}", 1),
        ("op\n// expected-note@above {{here}}\n// expected-error@above {{bad}}", 1),
        ("// expected-error@below {{bad}}\n// expected-note@below {{here}}\nop", 3),
        ("// expected-error@below 1 {{bad}}\nop", 2),
        ("// expected-error-re@+1 {{b{{[a-z]}}d}}\nop", 2),
        ("// expected-error @+1 {{bad}}  \r\nop", 2),
    ],
)
def test_places_of_expectations(text: str, line: int):
    notes = (told("note", line, "here"),) if "note" in text else ()
    assert judged(text, told("error", line, "a bad thing", *notes)) == []
    assert judged(text, told("error", line + 1, "a bad thing", *notes)) != []
    assert judged(text, told("error", line, "another thing", *notes)) != []
    assert judged(text, *notes) != []


@pytest.mark.parametrize("severity", ["error", "warning", "remark", "note"])
def test_every_severity_is_its_own(severity: Severity):
    text = f"op // expected-{severity} {{{{bad}}}}"
    assert judged(text, told(severity, 1, "bad")) == []
    other = "warning" if severity == "error" else "error"
    (unmet, unexpected) = judged(text, told(other, 1, "bad"))
    assert unmet == (1, f'expected {severity} "bad" on line 1 was not produced')
    assert unexpected == (1, f"unexpected {other}: bad (a {severity} is expected there)")


def test_counts():
    text = "op // expected-error 2 {{bad}}"
    one, two = told("error", 1, "bad one"), told("error", 1, "bad two")
    assert judged(text, one, two) == []
    assert judged(text, one) == [(1, 'expected error "bad" on line 1 was not produced')]
    assert judged(text) == [(1, 'expected error "bad" on line 1 was not produced 2 more times')]
    assert judged(text, one, two, one) == [(1, "unexpected error: bad one")]


def test_the_longer_text_is_spent_on_what_it_fits():
    text = "op\n// expected-error@1 {{bad}}\n// expected-error@1 {{bad one}}"
    assert judged(text, told("error", 1, "bad one"), told("error", 1, "bad two")) == []


def test_notes_are_diagnostics_too():
    bad = told("error", 1, "bad", told("note", 3, "because"))
    assert judged("op // expected-error {{bad}}\n\nop", bad) == [(3, "unexpected note: because")]


def test_without_a_position():
    text = "// expected-error@unknown {{bad}}\nop"
    assert judged(text, told("error", 0, "bad")) == []
    (unmet, _) = judged(text, told("error", 2, "bad"))
    assert unmet == (1, 'expected error "bad" without a position was not produced')


@pytest.mark.parametrize(
    "text",
    [
        "// expected-eror {{bad}}",
        "// expected-error bad",
        "// expected-error@up {{bad}}",
        "// expected-error {{bad",
        "// expected-error-re {{a {{(}} b}}",
    ],
)
def test_an_expectation_that_cannot_be_read_is_an_error(text: str):
    ((line, message),) = judged(text)
    assert line == 1
    assert "cannot be read" in message or "is no pattern" in message


def test_expectations_of_another_chunk_do_not_count():
    first, second = split("op // expected-error {{bad}}\n// -----\nop\n")
    assert compare("f", first, [told("error", 1, "bad")]) == []
    assert compare("f", second, []) == []
    assert [d.line for d in compare("f", second, [told("error", 3, "bad")])] == [3]


def test_chunk_of_nothing():
    assert compare("f", Chunk("", 1, 1), []) == []


# Reproducers and timing -------------------------------------------------------------------


@given(st.text(max_size=30), st.booleans())
def test_recipes_survive(pipeline: str, each: bool):
    recipe = reproducer.Recipe(pipeline, each)
    text = reproducer.write("builtin.module {\n}", recipe, "it crashed\nhere")
    rest, found = reproducer.read(text)
    assert found == recipe
    assert rest.count("\n") == text.count("\n")
    assert "mlir_reproducer" not in rest
    assert "builtin.module {\n}" in rest


@pytest.mark.parametrize("text", ["", "builtin.module {}", "{-# dialect_resources: {} #-}"])
def test_no_recipe(text: str):
    assert reproducer.read(text) == (text, None)


def test_timing_adds_up():
    timer = Timer()
    with timer.measure("one"):
        pass
    with pytest.raises(KeyError), timer.measure("two"):
        raise KeyError
    with timer.measure("one"):
        pass
    rows = re.findall(r"^ +([\d.]+) \( *([\d.]+)%\)  (\w+)$", timer.report(), re.MULTILINE)
    assert [name for _, _, name in rows] == ["one", "two", "Rest", "Total"]
    assert sum(float(share) for _, share, _ in rows[:-1]) == pytest.approx(100, abs=0.3)
