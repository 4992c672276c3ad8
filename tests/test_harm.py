"""Input that means harm: files that are none, numbers beyond measure, secrets, endless patterns."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from stretto import limits, schedule
from stretto.cli.main import main
from stretto.diagnostics import MlirError
from stretto.errors import DocumentError, listed
from stretto.files import read_text
from stretto.generate import select
from stretto.ir.opt.__main__ import main as opt
from stretto.ir.opt.chunks import HARMLESS
from stretto.ir.opt.patterns import Pattern, PatternError
from stretto.ir.parsing import parse_module
from stretto.loop import Access, Loop, LoopError, Op, Operand, Storage, TileType, Use, Value, check
from stretto.machine import load_machine
from stretto.solve import prepare
from stretto.verification import verify

ROOT = Path(__file__).parents[1]
FOUR_OP = str(ROOT / "examples" / "four_op.json")
SECRET = "hunter2-hunter2"

Capture = pytest.CaptureFixture[str]


def op(name: str = "o", **fields: Any) -> dict[str, Any]:
    return {"name": name, "kind": "k", "latency": 1, "uses": [], **fields}


def document(*ops: dict[str, Any], **fields: Any) -> str:
    top = {"schema": "stretto.loop/1", "name": "l", "machine": "blackwell", "ops": list(ops)}
    return json.dumps({**top, **fields})


def run(capsys: Capture, *arguments: str) -> tuple[int, str]:
    code = main(list(arguments))
    return code, capsys.readouterr().err


# Files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["input", "machine", "schedule"])
def test_a_named_pipe_that_nobody_writes_to(place: str, tmp_path: Path, capsys: Capture) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    arguments = {
        "input": ["bounds", pipe],
        "machine": ["bounds", FOUR_OP, "--machine", pipe],
        "schedule": ["verify", FOUR_OP, pipe],
    }[place]
    told = f"{pipe}: error: cannot be read: it is a named pipe; expected a regular file\n"
    assert run(capsys, *arguments) == (1, told)


def test_devices_and_folders(tmp_path: Path, capsys: Capture) -> None:
    told = "/dev/zero: error: cannot be read: it is a device; expected a regular file\n"
    assert run(capsys, "bounds", FOUR_OP, "--machine", "/dev/zero") == (1, told)
    assert run(capsys, "bounds", "/dev/zero") == (1, told)
    assert opt(["--run-reproducer", "/dev/zero"]) == 1
    assert capsys.readouterr().err == told
    code, told = run(capsys, "bounds", str(tmp_path))
    assert (code, "cannot be read" in told) == (1, True)


def test_a_file_that_is_too_large(tmp_path: Path, capsys: Capture) -> None:
    large = tmp_path / "large.toml"
    with large.open("wb") as file:
        file.truncate(3 << 30)  # takes no room on the disk
    told = f"{large}: error: is too large; at most 1,048,576 bytes are read\n"
    assert run(capsys, "bounds", FOUR_OP, "--machine", str(large)) == (1, told)
    code, told = run(capsys, "bounds", str(large))
    assert (code, "at most 16,777,216 bytes" in told) == (1, True)


def test_what_a_shell_hands_over_is_read_up_to_the_limit() -> None:
    read, write = os.pipe()
    os.write(write, b"x" * 1000)
    os.close(write)
    assert read_text(f"/dev/fd/{read}") == (f"/dev/fd/{read}", "x" * 1000)
    os.close(read)
    read, write = os.pipe()
    os.write(write, b"x" * 1000)
    with pytest.raises(DocumentError, match="at most 99 bytes"):
        read_text(f"/dev/fd/{read}", 99)  # the writer has not even closed it
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    "text",
    [
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n",
        f"{SECRET} = 3\n",
        f"password: {SECRET}\n",
        f'"{SECRET}"',
        f'["{SECRET}"]',
        f'{{"schema": "{SECRET}"}}',
        f'{{"schema_version": "{SECRET}"}}',
        f'{{"{SECRET}": 1, "{SECRET}": 2}}',
        f'module "x" {{ {SECRET} }}',
    ],
)
def test_what_is_not_recognized_is_not_quoted(text: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    for arguments in (["bounds", str(file)], ["verify", FOUR_OP, str(file)]):
        code, told = run(capsys, *arguments)
        assert (code, SECRET in told) == (1, False), told
        assert str(file) in told
    assert opt([str(file)]) == 1
    assert SECRET not in capsys.readouterr().err
    assert SECRET not in run(capsys, "bounds", FOUR_OP, "--machine", str(file))[1]


def test_what_is_recognized_is_quoted() -> None:
    with pytest.raises(MlirError, match=r"(?s)k\.mlir:2:3: error: .*\n  oops here\n  \^"):
        parse_module("func.func @f() {\n  oops here\n}\n", "k.mlir")


# Numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["bounds", "schedule", "explain", "simulate"])
def test_a_hold_of_a_billion_cycles(command: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "l.json"
    file.write_text(document(op(uses=[{"slot": "tma", "duration": 10**9}])))
    told = (
        f"{file}: $.ops[0].uses[0].duration: error: `o` use of `tma` has duration 1,000,000,000; "
        "at most 10,000,000 is allowed\n"
    )
    assert run(capsys, command, str(file)) == (1, told)


def faults(loop: Loop) -> list[tuple[str, str]]:
    return [(fault.path, fault.code) for fault in check(loop)]


def test_each_number_has_a_limit() -> None:
    most = limits.CYCLES

    def loop(**fields: Any) -> Loop:
        return Loop("l", (replace(Op("o", "k", uses=(), latency=1), **fields),))

    assert faults(loop(latency=most, uses=(Use("s", most, most),))) == []
    assert faults(loop(latency=most + 1)) == [("$.ops[0].latency", "large-latency")]
    assert faults(loop(uses=(Use("s", 1, most + 1),))) == [
        ("$.ops[0].uses[0].offset", "large-offset")
    ]
    assert faults(loop(uses=(Use("s", 1, 0, limits.UNITS + 1),))) == [
        ("$.ops[0].uses[0].occupancy", "large-occupancy")
    ]


def test_the_sum_of_all_cycles_has_a_limit() -> None:
    ops = [Op(f"o{i}", "k", uses=(), latency=limits.CYCLES) for i in range(4)]
    assert faults(Loop("l", tuple(ops[:3]))) == []
    assert faults(Loop("l", tuple(ops))) == [("$.ops", "long-iteration")]


def test_formulas_beyond_measure_are_named(tmp_path: Path) -> None:
    power = "*".join(["bytes"] * 33)
    machine = tmp_path / "m.toml"
    machine.write_text(
        '[machine]\nname = "m"\n[slots.s]\ncapacity = 1\n[encodings.e]\nopcodes = ["k"]\n'
        f'latency = "{power}"\nuses = [{{slot = "s", duration = 1}}]\n'
    )
    where = re.escape(f"$.ops[0]: error: `a` (k): encodings.e.latency of {machine}: `{power}`")
    for tile, told in (
        ("x".join(["999999999"] * 100) + "xf16", "comes to a number of more than 4,000 digits"),
        ("2xf16", r"is 73,786,976,294,838,206,464; at most 10,000,000 cycles are allowed"),
        ("999999999xf16", r"is a number of 307 digits; at most 10,000,000 cycles are allowed"),
    ):
        value = Value("x", TileType.parse(tile))
        with pytest.raises(LoopError, match=f"{where} {told}"):
            prepare(Loop("l", (Op("a", "k", results=("x",)),), (value,)), str(machine))


def test_long_strings_and_tiles(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "l.json"
    file.write_text(document(op("n" * 10_001)))
    assert run(capsys, "bounds", str(file))[1].endswith(
        "$.ops[0].name: error: is a string of 10,001 characters; at most 10,000 are allowed\n"
    )
    with pytest.raises(ValueError, match="at most 1,000 digits"):
        TileType.parse("9x" * 1001 + "f16")


def test_dense_constants_are_counted(capsys: Capture, tmp_path: Path) -> None:
    def module(*sizes: int) -> str:
        lines = [f"arith.constant dense<0.0> : tensor<{size}xf32>\n" for size in sizes]
        return "".join(f"%{i} = {line}" for i, line in enumerate(lines))

    parse_module(module(1000, 1000))
    file = tmp_path / "k.mlir"
    for text in (module(10**8), module(10**30), module(3_000_000, 3_000_000)):
        file.write_text(text)
        assert opt([str(file)]) == 1
        assert "a module may have 4,194,304 elements of them" in capsys.readouterr().err


def test_a_program_of_millions_of_stages(tmp_path: Path, capsys: Capture) -> None:
    file, machine = tmp_path / "l.json", tmp_path / "m.toml"
    machine.write_text('[machine]\nname = "m"\n[slots.s]\ncapacity = 1\n[slots.t]\ncapacity = 1\n')
    first = op("a", results=["x"], latency=9_000_000, uses=[{"slot": "s", "duration": 1}])
    second = op("b", operands=[{"value": "x"}], uses=[{"slot": "t", "duration": 1}])
    file.write_text(document(first, second, values=[{"name": "x"}]))
    assert run(capsys, "schedule", str(file), "--machine", str(machine))[0] == 0
    for iterations in ([], ["--iterations", "2"]):
        code, told = run(capsys, "simulate", str(file), "--machine", str(machine), *iterations)
        assert (code, "9,000,001 stages of 2 operations are too many" in told) == (1, True)


def test_a_module_that_is_too_large() -> None:
    with pytest.raises(MlirError, match="at most 4,194,304 characters"):
        parse_module(" " * (limits.MODULE_CHARACTERS + 1))


# Time and length --------------------------------------------------------------------------


class Counting(str):
    """A name that knows how often one of its kind was compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Counting.compared += 1
        return str.__eq__(self, other) is True


