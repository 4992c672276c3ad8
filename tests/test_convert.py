"""`stretto convert`: the same problem in another format, and every loss told."""

from __future__ import annotations

import json
import random
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from stretto import Loop, StrettoError
from stretto.api.converting import target_of
from stretto.cli.main import main
from stretto.loop import Dependence, Op, Use
from stretto.loop.json import dump_loop
from stretto.machine.written import written_machine
from stretto.solution.views import analyse
from stretto.verification import verify

EXAMPLES = Path(__file__).parent.parent / "examples"
FIR = EXAMPLES / "formats" / "fir.ssp.mlir"


def _plain(seed: int) -> Loop:
    """A loop that both formats can say: one hold an operation, equal on each slot."""
    rng = random.Random(f"plain {seed}")
    slots: dict[str, int | None] = {f"unit {i}": rng.choice([1, 2, None]) for i in range(3)}
    held = {slot: rng.randint(1, 4) for slot in slots}
    ops: list[Op] = []
    for i in range(rng.randint(2, 9)):
        slot = rng.choice([*slots, ""])
        uses = (Use(slot, held[slot]),) if slot else ()
        kind = rng.choice(["mul", "add", slot or "add"])
        ops.append(Op(f"op.{i}<&>", kind, uses=uses, latency=rng.randint(0, 6)))
    stated: list[Dependence] = []
    for _ in range(rng.randint(0, 2 * len(ops))):
        a, b = rng.randrange(len(ops)), rng.randrange(len(ops))
        distance = rng.randint(0, 2) if a < b else rng.randint(1, 3)
        stated.append(Dependence(ops[a].name, ops[b].name, rng.randint(0, 7), distance, "order"))
    machine = written_machine("plain", "", slots)
    return Loop(f"plain{seed}", tuple(ops), stated=tuple(stated), machine=machine)


def _broken(loop: Loop, schedule: stretto.Schedule) -> set[str]:
    """The rules that a schedule breaks."""
    ready = stretto.prepare(loop)
    analysis = analyse(ready.loop, ready.machine, schedule)
    return {violation.rule for violation in verify(ready.loop, ready.machine, analysis)}


@pytest.mark.parametrize("format", ["graphml", "ssp", "json", "mlir"])
@pytest.mark.parametrize("seed", range(12))
def test_a_schedule_found_there_is_legal_here_and_as_fast(
    tmp_path: Path, seed: int, format: str
) -> None:
    loop = _plain(seed)
    made = stretto.convert(loop, tmp_path / f"loop.{format}")
    assert made.losses == ()
    (again,) = stretto.read(tmp_path / f"loop.{format}")
    assert again.name == loop.name
    ours, theirs = (stretto.schedule(one, prove=True) for one in (loop, again))
    assert (ours.proved, theirs.proved) == (True, True)
    assert ours.ii == theirs.ii
    assert theirs.ii is not None
    starts = {name: start for name, start in theirs.starts.items() if name in loop.index}
    first = min(starts.values()) // theirs.ii * theirs.ii  # those that wait may come before
    moved = {name: start - first for name, start in starts.items()}
    assert _broken(loop, stretto.Schedule(theirs.ii, moved)) == set()


def test_a_graph_is_written_as_it_was_read(tmp_path: Path) -> None:
    graph = EXAMPLES / "formats" / "fir.graphml"
    stretto.convert(graph, tmp_path / "fir.graphml")
    assert (tmp_path / "fir.graphml").read_text() == graph.read_text()
    assert (tmp_path / "fir_RM.xml").read_text() == graph.with_name("fir_RM.xml").read_text()


def test_a_problem_is_written_as_it_was_read(tmp_path: Path) -> None:
    (loop,) = stretto.read(FIR)
    stretto.convert(FIR, tmp_path / "again.ssp.mlir")
    (again,) = stretto.read(tmp_path / "again.ssp.mlir")
    assert again == loop


def test_json_and_mlir_bring_the_machine_along(tmp_path: Path) -> None:
    (loop,) = stretto.read(FIR)
    for format in ("json", "mlir"):
        stretto.convert(FIR, tmp_path / f"fir.{format}")
        assert stretto.read(tmp_path / f"fir.{format}")[0] == loop


