"""Trials at launches: whose turn it is, what is timed, what decides, and what is never done.

FakeJit, FakeEvents ──► a GPU whose clock the test turns ──► stretto.triton.verdicts()
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_launching import TILES, Jit, Stub, matrices

import stretto.triton
from fake_gpu import Tensor
from fake_triton import FakeEvents
from stretto.errors import StrettoError
from stretto.launching import PipelineWarning
from stretto.launching.comparing import check_alike
from stretto.launching.compiling import Compiled
from stretto.launching.events import DeviceError
from stretto.launching.timing import OPEN
from stretto.launching.trial import ENOUGH, LAUNCHES, Runner, Trial, decided
from stretto.launching.verdicts import forget
from stretto.prediction.stock import Stock
from stretto.triton.failure import KernelFailedError, looked_for

# Who is faster ----------------------------------------------------------------------------


def test_of_two_launches_each_kernel_has_one_in_an_order_that_is_drawn() -> None:
    turns = [Trial("seed").turn() for _ in range(3)]
    assert len(set(turns)) == 1  # the same seed draws alike
    trial = Trial("seed")
    pairs = [(trial.turn(), trial.turn()) for _ in range(20)]
    assert all(set(pair) == set(Runner) for pair in pairs)
    assert len(set(pairs)) == 2


def test_the_first_time_of_each_is_thrown_away() -> None:
    trial = Trial(1)
    for runner in Runner:
        trial.time(runner, 1e9)
    assert trial.times == {Runner.OURS: [], Runner.THEIRS: []}
    for _ in range(ENOUGH):
        trial.time(Runner.OURS, 90.0)
        trial.time(Runner.THEIRS, 100.0)
    assert trial.verdict is Runner.OURS


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([90] * 5, [100] * 5, Runner.OURS),
        ([100] * 5, [90] * 5, Runner.THEIRS),
        ([99] * 5, [100] * 5, None),  # within the margin
        ([90] * 4, [100] * 5, None),  # too few
        ([90, 90, 90, 200, 200], [100, 100, 100, 80, 80], None),  # they do not agree
        ([122, 130], [100, 101], Runner.THEIRS),  # far slower: no need for more
        ([119, 130], [100, 101], None),
        ([104, 130, 105], [100, 101, 99], Runner.THEIRS),  # slower each time
        ([102, 130, 105], [100, 101, 99], None),
        ([100, 101], [700, 710], None),  # far faster: it may be luck
        ([700], [100, 101], None),
    ],
)
def test_a_verdict_needs_a_margin_and_times_that_agree(
    ours: list[float], theirs: list[float], verdict: Runner | None
) -> None:
    assert decided(ours, theirs) is verdict


# At the launch ----------------------------------------------------------------------------


class Bench:
    """A kernel, a GPU, and how long either kernel takes on it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        self.stub = Stub(monkeypatch, tmp_path)
        self.events = FakeEvents()
        self.ours, self.theirs = 80.0, 100.0
        self.ran: list[str] = []
        self.during: Callable[[str], None] = lambda _: None
        self.given = matrices()
        monkeypatch.setattr("stretto.triton.dispatch.device_events", self.device_events)
        bench = self

        def emulated(kernel: Any, grid: tuple[int, ...]) -> Any:
            del kernel, grid

            def run(*args: Any, stream: int = 0, **_: Any) -> None:
                del args, stream
                bench.run("ours", bench.ours)

            return run

        monkeypatch.setattr("fake_gpu.EmulatedKernel.__getitem__", emulated)

    def device_events(self) -> FakeEvents:
        return self.events

    def jit(self) -> Jit:
        found = Jit(self.stub)
        found.on_launch = self.theirs_runs
        return found

    def theirs_runs(self, who: str, stream: int, given: Any) -> None:
        del stream, given
        self.run(who, self.theirs)

    def run(self, who: str, microseconds: float) -> None:
        self.ran.append(who)
        self.events.work(microseconds)
        self.during(who)

    def launch(self, kernel: Any, times: int = 1, k: int = 128) -> None:
        for _ in range(times):
            kernel[(1, 1)](*self.given, 128, 128, k, **TILES)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    forget()
    yield Bench(monkeypatch, tmp_path)
    OPEN.clear()
    Tensor.memory.clear()