def test_equal_names_are_counted_once() -> None:
    ops = tuple(Op(Counting("o"), "k", uses=(), latency=1) for _ in range(2000))
    Counting.compared = 0
    found = check(Loop("l", ops))
    assert [fault.message for fault in found] == ["the name `o` stands 2,000 times in ops"]
    assert Counting.compared < 100 * len(ops)


def test_many_uses_take_linear_work() -> None:
    """What took 200,000² steps is given 20,000 uses: minutes then, a moment now."""
    many = tuple(Use("tma", 1, 2 * i) for i in range(20_000))
    loop = Loop("l", (Op("o", "k", uses=many, latency=1), Op("p", "k", uses=(), latency=1)))
    ready = prepare(loop, load_machine("blackwell"))
    chosen = select(ready.loop, ready.machine)
    assert chosen.generator == "serial"
    assert "`o` has 20,000 uses, more than the 256 that are searched" in chosen.rule
    analysis = schedule(loop, "blackwell")
    assert analysis.ii == 39_999
    assert verify(ready.loop, ready.machine, analysis) == ()


def test_the_first_faults_are_told_and_the_others_counted(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "l.json"
    file.write_text(
        document(*(op(f"o{i}", uses=[{"slot": "x", "duration": 1}]) for i in range(99)))
    )
    code, told = run(capsys, "bounds", str(file))
    assert code == 1
    assert len(told.splitlines()) == limits.FAULTS_TOLD + 1
    assert told.splitlines()[-1] == f"{file}: error: and 79 faults more"
    assert listed(map(str, range(14))) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 more"
    assert listed(()) == "none"


def test_operations_of_one_name_and_reads_that_stand_twice() -> None:
    twice = Op("o", "k", uses=(), latency=1, reads=(Access("s"), Access("s")), writes=("s",))
    taker = Op("o", "k", uses=(), latency=1, operands=(Operand("v"),))
    storages = (Storage("s", "smem", 1, fixed=True),)
    assert check(Loop("l", (twice,), storages=storages)) == ()
    loop = Loop("l", (taker, twice), (Value("v", storage="s"),), storages)
    assert [fault.code for fault in check(loop)] == ["duplicate-name"]


def test_nesting_is_followed_once() -> None:
    ops = [Op(f"o{i}", "k", uses=(), latency=1, parent=f"o{i - 1}") for i in range(5_000)]
    circle = [Op("o0", "k", uses=(), latency=1, parent="o2"), *ops[1:]]
    found = check(Loop("l", tuple(circle)))
    assert [fault.path for fault in found] == [f"$.ops[{i}].parent" for i in range(3)]


def test_a_storage_list_is_cut_short() -> None:
    storages = tuple(Storage(f"s{i}", "smem", 100_000) for i in range(50))
    loop = Loop("l", (Op("o", "k", uses=(), latency=1),), storages=storages)
    (fault,) = check(loop, load_machine("blackwell"))
    assert "s11 100,000 and 38 more" in fault.message


# Patterns ---------------------------------------------------------------------------------


def _random_pattern(rng: Random, depth: int) -> str:
    kind = rng.randrange(10) if depth else 0
    if kind < 4:
        atoms = ["a", "b", ".", r"\d", r"\w", "[ab]", "[^a]", "[]a]", r"\.", "^", "$", r"\b", r"\B"]
        return rng.choice(atoms)
    if kind < 6:
        return _random_pattern(rng, depth - 1) + _random_pattern(rng, depth - 1)
    inner = _random_pattern(rng, depth - 1)
    if kind == 6:
        return f"({inner}|{_random_pattern(rng, depth - 1)})"
    return f"(?:{inner})" + rng.choice(["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", ""])


def test_patterns_match_as_those_of_python_do() -> None:
    rng = Random(7)
    matched = 0
    for _ in range(800):
        source = rng.choice(["", "(?i)"]) + _random_pattern(rng, 3)
        # `$` is the end of the text, not a line break before it; and letters are those of ASCII.
        ours, theirs = Pattern(source), re.compile(source.replace("$", r"\Z"), re.ASCII)
        for _ in range(5):
            text = "".join(rng.choice("abA1 .\n") for _ in range(rng.randrange(1, 8)))
            assert ours.search(text) is bool(theirs.search(text)), (source, text)
            matched += ours.search(text)
    assert 1000 < matched < 3900


def test_a_pattern_that_would_backtrack_without_end(tmp_path: Path, capsys: Capture) -> None:
    assert Pattern("(a+)+$").search("a" * 60 + "!") is False
    assert Pattern("(.*)*" * 20 + "Z").search("a" * 200) is False
    kernel = str(ROOT / "examples" / "four_op.mlir")
    out = str(tmp_path / "out.mlir")
    given = [kernel, "--tileas-generate-schedule", r"--remarks-filter=((\S+\s?)+)+Z$", "-o", out]
    assert opt(given) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)", "invalid perl operator: (?="),
        ("(?<!a)b", "invalid perl operator: (?<"),
        ("a++", "bad repetition operator: ++"),
        ("a{1000000}", "invalid repetition size: {1000000}"),
        ("((a{100}){100}){100}", "is no pattern"),
        ("(", "is no pattern: missing )"),
        ("a" * 5000, "longer than 4,096 characters"),
    ],
)
def test_patterns_that_are_refused(source: str, told: str, capsys: Capture) -> None:
    with pytest.raises(PatternError, match=re.escape(told)):
        Pattern(source)
    assert opt(["-", f"--remarks-filter={source}"]) == 2
    assert told in capsys.readouterr().err


