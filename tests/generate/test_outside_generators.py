"""Generators of others: registered or installed, asked by name, verified like ours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import outside
import stretto
from stretto import GeneratorTask, Schedule, StrettoError
from stretto.cli.main import main
from stretto.generate.outside import Generator, outside_names
from stretto.loop import Loop

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = str(EXAMPLES / "gemm.json")


@pytest.fixture
def gemm() -> Loop:
    return stretto.read(GEMM)[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(outside.install(folder)), *sys.path])
    monkeypatch.delitem(sys.modules, "third_party_generators", raising=False)
    return folder


def _serial(task: GeneratorTask) -> Schedule | str:
    return stretto.schedule(task.loop, task.machine, "serial").schedule


# Registered -------------------------------------------------------------------------------


def test_a_registered_function_makes_the_schedule(gemm: Loop) -> None:
    stretto.register_generator("mine", _serial)
    found = stretto.schedule(gemm, generator="mine")
    assert found.generator == "mine"
    assert found.starts == stretto.schedule(gemm, generator="serial").starts
    assert stretto.verify(gemm, found).legal


def test_it_is_told_what_is_asked_for(gemm: Loop) -> None:
    seen: list[GeneratorTask] = []

    def curious(task: GeneratorTask) -> Schedule | str:
        seen.append(task)
        return "curious only"

    stretto.register_generator("curious", curious)
    stretto.schedule(
        gemm, generator="curious", max_ii=900, max_stages=3, fuse=False, time_limit=60.0
    )
    (task,) = seen
    assert (task.mii, task.max_ii, task.max_stages, task.fuse) == (256, 900, 3, False)
    assert task.seconds is not None
    assert 0 < task.seconds <= 60
    assert task.loop.resolved
    assert task.machine.name == "b200-pipes"


def test_the_solver_proves_or_improves_what_it_made(gemm: Loop) -> None:
    stretto.register_generator("mine", _serial)
    found = stretto.schedule(gemm, generator="mine", prove=True)
    assert (found.ii, found.proved) == (256, True)
    assert "improves on the mine schedule" in found.rule


def test_a_wrong_schedule_is_refused_in_the_words_of_the_verifier(gemm: Loop) -> None:
    stretto.register_generator(
        "wrong", lambda task: Schedule(256, dict.fromkeys(task.loop.index, 0))
    )
    with pytest.raises(stretto.IllegalScheduleError) as caught:
        stretto.schedule(gemm, generator="wrong")
    told = str(caught.value)
    assert told.startswith("gemm: the wrong generator made a schedule that is not legal\n")
    assert "dependence: `mma` starts at 0; `load_a` is ready at 556" in told
    assert "bug of Stretto" not in told


def test_a_reason_is_a_refusal_and_no_proof(gemm: Loop) -> None:
    stretto.register_generator("picky", lambda _: "too few operations")
    found = stretto.schedule(gemm, generator="picky")
    assert not found.success
    (refusal,) = found.refused
    assert refusal.reason == "generator `picky` found none: too few operations"
    assert not refusal.proved


def test_an_ii_above_the_limit_is_no_answer(gemm: Loop) -> None:
    stretto.register_generator("mine", _serial)
    found = stretto.schedule(gemm, generator="mine", max_ii=300)
    assert not found.success
    assert "has II 1212; the largest II allowed is 300" in found.refused[-1].reason


NO_SCHEDULES: list[tuple[object, str]] = [
    (None, "returned NoneType; expected a stretto.Schedule, or why there is none"),
    ((256, {}), "returned tuple; expected"),
    (Schedule(0, {}), "returned an II of 0; expected a whole number from 1"),
    (Schedule(2.5, {}), "returned an II of 2.5"),  # pyright: ignore[reportArgumentType]
    (Schedule(True, {}), "returned an II of True"),
    (Schedule(256, [1, 2]), "returned starts that are list"),  # pyright: ignore[reportArgumentType]
    (Schedule(256, {"offset": 0}), "returned no start of `load_a`"),
    (
        Schedule(256, {"offset": 0, "load_a": -1, "load_b": 0, "mma": 0}),
        "returned start -1 of `load_a`; expected a whole number from 0",
    ),
    (
        Schedule(256, {"offset": 0, "load_a": 0, "load_b": 0, "mma": 0, "ghost": 0}),
        "returned a start of `ghost`, which is no operation of the loop",
    ),
    (
        Schedule(256, {"offset": 0, "load_a": 0, "load_b": 0, "mma": 0}, (("ghost", "mma"),)),
        "returned a fused group with 'ghost'",
    ),
    (
        Schedule(256, {"offset": 0, "load_a": 0, "load_b": 0, "mma": 0}, ["ab"]),  # pyright: ignore[reportArgumentType]
        "returned fused groups ['ab']; expected a tuple of tuples",
    ),
]


@pytest.mark.parametrize(("made", "told"), NO_SCHEDULES)
def test_what_is_no_schedule_is_named(gemm: Loop, made: object, told: str) -> None:
    stretto.register_generator("odd", lambda _: made)  # pyright: ignore[reportArgumentType]
    with pytest.raises(StrettoError) as caught:
        stretto.schedule(gemm, generator="odd")
    assert str(caught.value).startswith("gemm: generator `odd` " + told)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("first\nsecond"), "ValueError: first"),
        (KeyError(), "KeyError"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_one_that_fails_is_an_error_of_one_line(
    gemm: Loop, error: BaseException, told: str
) -> None:
    def failing(_: GeneratorTask) -> Schedule | str:
        raise error

    stretto.register_generator("failing", failing)
    with pytest.raises(StrettoError) as caught:
        stretto.schedule(gemm, generator="failing")
    assert str(caught.value) == f"gemm: generator `failing` failed: {told}"


@pytest.mark.parametrize("name", ["", "two words", "-x", "ü", "x" * 65])
def test_names_are_words(name: str) -> None:
    with pytest.raises(StrettoError, match="a generator cannot be called"):
        stretto.register_generator(name, _serial)


@pytest.mark.parametrize("name", ["auto", "serial", "cost-based", "exact"])
def test_ours_stay_ours(name: str) -> None:
    with pytest.raises(StrettoError, match="is Stretto's own"):
        stretto.register_generator(name, _serial)


def test_what_cannot_be_called_is_no_generator() -> None:
    with pytest.raises(StrettoError, match="which cannot be called"):
        stretto.register_generator("three", 3)  # pyright: ignore[reportArgumentType]


def test_a_name_given_anew_counts(gemm: Loop) -> None:
    stretto.register_generator("mine", lambda _: "no")
    stretto.register_generator("mine", _serial)
    assert stretto.schedule(gemm, generator="mine").success


# Installed --------------------------------------------------------------------------------


@pytest.mark.usefixtures("installed")
def test_an_installed_package_brings_its_generators(gemm: Loop) -> None:
    assert {"one-by-one", "all-at-once", "breaks", "gives-up"} <= set(outside_names())
    found = stretto.schedule(gemm, generator="one-by-one")
    assert found.success
    assert stretto.verify(gemm, found).legal


@pytest.mark.usefixtures("installed")
def test_one_that_cannot_be_loaded_says_why(gemm: Loop) -> None:
    with pytest.raises(StrettoError) as caught:
        stretto.schedule(gemm, generator="missing")
    assert str(caught.value).startswith(
        "generator `missing` cannot be loaded from `third_party_generators.nowhere:nobody` of "
        "package third-party-generators: ModuleNotFoundError"
    )


def test_two_packages_with_one_name_are_told_apart(installed: Path, gemm: Loop) -> None:
    rival = installed / "rival-1.dist-info"
    rival.mkdir()
    (rival / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1\n")
    (rival / "entry_points.txt").write_text("[stretto.generators]\ngives-up = rival:it\n")
    with pytest.raises(StrettoError, match="is offered by more than one package"):
        stretto.schedule(gemm, generator="gives-up")


def test_what_is_registered_goes_before_what_is_installed(installed: Path, gemm: Loop) -> None:
    assert installed.is_dir()
    stretto.register_generator("all-at-once", _serial)
    assert stretto.schedule(gemm, generator="all-at-once").success


def _stretto(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from stretto.cli import run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=outside.environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_line_lists_them_and_asks_them(installed: Path) -> None:
    helped = _stretto(installed, "schedule", "--help")
    assert "one-by-one" in "".join(helped.stdout.split())  # argparse breaks lines at hyphens
    made = _stretto(installed, "schedule", GEMM, "--generator", "one-by-one", "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["loops"][0]["generator"] == "one-by-one"


@pytest.mark.usefixtures("installed")
def test_they_are_compared_with_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", GEMM, "--b", "--generator one-by-one", "--json"]) == 0
    assert "one-by-one" in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "all-at-once",
            "the all-at-once generator made a schedule that is not legal\n  dependence",
        ),
        ("breaks", "generator `breaks` failed: ZeroDivisionError: no idea what to do with 4"),
    ],
)
def test_the_command_line_says_what_went_wrong(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["schedule", GEMM, "--generator", name]) == 1
    told_to = capsys.readouterr().err
    assert told in told_to
    assert "Traceback" not in told_to


def test_an_unknown_name_lists_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    stretto.register_generator("mine", _serial)
    assert main(["schedule", GEMM, "--generator", "nobody"]) == 2
    assert "'mine'" in capsys.readouterr().err
    with pytest.raises(StrettoError, match=r"no generator `nobody`; known: auto, .*, exact, mine"):
        stretto.schedule(stretto.read(GEMM)[0], generator="nobody")


def test_ours_are_chosen_without_a_look_at_packages() -> None:
    code = (
        "import sys; from stretto.cli.main import main; "
        f"main(['schedule', {GEMM!r}, '--generator', 'cost-based']); "
        "assert 'stretto.generate.outside' not in sys.modules; "
        "assert 'importlib.metadata' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_type_of_generators_is_public() -> None:
    one: Generator = _serial
    stretto.register_generator("typed", one)