def test_every_launch_runs_once_and_the_faster_kernel_wins(bench: Bench) -> None:
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 50)
    assert len(bench.ran) == 50
    tried = 2 * (ENOUGH + 1)
    assert bench.ran[:tried].count("ours") == bench.ran[:tried].count("theirs") == tried / 2
    assert set(bench.ran[tried + 1 :]) == {"ours"}
    (verdict,) = stretto.triton.verdicts()
    assert (verdict.runs, verdict.ours_us, verdict.theirs_us) == ("ours", 80, 100)
    assert (verdict.grid, verdict.numbers) == ((1, 1, 1), (128, 128, 128))
    assert verdict.gained == pytest.approx(1.25)


def test_a_report_has_the_verdicts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STRETTO_REPORT", str(tmp_path / "reports"))
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 20)
    bench.ours = 200.0
    bench.launch(kernel, 20, k=64)
    (file,) = (tmp_path / "reports").glob("matmul_descriptors-*.verdicts.json")
    document = json.loads(file.read_text())
    assert document["schema"] == "stretto.verdicts/1"
    assert [one["runs"] for one in document["verdicts"]] == ["ours", "theirs"]


def test_a_slower_kernel_of_ours_ends_soon_and_costs_nothing_any_more(bench: Bench) -> None:
    bench.ours = 700.0
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 50)
    assert bench.ran.count("ours") == 3
    recorded = bench.events.recorded
    bench.launch(kernel, 10)
    assert bench.events.recorded == recorded
    assert [v.runs for v in stretto.triton.verdicts()] == ["theirs"]


def test_no_verdict_after_forty_launches_means_theirs(bench: Bench) -> None:
    bench.ours = 99.0
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 60)
    assert bench.ran[:LAUNCHES].count("ours") == LAUNCHES / 2
    assert set(bench.ran[LAUNCHES:]) == {"theirs"}
    assert [v.runs for v in stretto.triton.verdicts()] == ["theirs"]


def test_each_grid_and_each_number_is_a_kind_of_its_own(bench: Bench) -> None:
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 15)
    bench.ours = 200.0
    bench.launch(kernel, 15, k=64)
    assert [v.runs for v in stretto.triton.verdicts()] == ["ours", "theirs"]
    bench.ran.clear()
    bench.launch(kernel)
    bench.launch(kernel, k=64)
    assert bench.ran == ["ours", "theirs"]


def test_kinds_that_never_come_again_are_tried_no_longer(bench: Bench) -> None:
    kernel = stretto.triton.pipeline(bench.jit())
    for k in range(2, 500):
        bench.launch(kernel, k=k)
    assert bench.ran[-100:] == ["theirs"] * 100
    assert bench.ran.count("ours") <= 8 * LAUNCHES


def test_events_are_queried_and_never_waited_for(bench: Bench) -> None:
    """Nothing is known before the GPU is there; launches go on."""
    bench.events.lazy = True
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 60)
    assert stretto.triton.verdicts() == ()
    assert set(bench.ran[LAUNCHES:]) == {"theirs"}
    bench.events.catch_up()
    bench.launch(kernel, 2)
    assert bench.ran[-1] == "ours"
    assert OPEN == []


def test_what_runs_beside_another_stream_gives_no_time(bench: Bench) -> None:
    bench.events.lazy = True
    jit = bench.jit()
    kernel = stretto.triton.pipeline(jit)
    for n in range(LAUNCHES):
        jit.stream = 1 + n % 2
        bench.launch(kernel)
    bench.events.catch_up()
    bench.launch(kernel)
    (verdict,) = stretto.triton.verdicts()
    assert (verdict.runs, verdict.ours_us) == ("theirs", None)