# Reproducers ------------------------------------------------------------------------------


def reproducer(pipeline: str) -> str:
    text = json.dumps(pipeline)
    return (
        "builtin.module {\n}\n{-#\n  external_resources: {\n    mlir_reproducer: {\n"
        f"      pipeline: {text},\n      verify_each: true\n    }}\n  }}\n#-}}\n"
    )


def test_a_reproducer_starts_no_process(tmp_path: Path, capsys: Capture) -> None:
    file, traces = tmp_path / "r.mlir", tmp_path / "traces"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\ntouch {traces}\ncat\n")
    tool.chmod(0o755)
    pipeline = f'builtin.module(cse,mlir-opt{{executable="{tool}"}})'
    file.write_text(reproducer(pipeline))
    assert opt([str(file), "--run-reproducer"]) == 1
    told = capsys.readouterr().err
    assert "`mlir-opt` is not run from a file, since it is not known to start no process" in told
    assert "give the pipeline with -p" in told
    assert not traces.exists()
    opt([str(file), "-p", pipeline])  # whoever says so on the command line means it
    assert traces.exists()


@pytest.mark.parametrize("name", ["transform-interpreter", "apply-pdl", "apply-individual-rewrite"])
def test_passes_that_run_others_or_read_files_are_not_harmless(name: str) -> None:
    assert name not in HARMLESS


