"""`stretto bench`: figures that are counted, peers that are met, regressions that are told."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

import outside
import stretto
from stretto import StrettoError
from stretto.cli.main import main
from stretto.many import bench as bench_module
from stretto.many.bench import compared, read_bench
from stretto.many.executors import run_tasks
from stretto.report.bench import BenchReport, BenchRow, Suite
from stretto.report.plots import Axis, Plot, Point, power_law, ticks

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Two suites, one of them with published IIs."""
    folder = tmp_path / "corpus"
    (folder / "tiles" / "deep").mkdir(parents=True)
    (folder / "filters").mkdir()
    for name in ("gemm.json", "four_op.json"):
        shutil.copy(EXAMPLES / name, folder / "tiles" / name)
    shutil.copy(EXAMPLES / "pool_bound.json", folder / "tiles" / "deep")
    for name in ("fir.graphml", "fir_RM.xml", "fir.ssp.mlir"):
        shutil.copy(EXAMPLES / "formats" / name, folder / "filters")
    peers = [{"file": "gemm.json", "peer_ii": 300}, {"file": "four_op.json", "peer_ii": 15}]
    (folder / "tiles" / "peer_ii.json").write_text(json.dumps(peers))
    (folder / "filters" / "peer_ii.json").write_text(
        json.dumps([{"file": "fir.graphml", "loop": "fir", "peer_ii": 2}])
    )
    return folder