def test_a_graph_is_captured_without_an_event_a_compilation_or_a_load(bench: Bench) -> None:
    bench.events.captures.add(7)
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 3)
    assert (bench.ran, bench.stub.loaded, bench.events.recorded) == (["theirs"] * 3, [], 0)
    bench.events.captures.clear()
    bench.launch(kernel, 5)
    bench.events.captures.add(7)
    bench.ran.clear()
    bench.launch(kernel)  # in the middle of a trial
    assert bench.ran == ["theirs"]
    bench.events.captures.clear()
    bench.launch(kernel, 20)
    bench.events.captures.add(7)
    bench.ran.clear()
    bench.launch(kernel)
    assert bench.ran == ["ours"]


def test_while_somebody_measures_one_kernel_is_measured(bench: Bench) -> None:
    """`do_bench` of Triton's is told by where it is called from."""
    space: dict[str, Any] = {"__name__": "triton.testing"}
    exec("def do_bench(call):\n    for _ in range(60): call()", space)
    kernel = stretto.triton.pipeline(bench.jit())
    space["do_bench"](lambda: bench.launch(kernel))
    assert set(bench.ran) == {"theirs"}
    bench.launch(kernel, 30)
    bench.ran.clear()
    space["do_bench"](lambda: bench.launch(kernel))
    assert set(bench.ran) == {"ours"}


def test_while_an_autotuner_measures_nothing_is_made(bench: Bench) -> None:
    space: dict[str, Any] = {"__name__": "triton.runtime.autotuner"}
    exec("def _bench(call):\n    for _ in range(3): call()", space)
    kernel = stretto.triton.pipeline(bench.jit())
    space["_bench"](lambda: bench.launch(kernel))
    assert (bench.ran, bench.stub.loaded) == (["theirs"] * 3, [])


# Switches ---------------------------------------------------------------------------------


def test_without_a_trial_ours_runs_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.launch(stretto.triton.pipeline(trial=False)(bench.jit()), 3)
    monkeypatch.setenv("STRETTO_TRIAL", "0")
    bench.launch(stretto.triton.pipeline(bench.jit()), 3)
    assert (bench.ran, bench.events.recorded) == (["ours"] * 6, 0)


def test_stretto_0_turns_everything_off(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    early = stretto.triton.pipeline(bench.jit())
    monkeypatch.setenv("STRETTO", "0")
    for kernel in (early, stretto.triton.pipeline(bench.jit())):
        bench.launch(kernel, 3)
    assert (bench.ran, bench.stub.loaded) == (["theirs"] * 6, [])


def test_a_kernel_without_a_loop_is_not_touched(bench: Bench) -> None:
    bench.stub.text = "module { tt.return }"
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 3)
    (compiled,) = kernel.device_caches[0].values()
    assert compiled._run == compiled._launch
    assert stretto.triton.verdicts()[0].why == "there is no loop, so nothing to overlap"


def test_what_is_refused_has_its_own_launcher_back_and_is_not_sought_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.stub.text = "nonsense scf.for"
    kernel = stretto.triton.pipeline(bench.jit())
    with pytest.warns(PipelineWarning):
        bench.launch(kernel, 2)
    (compiled,) = kernel.device_caches[0].values()
    assert compiled._run == compiled._launch
    monkeypatch.setattr("stretto.triton.production.start", None)
    with pytest.warns(PipelineWarning, match="<matmul_descriptors>"):
        bench.launch(stretto.triton.pipeline(bench.jit()), 2)


def _stock(*_: object) -> Stock:
    return Stock("", 4, 3, 9, 0)


def _compiled(_: object) -> Compiled:
    return Compiled(0, (), 0, 168)