def test_losses_are_told_with_names_and_numbers(tmp_path: Path) -> None:
    made = stretto.convert(EXAMPLES / "attention_forward.json", tmp_path / "a.ssp")
    told = [lost for _, lost in made.losses]
    assert "slot CUDA is held for different times; all hold it for 319 cycles, the longest" in told
    assert any(lost.startswith("storages (q_tile, k_tile,") for lost in told)
    four = stretto.convert(EXAMPLES / "four_op.json", tmp_path / "f.graphml")
    assert any("of several slots that are held, one is" in lost for _, lost in four.losses)


def test_what_is_written_for_want_of_words_is_stricter(tmp_path: Path) -> None:
    (loop,) = stretto.read(EXAMPLES / "attention_forward.json")
    stretto.convert(loop, tmp_path / "a.ssp")
    found = stretto.schedule(stretto.read(tmp_path / "a.ssp")[0])
    assert found.ii is not None
    starts = {name: found.starts[name] for name in loop.index}
    assert _broken(loop, stretto.Schedule(found.ii, starts)) <= {"storage"}


def test_several_problems_go_into_one_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one.ssp", tmp_path / "two.ssp"
    stretto.convert(_plain(1), one)
    two.write_text(one.read_text() + one.read_text().replace("plain1", "other"))
    stretto.convert(two, tmp_path / "both.ssp")
    assert [loop.name for loop in stretto.read(tmp_path / "both.ssp")] == ["plain1", "other"]
    with pytest.raises(
        StrettoError, match=r"has 2 loops, a \.json file holds one; .*plain1, other"
    ):
        stretto.convert(two, tmp_path / "x.json")
    stretto.convert(two, tmp_path / "x.json", loop="other")
    assert stretto.read(tmp_path / "x.json")[0].name == "other"


def _valid(text: str) -> Any:
    document = json.loads(text)
    folder = resources.files("stretto.report").joinpath("schemas")
    schema = json.loads(folder.joinpath("conversion.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    return document


def test_the_command_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "fir.graphml"
    assert main(["convert", str(FIR), str(out)]) == 0
    assert "nothing was lost" in capsys.readouterr().out
    assert main(["convert", str(FIR), str(out), "--json"]) == 0
    document = _valid(capsys.readouterr().out)
    assert document["files"] == [str(tmp_path / "fir_RM.xml"), str(out)]


def test_what_goes_to_stdout_goes_there_alone(capsys: pytest.CaptureFixture[str]) -> None:
    loop = str(EXAMPLES / "gemm.json")
    assert main(["convert", loop, "-", "--to", "ssp"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith('ssp.instance @gemm of "ModuloProblem" {')
    assert "gemm: lost: storages" in told.err


USAGE = [
    (["-"], "--to must name the format"),
    (["-", "--to", "json", "--json"], "--json has nowhere to go"),
    (["x.json", "--to", "xml"], "invalid choice"),
]


@pytest.mark.parametrize(("given", "told"), USAGE)
def test_what_makes_no_sense_is_usage(
    given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(FIR), *given]) == 2
    out = capsys.readouterr()
    assert told in out.err + out.out


@pytest.mark.parametrize("name", ["x", "x.txt", "x.toml"])
def test_a_format_that_nobody_knows_is_named(name: str) -> None:
    with pytest.raises(StrettoError, match="cannot tell the format of x"):
        target_of(name)


def test_a_graph_cannot_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(FIR), "-", "--to", "graphml"]) == 1
    assert "graphml is two files" in capsys.readouterr().err


def test_a_machine_may_be_given(tmp_path: Path) -> None:
    (loop,) = stretto.read(EXAMPLES / "gemm.json")
    stretto.convert(loop, tmp_path / "x.json", "blackwell")
    assert json.loads((tmp_path / "x.json").read_text())["machine"] == "blackwell"
    made = stretto.convert(loop, tmp_path / "y.json", stretto.load_machine("blackwell"))
    assert made.losses == (("gemm", "machine blackwell, which has no file to be named"),)
    assert json.loads((tmp_path / "y.json").read_text()) == json.loads(dump_loop(loop))


def test_of_two_files_none_is_written_where_one_cannot_be(tmp_path: Path) -> None:
    for name in ("fir.graphml", "fir_RM.xml"):
        (tmp_path / name).mkdir()
        with pytest.raises(StrettoError, match="Is a directory"):
            stretto.convert(EXAMPLES / "gemm.json", tmp_path / "fir.graphml")
        assert [file.name for file in tmp_path.iterdir()] == [name]
        (tmp_path / name).rmdir()