def _valid(text: str) -> Any:
    document = json.loads(text)
    folder = resources.files("stretto.report").joinpath("schemas")
    schema = json.loads(folder.joinpath("bench.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)
    return document


def test_every_folder_is_a_suite_with_its_figures(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["bench", str(corpus), "--repeat", "1", "--json", "--html", str(page)]) == 0
    document = _valid(capsys.readouterr().out)
    suites = {suite["name"]: suite for suite in document["suites"]}
    assert list(suites) == ["filters", "tiles", "all"]
    tiles, filters = suites["tiles"], suites["filters"]
    assert (tiles["loops"], tiles["at_mii"], tiles["proved"], tiles["failed"]) == (3, 3, 3, 0)
    assert (tiles["better"], tiles["equal"], tiles["worse"]) == (1, 1, 0)
    assert (filters["better"], filters["equal"], filters["worse"]) == (0, 0, 1)
    assert suites["all"]["loops"] == 5
    assert all(row["verified"] for row in document["loops"])
    assert {row["file"] for row in document["loops"]} >= {"deep/pool_bound.json", "fir.graphml"}
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 2
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_the_best_published_ii_counts_and_odd_files_are_of_no_loop(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = [
        {"file": "gemm.json", "peer_ii": 255},
        {"file": "gemm.json", "peer_ii": 300},
        {"file": "../gemm.json", "peer_ii": 1},
        {"file": "deep/pool_bound.json", "peer_ii": 1000},
    ]
    (corpus / "tiles" / "peer_ii.json").write_text(json.dumps(peers))
    assert main(["bench", str(corpus), "--repeat", "1", "--json"]) == 0
    suites = {suite["name"]: suite for suite in _valid(capsys.readouterr().out)["suites"]}
    tiles = suites["tiles"]
    assert (tiles["better"], tiles["equal"], tiles["worse"]) == (1, 0, 1)


def test_text_names_what_is_worse_than_published(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(corpus), "--repeat", "1"]) == 0
    told = capsys.readouterr().out
    assert "worse than published (1)\n  filters/fir.graphml: fir: II 3, 2\n" in told
    assert all(len(line) <= 100 for line in told.splitlines())


def test_a_loop_that_fails_is_a_row_and_the_exit_code(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (corpus / "tiles" / "bad.json").write_text('{"schema": "stretto.loop/1"}')
    assert main(["bench", str(corpus), "--repeat", "1"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "failed (1) tiles/bad.json: " in told
    assert "$.name: error: is missing" in told


def test_a_run_before_is_compared_with(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    assert main(["bench", str(corpus), "--repeat", "1", "--json", "-o", str(old)]) == 0
    again = ["bench", str(corpus), "--repeat", "1", "--slower", "1000", "--compare", str(old)]
    assert main(again) == 0
    assert "nothing is worse" in capsys.readouterr().out
    document = json.loads(old.read_text())
    for row in document["loops"]:
        if row["file"] == "gemm.json":
            row["ii"] = 200
    old.write_text(json.dumps(document))
    assert main(again) == 1
    assert "tiles/gemm.json: gemm: II 200 before, now 256" in capsys.readouterr().out


def _row(name: str, **more: Any) -> BenchRow:
    row = BenchRow("s", name, name, True, 5, 10, 10, optimal=True, verified=True, seconds=0.01)
    return replace(row, **more)


def test_every_way_to_be_worse_or_better_is_told() -> None:
    old = [
        _row("grew"),
        _row("fell", ii=12),
        _row("lost"),
        _row("came", success=False, ii=None),
        _row("unproved"),
        _row("proved", optimal=False),
        _row("gone"),
    ]
    new = [
        _row("grew", ii=11),
        _row("fell", ii=11),
        _row("lost", success=False, ii=None, error="no"),
        _row("came"),
        _row("unproved", optimal=False),
        _row("proved"),
        _row("new"),
    ]
    found = compared("old.json", old, new)
    assert found.regressions == (
        "s/grew: II 10 before, now 11",
        "s/lost: II 10 before, now: no",
        "s/unproved: II 10 was proved, now it is not",
    )
    assert found.improvements == (
        "s/fell: II 12 before, now 11",
        "s/came: nothing before, now II 10",
        "s/proved: II 10 is proved now",
    )
    assert (found.missing, found.added) == (("s/gone",), 1)


def test_a_suite_that_is_slower_is_worse() -> None:
    old = [_row(str(i)) for i in range(5)]
    slow = [_row(str(i), seconds=0.016) for i in range(5)]
    (told,) = compared("old.json", old, slow).regressions
    assert told == "s: median 16.00 ms, 1.6 times the 10.00"
    assert compared("old.json", old, slow, slower=2).regressions == ()
    quick = [_row(str(i), seconds=1e-5) for i in range(5)]
    noise = [_row(str(i), seconds=9e-4) for i in range(5)]
    assert compared("old.json", quick, noise).regressions == ()


def test_figures_are_those_of_the_rows() -> None:
    rows = [_row(str(i), ii=10 + (i == 19), seconds=(i + 1) / 1000) for i in range(20)]
    found = Suite("s", (*rows, _row("x", success=False, ii=None))).figures()
    assert (found["loops"], found["failed"], found["at_mii"]) == (21, 1, 19)
    assert found["mean_gap_percent"] == 0.5
    assert found["worst_gap_percent"] == 10.0
    assert found["median_seconds"] == pytest.approx(0.0105)
    assert found["p95_seconds"] == 0.019
    assert found["worst_seconds"] == 0.02


def test_growth_is_an_exponent_where_sizes_differ_enough() -> None:
    rows = [_row(str(i), ops=2**i, seconds=1e-4 * 2 ** (1.5 * i)) for i in range(8)]
    assert Suite("s", tuple(rows)).figures()["growth"] == 1.5
    assert Suite("s", tuple(rows[:7])).figures()["growth"] is None
    assert power_law([(10 + i, 1.0) for i in range(20)]) is None


def test_an_unverified_schedule_is_no_success() -> None:
    assert not BenchReport((_row("x", verified=False),)).success


def test_generators_of_others_are_measured_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(outside.install(tmp_path)))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    gemm = str(EXAMPLES / "gemm.json")
    assert main(["bench", gemm, "--generator", "one-by-one", "--repeat", "1", "--json"]) == 0
    (row,) = _valid(capsys.readouterr().out)["loops"]
    assert (row["generator"], row["verified"], row["ii"] > row["mii"]) == ("one-by-one", True, True)
    assert main(["bench", gemm, "--generator", "all-at-once", "--repeat", "1"]) == 1
    told = " ".join(capsys.readouterr().out.split())
    assert "the all-at-once generator made a schedule that is not legal" in told


def test_random_loops_are_a_suite() -> None:
    found = stretto.bench(stretto.generate_loops(3, ops=(3, 5)), repeat=1)
    assert [suite.name for suite in found.suites] == ["random"]
    assert found.success


FAULTS = [
    ("{}", r"\$\.schema: error: is missing"),
    ('{"schema": "stretto.bench/2", "loops": []}', r'expected "stretto\.bench/1"'),
    ('{"schema": "stretto.bench/1", "loops": [{"ii": "x"}]}', r"\$\.loops\[0\]"),
    ("[", "not JSON"),
]


@pytest.mark.parametrize(("text", "told"), FAULTS)
def test_another_document_is_refused_in_its_place(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "old.json"
    file.write_text(text)
    with pytest.raises(StrettoError, match=told):
        read_bench(str(file))


def test_nothing_to_measure_is_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    assert "give a PATH, or --random N" in capsys.readouterr().err


# Plots ------------------------------------------------------------------------------------


def test_a_plot_is_a_picture_and_a_text_of_its_points() -> None:
    points = tuple(Point(x, y, f"<{x}>", best=x == 1) for x, y in ((1, 9), (5, 4), (9, 1)))
    plot = Plot("all & some", Axis("across"), Axis("up"), points, ("one",), joined=True)
    svg = plot.to_svg()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert svg.count("<circle") == 4  # three points and the key
    assert "all &amp; some" in svg
    assert "&lt;5&gt;" in svg
    lines = plot.to_text()
    assert sum(line.count("·") for line in lines) == 2
    assert sum(line.count("*") for line in lines) == 1
    marks = "".join(line.strip() for line in lines[1:-2] if "*" in line or "·" in line)
    assert marks.index("*") < marks.index("·")


def test_what_has_no_logarithm_is_not_drawn() -> None:
    plot = Plot("t", Axis("x", log=True), Axis("y", log=True), (Point(0, 1, ""), Point(3, 0, "")))
    assert plot.drawn == ()
    assert "nothing to show" in plot.to_svg()
    assert plot.to_text() == ["t: nothing to show"]


def test_ticks_are_round() -> None:
    assert ticks(0, 10, log=False) == [0, 2, 4, 6, 8, 10]
    assert ticks(0, 3.1, log=True) == [1, 10, 100, 1000]
    assert ticks(0.4, 1.7, log=True) == [3, 10, 30]


def test_what_was_measured_is_told_when_it_is_stopped(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = run_tasks

    def stopped_after_two(*words: Any, **options: Any) -> Any:
        for number, done in enumerate(real(*words, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield done

    monkeypatch.setattr(bench_module, "run_tasks", stopped_after_two)
    assert main(["bench", str(corpus), "--quick"]) == 3
    told = capsys.readouterr().out
    assert "note: stopped: 2 of " in told
    assert "note: a gap is to the MII" in told
    assert len(stretto.bench([corpus], repeat=1).rows) == 2


def test_nothing_is_told_when_it_is_stopped_at_once(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_words: Any, **_options: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_module, "run_tasks", stopped)
    assert main(["bench", str(corpus), "--quick"]) == 130
    assert "interrupted" in capsys.readouterr().err