def test_a_launch_that_is_predicted_slower_is_not_tried(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By kinds: each is judged by itself, and only what is made in this process."""
    asked: list[int] = []

    def judge(made: Any, stock: Any, machine: Any, grid: Any, given: Any) -> str:
        del made, stock, machine, grid
        asked.append(given["K"])
        return "predicted to take 9 µs, Triton's own kernel 5" if given["K"] == 128 else ""

    monkeypatch.setattr("stretto.launching.gate.why_slower", judge)
    monkeypatch.setattr("stretto.launching.compiling.can_compile", lambda: True)
    monkeypatch.setattr("stretto.launching.compiling.stock_of", _stock)
    monkeypatch.setattr("stretto.launching.compiling.compile_emitted", _compiled)
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 5)
    assert bench.ran == ["theirs"] * 5
    assert [v.why for v in stretto.triton.verdicts()] == [judge(0, 0, 0, 0, {"K": 128})]
    bench.launch(kernel, 20, k=64)
    assert "ours" in bench.ran
    assert asked == [128, 128, 64]
    bench.ran.clear()  # the verdict is kept for other processes; strict kernels trust nobody
    bench.launch(stretto.triton.pipeline(bench.jit()), 3)
    bench.launch(stretto.triton.pipeline(strict=True, trial=False)(bench.jit()))
    assert bench.ran == ["theirs"] * 3 + ["ours"]


# Between processes ------------------------------------------------------------------------


def test_a_verdict_is_kept_with_the_kernel_and_expires_with_the_driver(
    bench: Bench, tmp_path: Path
) -> None:
    bench.launch(stretto.triton.pipeline(bench.jit()), 20)
    (file,) = (tmp_path / "cache").rglob("verdicts/*/*.json")
    assert json.loads(file.read_text())["runs"] == "ours"
    bench.ran.clear()
    bench.launch(stretto.triton.pipeline(bench.jit()), 3)
    assert bench.ran == ["ours"] * 3
    assert "earlier process" in stretto.triton.verdicts()[-1].why
    bench.events.gpu = "another GPU"  # pyright: ignore[reportAttributeAccessIssue]
    bench.ran.clear()
    bench.launch(stretto.triton.pipeline(bench.jit()), 10)
    assert bench.ran.count("ours") == 5


def test_a_verdict_that_another_could_have_written_does_not_count(
    bench: Bench, tmp_path: Path
) -> None:
    bench.launch(stretto.triton.pipeline(bench.jit()), 20)
    (file,) = (tmp_path / "cache").rglob("verdicts/*/*.json")
    file.chmod(0o666)
    bench.ran.clear()
    with pytest.warns(UserWarning, match="may be written by others"):
        bench.launch(stretto.triton.pipeline(bench.jit()), 10)
    assert bench.ran.count("ours") == 5


# Failures ---------------------------------------------------------------------------------


def failing(bench: Bench, kernel: Any) -> str:
    """Until ours has been launched, which then has failed; what the user is told."""

    def fail(who: str) -> None:
        if who == "ours":
            bench.events.error = DeviceError(700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    bench.during = fail
    with pytest.raises(KernelFailedError) as told:
        bench.launch(kernel, 10)
    return str(told.value)


def test_an_asynchronous_error_names_the_launch_and_bans_ours(bench: Bench) -> None:
    told = failing(bench, stretto.triton.pipeline(bench.jit()))
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in told
    assert "`matmul_descriptors`, launched at " in told
    assert f"{Path(__file__).name}:" in told
    bench.events.error = None
    bench.during = lambda _: None
    bench.ran.clear()
    with pytest.warns(PipelineWarning, match="it failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS"):
        bench.launch(stretto.triton.pipeline(bench.jit()), 10)
    assert set(bench.ran) == {"theirs"}


def test_a_failure_that_another_library_was_told_of_is_found_as_the_process_ends(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel, 20)
    looked_for()
    assert capsys.readouterr().err == ""
    bench.events.error = DeviceError(700, "CUDA_ERROR_ILLEGAL_ADDRESS")
    looked_for()
    told = capsys.readouterr().err
    assert "CUDA_ERROR_ILLEGAL_ADDRESS: it may be Stretto's kernel of `matmul_descriptors`" in told
    (file,) = (tmp_path / "cache").rglob("ban.json")
    assert "ILLEGAL_ADDRESS" in json.loads(file.read_text())["reason"]
    looked_for()
    assert capsys.readouterr().err == ""


def test_an_error_of_tritons_own_kernel_bans_nothing(bench: Bench, tmp_path: Path) -> None:
    def fail(who: str) -> None:
        if who == "theirs":
            bench.events.error = DeviceError(700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    bench.during = fail
    bench.events.captures.add(7)
    kernel = stretto.triton.pipeline(bench.jit())
    bench.launch(kernel)
    bench.events.captures.clear()
    with pytest.raises(KernelFailedError, match="none of Stretto's was running"):
        bench.launch(kernel, 4)
    assert not list(tmp_path.rglob("ban.json"))


def test_an_error_that_is_no_failure_leaves_the_kernel_to_triton(bench: Bench) -> None:
    bench.events.error = DeviceError(2, "CUDA_ERROR_OUT_OF_MEMORY")
    kernel = stretto.triton.pipeline(bench.jit())
    with pytest.warns(PipelineWarning, match="CUDA_ERROR_OUT_OF_MEMORY"):
        bench.launch(kernel, 5)
    assert bench.ran == ["theirs"] * 5


# Both on copies ---------------------------------------------------------------------------


def test_the_first_launch_may_compare_both_kernels(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def writing(value: float) -> Callable[..., None]:
        def compare(names: Any, values: Any, theirs: Any, ours: Any) -> None:
            del names, theirs, ours
            assert values[2] is bench.given[2]
            if value:
                raise StrettoError(f"`c_ptr` differs by {value}")

        return compare

    monkeypatch.setattr("stretto.triton.binding.check_alike", writing(0.0))
    bench.launch(stretto.triton.pipeline(check="first", trial=False)(bench.jit()))
    assert bench.ran == ["ours"]
    monkeypatch.setattr("stretto.triton.binding.check_alike", writing(0.5))
    monkeypatch.setenv("STRETTO_CHECK", "1")
    with pytest.warns(PipelineWarning, match="`c_ptr` differs by 0.5"):
        bench.launch(stretto.triton.pipeline(bench.jit()), 3)
    assert bench.ran == ["ours", *["theirs"] * 3]
    (file,) = tmp_path.rglob("ban.json")
    assert "differs by 0.5" in file.read_text()


class Copied(Tensor):
    """A tensor that can be copied."""

    def copy(self) -> Copied:
        return Copied(self.array)


def test_what_both_wrote_is_compared_on_copies() -> None:
    given: list[Any] = [Copied(np.ones(4, np.float16)), Copied(np.zeros(4, np.float16)), 3]
    names = ("x_ptr", "y_ptr", "n")

    def writing(*values: float) -> Callable[[Any], None]:
        def run(copies: Any) -> None:
            copies[1].array[...] = values

        return run

    theirs = writing(1, 2, np.nan, 4)
    check_alike(names, given, theirs, writing(1, 2.01, np.nan, 4))
    with pytest.raises(StrettoError, match=r"`y_ptr` differs by 0.25 of its largest value"):
        check_alike(names, given, theirs, writing(1, 2, np.nan, 5))
    with pytest.raises(StrettoError, match="`y_ptr` differs by nan"):
        check_alike(names, given, theirs, writing(np.nan, 2, np.nan, 4))
    assert not given[1].array.any()


# Threads ----------------------------------------------------------------------------------


def test_launches_of_several_threads_all_run_once(bench: Bench) -> None:
    kernel = stretto.triton.pipeline(bench.jit())
    threads = [threading.Thread(target=bench.launch, args=(kernel, 25)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bench.ran) == 100
    assert [v.runs for v in stretto.triton.verdicts()] == ["ours"]