def test_harmless_passes_are_so(tmp_path: Path) -> None:
    """Each is loaded and run while Python reports every process, file and socket."""
    code = f"""
import sys
told = []
def hook(event, arguments):
    if event.split(".")[0] in ("subprocess", "socket", "pty", "ctypes") or event in (
        "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system",
    ):
        told.append(event)
from stretto.ir.opt.__main__ import main
from stretto.ir.opt.chunks import HARMLESS
sys.addaudithook(hook)
plain = [n for n in sorted(HARMLESS) if n not in ("arith-add-fastmath", "scf-parallel-loop-tiling")]
for name in plain:
    main([{str(ROOT / "examples" / "four_op.mlir")!r}, "--" + name, "-o", "/dev/null"])
sys.exit(str(told) if told else 0)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr


def test_reproducers_that_are_broken(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "r.mlir"
    for text, told in (
        (reproducer("cse").replace('"cse"', r'"\q"'), "its pipeline is no string"),
        ("{-#\n" * 50_000, "it is no reproducer"),
        (reproducer("no-such-pass"), "no pass `no-such-pass`"),
    ):
        file.write_text(text)
        assert opt([str(file), "--run-reproducer"]) == 1
        assert told in capsys.readouterr().err


# The table of limits ----------------------------------------------------------------------


def test_every_limit_is_stated_in_the_docs() -> None:
    text = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    stated = {
        name: int(number.replace(",", ""))
        for number, name in re.findall(r"^\|.*\| ([\d,]+)[^|]*\| `(\w+)` \|$", text, re.MULTILINE)
    }
    assert stated == {name: n for name, n in vars(limits).items() if name.isupper()}
