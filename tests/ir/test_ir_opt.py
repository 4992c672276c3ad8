"""`stretto-opt`: the parts of the driver, and the driver as a whole."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import validate
from xdsl.context import Context
from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe
from xdsl.utils.exceptions import PassFailedException

from stretto.cli.main import main as stretto
from stretto.diagnostics import Diagnostic, Severity
from stretto.ir.opt.__main__ import main
from stretto.ir.opt.chunks import (
    Chunk,
    Recipe,
    Timer,
    read_reproducer,
    split,
    write_reproducer,
)
from stretto.ir.opt.expectations import compare
from stretto.ir.opt.options import REPRODUCER, make_parser
from stretto.ir.opt.pass_text import PipelineError, options_of, read_pipeline, write_pipeline
from stretto.ir.passes.generate_schedule import GenerateSchedule
from stretto.ir.passes.verify_schedule import VerifySchedule
from stretto.ir.telling import Remark
from stretto.ir.universe import STRETTO
from stretto.solution import ScheduleAnalysis
from stretto.solve import IllegalScheduleError
from stretto.verification import Violation

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PASSES = {**XDSL_UNIVERSE.all_passes, **STRETTO.all_passes}

# Pipelines --------------------------------------------------------------------------------


PLAIN = "tileas-generate-schedule{machine=b200-pipes max-ii=40},tileas-verify-schedule"
SPACED = 'tileas-generate-schedule{ max_ii=40 machine="b200-pipes" } , tileas-verify-schedule{}'


@pytest.mark.parametrize("text", [PLAIN, f"builtin.module({PLAIN})", f"any( {SPACED} )"])
def test_pipelines_with_and_without_anchor(text: str):
    expected = (GenerateSchedule(machine="b200-pipes", max_ii=40), VerifySchedule())
    assert read_pipeline(text, PASSES) == expected


def test_flags_alone_are_true_numbers_may_be_whole_and_paths_need_no_quotes():
    (found,) = read_pipeline("tileas-generate-schedule{strict fuse=false}", PASSES)
    assert found == GenerateSchedule(strict=True, fuse=False)
    for text in ("{time-limit=5}", "{time-limit=5.0}"):
        assert read_pipeline(f"tileas-generate-schedule{text}", PASSES) == (
            GenerateSchedule(time_limit=5.0),
        )
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
        ("tileas-generate-schedule{objectiv=ii}", "did you mean `objective`?", 25),
        ("tileas-generate-schedule{time-limit=-5}", "time-limit is -5; a number above 0", 0),
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
    assert (first.text, first.first) == ("a\n", 1)
    assert second.text.split("\n")[2] == "b"
    assert third.text.split("\n")[5] == "c // ----- no marker"
    assert (third.first, third.text.count("\n")) == (4, 6)


@given(st.lists(st.text("ab\n"), min_size=1, max_size=5))
def test_every_line_of_every_chunk_is_at_its_place(parts: list[str]):
    text = "\n// -----\n".join(parts)
    lines = text.split("\n")
    chunks = split(text)
    assert len(chunks) == len(parts)
    seen = [""] * len(lines)
    ends = [*(chunk.first for chunk in chunks[1:]), len(lines) + 1]
    for chunk, end in zip(chunks, ends, strict=True):
        for number, line in enumerate(chunk.text.split("\n")):
            assert not line or chunk.first <= number + 1 < end
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
    assert compare("f", Chunk("", 1), []) == []


# Reproducers and timing -------------------------------------------------------------------


@given(st.text(max_size=30), st.booleans())
def test_recipes_survive(pipeline: str, each: bool):
    recipe = Recipe(pipeline, each)
    text = write_reproducer("builtin.module {\n}", recipe, "it crashed\nhere")
    rest, found = read_reproducer(text)
    assert found == recipe
    assert rest.count("\n") == text.count("\n")
    assert "mlir_reproducer" not in rest
    assert "builtin.module {\n}" in rest


@pytest.mark.parametrize("text", ["", "builtin.module {}", "{-# dialect_resources: {} #-}"])
def test_no_recipe(text: str):
    assert read_reproducer(text) == (text, None)


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


# The driver as a whole --------------------------------------------------------------------

ADD = """\
func.func @f(%a: i32) -> i32 {
  %b = arith.addi %a, %a : i32
  func.return %b : i32
}
"""


class Passes:
    """Passes that do what no pass should."""

    @dataclass(frozen=True)
    class Breaks(ModulePass):
        """Leaves a module that does not verify."""

        name = "test-breaks"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            del ctx
            for one in list(op.walk()):
                if isinstance(one, AddiOp):
                    one.operands = (one.result, one.result)  # before it is defined

    @dataclass(frozen=True)
    class Crashes(ModulePass):
        """Renames the function, then falls over."""

        name = "test-crashes"
        word: str = "oh"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            del ctx
            function = next(one for one in op.walk() if isinstance(one, FuncOp))
            function.sym_name = StringAttr("half_done")
            raise IndexError(f"{self.word}\nno")

    @dataclass(frozen=True)
    class Fails(ModulePass):
        """Fails as passes may."""

        name = "test-fails"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            del ctx, op
            raise PassFailedException("not today")

    @dataclass(frozen=True)
    class Interrupted(ModulePass):
        """The user loses patience."""

        name = "test-interrupted"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            del ctx, op
            raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def _more_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = (Passes.Breaks, Passes.Crashes, Passes.Fails, Passes.Interrupted)
    more: dict[str, Callable[[], type[ModulePass]]] = {k.name: (lambda k=k: k) for k in kinds}
    universe = Universe(
        all_dialects=XDSL_UNIVERSE.all_dialects, all_passes={**XDSL_UNIVERSE.all_passes, **more}
    )
    monkeypatch.setattr(Universe, "get_multiverse", staticmethod(lambda: universe))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.mlir").write_text(ADD)
    return tmp_path


def test_a_pass_that_breaks_the_module(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["k.mlir", "-p", "cse,test-breaks", "-o", "out.mlir"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("k.mlir:2:8: error: ")
    note = "note: the module does not verify after pass test-breaks; a reproducer is in "
    assert note + REPRODUCER in told
    assert not (here / "out.mlir").exists()
    _, recipe = read_reproducer((here / REPRODUCER).read_text())
    assert recipe == Recipe("builtin.module(test-breaks)", verify_each=True)


@pytest.mark.parametrize("flag", ["--verify-each=false", "--no-verify-each", "--verify-each=0"])
def test_unless_nobody_looks(flag: str, here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["k.mlir", flag, "--test-breaks"]) == 0
    assert main(["k.mlir", flag, "--test-breaks", "--verify-each"]) == 1
    assert (here / REPRODUCER).exists()
    assert "verify_each: true" in (here / REPRODUCER).read_text()
    assert "%b = arith.addi %b, %b" in capsys.readouterr().out


def test_a_crash_is_kept_as_it_was_before_the_pass(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("stretto.ir.opt.driver.HARMLESS", {"test-crashes"})
    assert main(["k.mlir", "-p", "cse,test-crashes{word=ah},cse"]) == 1
    told = capsys.readouterr()
    assert told.err == (
        "k.mlir: error: pass test-crashes crashed: IndexError: ah no\n"
        f"k.mlir: note: a reproducer is in {REPRODUCER}; please report it\n"
    )
    kept = (here / REPRODUCER).read_text()
    assert "@f(" in kept
    assert "half_done" not in kept
    _, recipe = read_reproducer(kept)
    assert recipe == Recipe("builtin.module(test-crashes{word=ah})", verify_each=True)
    again = ["--run-reproducer", REPRODUCER]
    assert main([*again, "--mlir-pass-pipeline-crash-reproducer=again.mlir"]) == 1
    assert (here / "again.mlir").read_text() == kept


def test_every_crash_has_a_file_of_its_own(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "k.mlir").write_text(ADD + "// -----\n" + ADD.replace("@f", "@g"))
    assert main(["k.mlir", "--split-input-file", "--test-crashes"]) == 1
    first = here / REPRODUCER
    second = here / "stretto-opt-reproducer-2.mlir"
    assert "@f(" in first.read_text()
    assert "@g(" in second.read_text()
    assert second.name in capsys.readouterr().err


def test_a_crash_is_no_expected_error(here: Path):
    (here / "k.mlir").write_text("// expected-error@unknown {{crashed}}\n" + ADD)
    assert main(["k.mlir", "--test-crashes", "--verify-diagnostics"]) == 1


def test_a_pass_that_fails(here: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["k.mlir", "--test-fails"]) == 1
    assert capsys.readouterr().err == "k.mlir: error: not today\n"
    assert not (here / REPRODUCER).exists()
    (here / "k.mlir").write_text("// expected-error@unknown {{not today}}\n" + ADD)
    assert main(["k.mlir", "--test-fails", "--verify-diagnostics"]) == 0


def test_a_bug_of_the_scheduler_makes_a_reproducer(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def broken(*_: object) -> ScheduleAnalysis:
        raise IllegalScheduleError("gemm", "cost-based", [Violation("slot", "two at once")])

    monkeypatch.setattr("stretto.ir.passes.generate_schedule.schedule_prepared", broken)
    assert main([str(EXAMPLES / "gemm.mlir"), "--tileas-generate-schedule=max-ii=99"]) == 1
    told = capsys.readouterr().err
    assert "pass tileas-generate-schedule crashed: IllegalScheduleError: gemm: the" in told
    assert "slot: two at once" in told
    _, recipe = read_reproducer((here / REPRODUCER).read_text())
    assert recipe is not None
    assert recipe.pipeline == "builtin.module(tileas-generate-schedule{max-ii=99})"


@pytest.mark.usefixtures("here")
def test_interrupts_and_surprises(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    assert main(["k.mlir", "--test-interrupted"]) == 130
    assert capsys.readouterr().err == "stretto-opt: interrupted\n"

    def surprise(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("stretto.ir.opt.driver.split", surprise)
    with pytest.raises(ZeroDivisionError):
        main(["k.mlir"])
    monkeypatch.delenv("STRETTO_TRACEBACK")
    assert main(["k.mlir"]) == 1
    told = capsys.readouterr().err
    assert re.match(r"stretto-opt: error: ZeroDivisionError \(\S+:\d+\); this is a bug", told)
    assert told.count("\n") == 1


def test_a_file_is_written_whole_or_not_at_all(here: Path, capsys: pytest.CaptureFixture[str]):
    out = here / "out.mlir"
    assert main(["k.mlir", "-o", "out.mlir"]) == 0
    good = out.read_text()
    assert "arith.addi" in good
    assert not capsys.readouterr().out
    (here / "bad.mlir").write_text(ADD + "// -----\nnonsense")
    assert main(["bad.mlir", "--split-input-file", "-o", "out.mlir"]) == 1
    assert out.read_text() == good
    assert sorted(path.name for path in here.iterdir()) == ["bad.mlir", "k.mlir", "out.mlir"]
    assert main(["k.mlir", "-o", "no/such/folder.mlir"]) == 1
    assert "cannot write no/such/folder.mlir: No such file" in capsys.readouterr().err
    (here / "link.mlir").symlink_to(out)
    assert main(["k.mlir", "-o", "link.mlir", "--mlir-print-op-generic"]) == 0
    assert (here / "link.mlir").is_symlink()
    assert '"arith.addi"' in out.read_text()


def test_what_a_file_may_hold(here: Path, capsys: pytest.CaptureFixture[str]):
    (here / "k.mlir").write_bytes(b"\xef\xbb\xbf" + ADD.replace("\n", "\r\n").encode())
    assert main(["k.mlir"]) == 0
    (here / "k.mlir").write_bytes(b"ok \xff")
    assert main(["k.mlir"]) == 1
    assert "k.mlir: error: is not UTF-8 text (byte 3)" in capsys.readouterr().err
    assert main(["."]) == 1
    assert ".: error: cannot be read: Is a directory" in capsys.readouterr().err
    (here / "k.mlir").write_text("")
    assert main(["k.mlir"]) == 0
    assert capsys.readouterr().out == "builtin.module {\n}\n"


@pytest.mark.usefixtures("here")
def test_lists_go_where_output_goes(here: Path):
    assert main(["--list-passes", "-o", "passes"]) == 0
    assert "--tileas-generate-schedule" in (here / "passes").read_text()


def test_same_input_same_bytes(here: Path):
    texts: list[str] = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "stretto.ir.opt", str(EXAMPLES / "attention_forward.mlir")]
        command += ["--tileas-generate-schedule", "--remarks-format=json"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd=here
        )
        texts.append(done.stdout + done.stderr)
    assert texts[0] == texts[1]
    assert '"II": ' in texts[0]


def test_a_reader_that_goes_away_is_no_failure(here: Path):
    text = ADD + "".join(ADD.replace("@f", f"@f{i}") for i in range(2000))
    (here / "big.mlir").write_text(text)
    tool = Path(sys.executable).parent / "stretto-opt"
    shell = f"set -o pipefail; {tool} big.mlir | head -1"
    done = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, cwd=here
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "builtin.module {\n", "")


# Remarks ----------------------------------------------------------------------------------


def test_remarks_keep_their_schema(here: Path):
    schema = resources.files("stretto.ir").joinpath("remarks.schema.json").read_text("utf-8")
    found: list[tuple[str, str]] = []

    def run(code: int, file: str, passes: str) -> None:
        wanted = ["--remarks-format=json", "--remarks-output-file=r.json", "-o", "out.mlir"]
        assert main([file, "-p", passes, *wanted]) == code
        document = json.loads((here / "r.json").read_text())
        validate(document, json.loads(schema))
        found.extend((remark["kind"], remark["name"]) for remark in document["remarks"])

    gemm = str(EXAMPLES / "gemm.mlir")
    run(0, gemm, "tileas-generate-schedule{machine=b200-pipes max-ii=255}")
    run(0, gemm, "tileas-generate-schedule{machine=b200-pipes max-ii=256},tileas-verify-schedule")
    (here / "edited.mlir").write_text((here / "out.mlir").read_text().replace("ii = 256", "ii = 1"))
    run(1, "edited.mlir", "tileas-verify-schedule")
    assert found == [
        ("Missed", "LeftAlone"),
        ("Passed", "Scheduled"),
        ("Passed", "Legal"),
        ("Failure", "Illegal"),
    ]


def _unquoted(scalar: str) -> str:
    """A YAML string in double quotes, as Python reads it: the escapes in use are the same."""
    assert re.fullmatch(r' *"(?:[^"\\]|\\["\\bfnrt]|\\u[0-9a-f]{4}|\\U[0-9a-f]{8})*"', scalar)
    found = ast.literal_eval(scalar.strip())
    assert isinstance(found, str)
    return found


@given(st.text(), st.text(), st.integers(0, 3))
def test_yaml_is_yaml_whatever_the_text(message: str, loop: str, line: int):
    """A quoted scalar of a remark is a JSON string, which YAML has as well."""
    remark = Remark("Passed", "p", "Legal", loop, "f", "k.mlir", line, 1, message, (("II", 3),))
    lines = remark.to_yaml().split("\n")
    assert lines[0] == "--- !Passed"
    assert lines[-2:] == ["...", ""]
    assert all(line.isprintable() for line in lines)
    said = dict(line.split(":", 1) for line in lines[1:-4])
    assert _unquoted(said["Message"]) == message
    assert _unquoted(said["Loop"]) == loop
    assert ("DebugLoc" in said) == bool(line)


# The document -----------------------------------------------------------------------------


def test_every_option_is_documented():
    text = (EXAMPLES.parent / "docs" / "stretto-opt.md").read_text(encoding="utf-8")
    options = re.findall(r"(?<![\w-])--[a-z][a-z-]+", make_parser("").format_help())
    shortened = {"--mlir-print-ir-before-all", "--mlir-print-ir-after", "--mlir-print-ir-after-all"}
    missing = [o for o in options if o not in text and o not in {*shortened, "--output"}]
    assert not missing
    for kind in (GenerateSchedule, VerifySchedule):
        assert all(f"`{name}`" in text for name, _, _ in options_of(kind))


# Limits -----------------------------------------------------------------------------------


LONG = """func.func @f(%n: index, %x: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 99999999999999999999 : index
  scf.for %i = %zero to %n step %one {
    %r = scf.for %j = %zero to %many step %one iter_args(%a = %x) -> (f32) {
      %b = arith.addf %a, %a : f32
      scf.yield %b : f32
    }
    %c = arith.negf %r : f32
  }
  func.return
}
"""


def test_more_cycles_than_there_is_memory_for_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "long.mlir"
    file.write_text(LONG, encoding="utf-8")
    assert main(["long.mlir", "-p", "tileas-generate-schedule{machine=b200-pipes}"]) == 0
    told = capsys.readouterr().err  # the loop around it is left alone
    assert "warning" in told
    assert "at most 10,000,000 are allowed" in told
    assert sorted(tmp_path.iterdir()) == [file]
    assert stretto(["schedule", "long.mlir", "--machine", "b200-pipes"]) == 0
    assert "at most 10,000,000 are allowed" in " ".join("".join(capsys.readouterr()).split())
