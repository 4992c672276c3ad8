"""What cannot be written is refused before any search; a time limit ends one with an answer."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import stretto
from atomic_kernels import SPLIT_K
from gluon_cases import holds, shipped
from stretto.cli.main import main
from stretto.compile import loop_schedules, scheduled, versions
from stretto.compile.candidates import Emitter
from stretto.deadline import Deadline, OverdueError
from stretto.emission import EmitError
from stretto.generate import SERIAL
from stretto.machine.settings import with_settings

FORWARD = "triton/attention_forward_d128"
MATMUL = "triton/matmul_descriptors"
SCHEMAS = Path(stretto.__file__).parent / "report" / "schemas"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The generators that are asked for schedules."""
    asked: list[str] = []
    before: Any = scheduled.scheduled

    def schedule(loop: Any, machine: Any, generator: str = "auto", **options: Any) -> Any:
        asked.append(generator)
        return before(loop, machine, generator, **options)

    for module in (versions, loop_schedules):
        monkeypatch.setattr(module, "scheduled", schedule)
    return asked


# Before any search ------------------------------------------------------------------------------


def test_what_cannot_be_written_is_refused_before_any_search(
    tmp_path: Path, searched: list[str]
) -> None:
    file = tmp_path / "split.ttir"
    assert SPLIT_K.count("fadd") == 1
    file.write_text(SPLIT_K.replace("fadd", "umax"))
    with pytest.raises(EmitError, match=r"split\.ttir:\d+:\d+: error: .*\(umax\) of unsigned"):
        stretto.emit(file, "h200")
    assert set(searched) == {SERIAL}


def test_what_cannot_fit_is_refused_before_any_search(searched: list[str]) -> None:
    small = with_settings("h200", {"budgets.smem.bytes": 40_000})
    with pytest.raises(EmitError, match=r"bytes of shared memory are needed, .* has 40,000"):
        stretto.emit(shipped(FORWARD), small)
    assert set(searched) == {SERIAL}


# A time limit ------------------------------------------------------------------------------------


class Clock:
    """Time passes where a schedule is made, and only there: a second each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.asked = 0.0, list[str]()
        before: Any = scheduled.scheduled
        monkeypatch.setattr("stretto.deadline.monotonic", lambda: self.now)
        monkeypatch.setattr("stretto.deadline.signal", None)  # nobody rings in between

        def schedule(loop: Any, machine: Any, generator: str = "auto", **options: Any) -> Any:
            self.asked.append(generator)
            if generator == SERIAL:
                return before(loop, machine, generator)
            limit = options.pop("deadline")
            found: Any = before(loop, machine, generator, **options)
            self.now += 1
            if isinstance(limit, Deadline) and limit.over and self.late:
                raise OverdueError(limit.seconds)
            return found

        self.late = False
        for module in (versions, loop_schedules):
            monkeypatch.setattr(module, "scheduled", schedule)


def test_the_best_so_far_is_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Emitter(shipped(MATMUL)).candidates(2)
    clock = Clock(monkeypatch)
    made = stretto.emit(shipped(MATMUL), "h200", consumers=2, time_limit=1.5)
    assert clock.asked == [SERIAL, "auto", "auto"]
    assert made.stopped
    assert made.notes[-1] == "the time limit of 1.5 s came before all was tried"
    assert made.source in [one.source for one in every]


def test_where_no_schedule_is_found_in_time_iterations_follow_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    clock.late = True
    made = stretto.emit(shipped(FORWARD), "h200", consumers=2, time_limit=0.1)
    assert made.stopped
    (analysis,) = made.analyses
    assert analysis.generator == SERIAL
    assert stretto.verify(analysis.problem, analysis).legal
    holds(FORWARD, made.source)


def test_without_a_limit_nothing_is_stopped() -> None:
    assert not stretto.emit(shipped(MATMUL), "h200", consumers=1).stopped


@pytest.mark.parametrize("limit", [0, -1.0, float("inf")])
def test_a_limit_is_a_number_of_seconds(limit: float) -> None:
    with pytest.raises(stretto.StrettoError, match=r"time_limit is .* seconds above 0"):
        stretto.emit(shipped(FORWARD), "h200", time_limit=limit)


def test_the_command_says_that_it_was_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    """On the clock: searches of attention backward take longer than a second."""
    begun = time.monotonic()
    code = main(
        ["emit", str(shipped("triton/attention_backward_kv")), "--time-limit", "1", "--json"]
    )
    taken = time.monotonic() - begun
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, json.loads((SCHEMAS / "emitted.schema.json").read_text()))
    assert (code, document["stopped"]) == (3, True)
    assert "time limit of 1 s" in document["notes"][-1]
    assert taken < 30
