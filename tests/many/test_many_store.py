"""The store of answers: what was solved is not solved again, and nothing unverified comes out."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any, cast

import pytest

import stretto
from stretto import ScheduleResult, caching
from stretto.caching import cache_folder, seal
from stretto.errors import StrettoError
from stretto.limits import ANSWER_BYTES, FILE_BYTES
from stretto.many import store as store_module
from stretto.many.executors import run_tasks
from stretto.many.store import AnswerStore, answer, key_of, rank
from stretto.resources.prepare import Prepared
from stretto.solution import Objective, Proof
from stretto.solution.json import analysis_to_json

EXAMPLES = Path(__file__).parents[2] / "examples"
(FOUR_OP,) = stretto.read(EXAMPLES / "four_op.json")
READY = stretto.prepare(FOUR_OP)


@pytest.fixture
def store(tmp_path: Path) -> AnswerStore:
    return AnswerStore(tmp_path / "answers.sqlite")


def entries(store: AnswerStore) -> list[tuple[Any, ...]]:
    with sqlite3.connect(store.file) as connection:
        return connection.execute("select * from answers").fetchall()


def told(result: ScheduleResult) -> dict[str, Any]:
    return {**result.to_json(), "seconds": 0}


@pytest.mark.parametrize(
    "name", ["four_op", "gemm", "attention_forward", "over_smem", "pool_bound"]
)
def test_a_kept_answer_says_what_a_new_one_says(name: str, store: AnswerStore) -> None:
    (loop,) = stretto.read(EXAMPLES / f"{name}.json")
    ready = stretto.prepare(loop)
    first, second = answer(ready, store), answer(ready, store)
    assert (first.kept, second.kept) == (False, True)
    assert told(first.result) == told(second.result) == told(stretto.schedule(loop))
    assert second.result.seconds == first.result.seconds


def test_that_there_is_no_schedule_is_an_answer_too(store: AnswerStore) -> None:
    options = {"max_ii": 3}
    first, second = (answer(READY, store, options=options) for _ in range(2))
    assert (first.result.success, second.result.success, second.kept) == (False, False, True)
    assert told(first.result) == told(second.result)


def test_whatever_an_answer_depends_on_is_in_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    (gemm,) = stretto.read(EXAMPLES / "gemm.json")
    capacity = replace(READY, machine=READY.machine.with_capacity("tma", 2))
    later = replace(FOUR_OP.ops[0], latency=(READY.loop.ops[0].latency or 0) + 1)
    loop = replace(READY.loop, ops=(later, *READY.loop.ops[1:]))
    keys = [
        key_of(READY, {}),
        key_of(stretto.prepare(gemm), {}),
        key_of(capacity, {}),
        key_of(replace(READY, loop=loop), {}),
        key_of(READY, {"prove": True}),
        key_of(READY, {"seed": 1}),
        key_of(READY, {"fuse": False}),
        key_of(READY, {"max_stages": 1}),
    ]
    assert len(set(keys)) == len(keys)
    monkeypatch.setattr(store_module, "package_sum", lambda: "another Stretto")
    assert key_of(READY, {}) not in keys


def test_pins_are_part_of_the_loop_that_is_kept_and_verified(store: AnswerStore) -> None:
    free = answer(READY, store)
    options = {"pins": ["read=start:60"]}
    first, second = (answer(READY, store, options=options) for _ in range(2))
    assert (first.kept, second.kept) == (False, True)
    assert second.result.starts["read"] == 60 != free.result.starts["read"]
    assert told(first.result) == told(second.result)


def test_an_option_at_its_default_is_no_other_question() -> None:
    assert key_of(READY, {"prove": False, "without": ()}) == key_of(READY, {})
    assert key_of(READY, {"without": ["rau", "improve"]}) == key_of(
        READY, {"without": frozenset(("improve", "rau"))}
    )


def test_an_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(StrettoError, match="no option `speed`; known: generator, "):
        key_of(READY, {"speed": 3})


# Damage -----------------------------------------------------------------------------------


def damaged(store: AnswerStore, change: Callable[[dict[str, Any]], None], honest: bool) -> None:
    """Change what an entry says; `honest`: with the seal that goes with it."""
    ((key, order, effort, data, _),) = entries(store)
    document = json.loads(zlib.decompress(cast("bytes", data)))
    change(document["schedule"])
    data = zlib.compress(json.dumps(document).encode())
    total = seal(key.encode(), data) if honest else sha256(data).hexdigest()
    with sqlite3.connect(store.file) as connection:
        connection.execute("delete from answers")
        connection.execute(
            "insert into answers values (?, ?, ?, ?, ?)", (key, order, effort, data, total)
        )


def too_early(entry: dict[str, Any]) -> None:
    """The last operation starts with the first, before what it reads is there."""
    entry["ops"][-1] |= {"start": 0, "stage": 0, "cycle": 0}


def another_loop(entry: dict[str, Any]) -> None:
    entry["name"] = "gemm"


def not_read(entry: dict[str, Any]) -> None:
    entry["ii"] = "15"


@pytest.mark.parametrize("change", [too_early, another_loop, not_read])
def test_an_entry_that_the_verifier_or_the_reader_refuses_is_made_anew(
    change: Callable[[dict[str, Any]], None], store: AnswerStore
) -> None:
    first = answer(READY, store)
    before = entries(store)
    damaged(store, change, honest=True)
    again = answer(READY, store)
    assert not again.kept
    assert told(again.result) == told(first.result)
    assert entries(store)[0][:3] == before[0][:3]
    assert answer(READY, store).kept


def test_an_entry_whose_effort_is_no_number_is_made_anew(store: AnswerStore) -> None:
    answer(READY, store)
    with sqlite3.connect(store.file) as connection:
        connection.execute("update answers set effort = 'much'")
    assert not answer(READY, store, time_limit=60.0).kept
    assert answer(READY, store, time_limit=60.0).kept


def test_an_entry_whose_sum_is_another_is_made_anew(store: AnswerStore) -> None:
    answer(READY, store)
    damaged(store, lambda entry: entry.update(warnings=["all is well"]), honest=False)
    assert not answer(READY, store).kept
    assert answer(READY, store).kept


def unproved(entry: dict[str, Any]) -> None:
    """A legal schedule whose II the bounds say nothing of."""
    entry["proof"] |= {"optimal": False, "lower_bound": 15, "method": "none"}


def slower(entry: dict[str, Any]) -> None:
    """Another schedule: legal, and above the bound."""
    slow = stretto.schedule(READY, "blackwell", "serial")
    assert (slow.ii or 0) > 15
    entry.update(analysis_to_json(slow.analysis, READY.loop, READY.machine))


def claimed(method: str, **more: Any) -> Callable[[dict[str, Any]], None]:
    """A slower schedule, said to be optimal."""

    def change(entry: dict[str, Any]) -> None:
        slower(entry)
        entry["proof"] |= {"optimal": True, "lower_bound": entry["ii"], "method": method, **more}

    return change


def other_bounds(entry: dict[str, Any]) -> None:
    """A slower schedule at bounds of its own, which agree with each other."""
    claimed("none", optimal=False, lower_bound=15)(entry)
    bounds = entry["bounds"]
    assert bounds["limiter"] == "resource"
    bounds |= {"resource": entry["ii"], "mii": entry["ii"]}
    for witness in (bounds["witness"], bounds["witnesses"]["resource"]):
        witness["parts"][0]["amount"] += entry["ii"] - witness["total"]
        witness |= {"total": entry["ii"], "bound": entry["ii"]}


@pytest.mark.parametrize(
    "change",
    [
        claimed("bound"),
        claimed("solver"),
        claimed("bound", lower_bound=15),
        claimed("none", optimal=False, lower_bound=10**9),
        other_bounds,
    ],
)
def test_an_entry_that_claims_more_than_bounds_and_refusals_say_is_made_anew(
    change: Callable[[dict[str, Any]], None], store: AnswerStore
) -> None:
    answer(READY, store)
    damaged(store, change, honest=True)
    again = answer(READY, store)
    assert (again.kept, again.result.ii, again.result.proved) == (False, 15, True)


@pytest.mark.parametrize("change", [unproved, claimed("none", optimal=False, lower_bound=15)])
def test_an_entry_that_claims_no_more_is_believed(
    change: Callable[[dict[str, Any]], None], store: AnswerStore
) -> None:
    answer(READY, store)
    damaged(store, change, honest=True)
    again = answer(READY, store)
    assert (again.kept, again.result.success, again.result.proved) == (True, True, False)


def no_schedule(entry: dict[str, Any]) -> None:
    entry.update(success=False, ii=None, ops=[], proof=None, errors=["there is none"])


def refuted(entry: dict[str, Any]) -> None:
    """A slower schedule, and refusals that make it look optimal."""
    claimed("solver")(entry)
    entry["refused"] = [{"ii": 15, "through": entry["ii"] - 1, "reason": "no", "proved": True}]


@pytest.mark.parametrize("change", [no_schedule, refuted, unproved, too_early])
def test_what_our_stretto_did_not_write_is_made_anew(
    change: Callable[[dict[str, Any]], None], store: AnswerStore
) -> None:
    first = answer(READY, store)
    damaged(store, change, honest=False)
    again = answer(READY, store)
    assert not again.kept
    assert told(again.result) == told(first.result)


def test_an_entry_of_another_question_is_made_anew(store: AnswerStore) -> None:
    answer(READY, store, options={"max_ii": 3})
    with sqlite3.connect(store.file) as connection:
        connection.execute("update answers set key = ?", (key_of(READY, {}),))
    assert answer(READY, store).result.success


@pytest.mark.parametrize("packed", [True, False])
def test_an_entry_that_outgrows_every_answer_is_never_unpacked(
    packed: bool, store: AnswerStore
) -> None:
    """A thousand times what a document may have, in 16 MB; and as much without being packed."""
    answer(READY, store)
    zeros = zlib.compressobj()
    data = b"".join(zeros.compress(bytes(1 << 24)) for _ in range(256)) + zeros.flush()
    data = data if packed else bytes(ANSWER_BYTES + 1)
    key = key_of(READY, {})
    with sqlite3.connect(store.file) as connection:
        row = (data, seal(key.encode(), data))
        connection.execute("update answers set document = ?, sum = ?", row)
    tracemalloc.start()
    again = answer(READY, store)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not again.kept
    assert most < 4 * FILE_BYTES
    assert answer(READY, store).kept


@pytest.mark.parametrize("text", ["[" * 100_000, '{"schedule": ' + "9" * 5000 + "}", "null"])
def test_an_entry_that_is_nested_or_numbered_too_far_is_made_anew(
    text: str, store: AnswerStore
) -> None:
    answer(READY, store)
    data, key = zlib.compress(text.encode()), key_of(READY, {})
    with sqlite3.connect(store.file) as connection:
        row = (data, seal(key.encode(), data))
        connection.execute("update answers set document = ?, sum = ?", row)
    assert not answer(READY, store).kept


@pytest.mark.parametrize("column", ["document", "sum"])
def test_an_entry_of_other_types_is_made_anew(column: str, store: AnswerStore) -> None:
    answer(READY, store)
    with sqlite3.connect(store.file) as connection:
        connection.execute(f"update answers set {column} = 3.5")
    assert not answer(READY, store).kept
    assert answer(READY, store).kept


def test_a_cache_that_others_may_write_to_keeps_no_answers(
    store: AnswerStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "shared"))
    assert [answer(READY, store).kept for _ in range(2)] == [False, False]
    assert f"is of no use: {tmp_path}/shared may be written by others; run `chmod" in store.trouble


@pytest.mark.parametrize("content", [b"no database at all, only text" * 50, b"SQLite format 3\0"])
def test_a_file_that_is_no_store_stops_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite").write_bytes(content)
    store = AnswerStore(tmp_path / "answers.sqlite")
    found = answer(READY, store)
    assert found.result.ii == 15
    assert "answers.sqlite, is of no use: " in store.trouble
    assert (tmp_path / "answers.sqlite").read_bytes() == content


def test_a_folder_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = AnswerStore(tmp_path / "file" / "answers.sqlite")
    assert answer(READY, store).result.ii == 15
    assert "is of no use" in store.trouble


def test_a_store_that_is_full_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answers.sqlite"
    answer(READY, AnswerStore(file))
    monkeypatch.setattr(store_module, "STORE_BYTES", 8 * 4096)
    store = AnswerStore(file)
    for number in range(100):
        answer(READY, store, options={"seed": number + 1})
    assert "takes no more" in store.trouble
    assert answer(READY, store).kept


# Better and worse -------------------------------------------------------------------------


def test_answers_are_ranked_by_ii_then_proof_then_bound_then_objectives() -> None:
    found = stretto.schedule(READY)
    proved = (Objective("stages", 1, 1, True),)
    rising = [
        replace(found, success=False, ii=None),
        replace(found, ii=1, proof=None, spilled=9),
        replace(found, ii=2, proof=None, spilled=8),
        replace(found, ii=1500, proof=Proof(True, 1500, "solver", proved)),
        replace(found, ii=16, proof=None),
        replace(found, ii=16, proof=Proof(False, 9, "none")),
        replace(found, ii=16, proof=Proof(False, 15, "none")),
        replace(found, ii=16, proof=Proof(True, 16, "solver")),
        replace(found, ii=16, proof=Proof(True, 16, "solver", proved)),
        replace(found, ii=15, stage_count=3, proof=Proof(False, 14, "none")),
        replace(found, ii=15, stage_count=2, proof=Proof(False, 14, "none")),
    ]
    ranks = [rank(one) for one in rising]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_an_entry_only_ever_improves(store: AnswerStore) -> None:
    best = stretto.schedule(READY)
    unproved = replace(best, proof=Proof(False, 9, "none"))
    slower = stretto.schedule(READY, "blackwell", "serial")
    assert (best.ii or 0) < (slower.ii or 0)
    for found, effort, expected, longest in (
        (slower, 1.0, slower, 1.0),
        (unproved, 0.5, unproved, 1.0),
        (slower, 9.0, unproved, 9.0),
        (best, 2.0, best, 9.0),
        (unproved, inf, best, inf),
        (slower, inf, best, inf),
    ):
        store.put("key", found, effort)
        known = store.get("key", READY)
        assert known is not None
        assert (known.result.ii, known.result.proof) == (expected.ii, expected.proof)
        assert known.effort == longest


def cut_off_after(seconds: float, monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """Have every search that has less time than this cut off, with a proof of nothing."""
    asked: list[float | None] = []
    search = stretto.schedule

    def hurried(
        ready: Prepared, *, time_limit: float | None = None, **options: Any
    ) -> ScheduleResult:
        asked.append(time_limit)
        found = search(ready, **options)
        if time_limit is None or time_limit >= seconds:
            return found
        return replace(found, overdue=True, proof=Proof(False, 9, "none"))

    monkeypatch.setattr(store_module, "schedule", hurried)
    return asked


def test_what_was_cut_off_is_sought_again_by_whoever_gives_it_more_time(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = cut_off_after(5.0, monkeypatch)
    found = [answer(READY, store, time_limit=limit) for limit in (2.0, 1.0, 2.0, 4.0, 9.0, 1.0)]
    found.append(answer(READY, store))
    assert asked == [2.0, 4.0, 9.0]
    assert [one.kept for one in found] == [False, True, True, False, False, True, True]
    assert [one.result.overdue for one in found] == [True] * 4 + [False] * 3
    assert [one.result.proved for one in found] == [False] * 4 + [True] * 3


def test_a_search_that_comes_to_less_than_is_known_gives_what_is_known(
    store: AnswerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(READY, {})
    store.put(key, stretto.schedule(READY), 1.0)
    asked = cut_off_after(9.0, monkeypatch)
    found = answer(READY, store, time_limit=2.0)
    assert asked == [2.0]
    assert found.kept
    assert found.result.proved


# Elsewhere --------------------------------------------------------------------------------


def answered(task: tuple[AnswerStore, int]) -> bool:
    """What a process does that shares the store."""
    store, seed = task
    kept = answer(READY, store, options={"seed": seed}).kept
    assert not store.trouble, store.trouble
    return kept


def test_processes_share_a_store(store: AnswerStore) -> None:
    tasks = [(store, number % 8) for number in range(80)]
    found = list(run_tasks(answered, tasks, jobs=4))
    assert [done.error for done in found if done.error] == []
    assert len(entries(store)) == 8
    assert sum(not done.value for done in found) <= 4 * 8
    assert all(done.value for done in run_tasks(answered, tasks[:8], jobs=2))


def test_a_generator_of_others_is_asked_every_time(store: AnswerStore) -> None:
    def mine(task: stretto.GeneratorTask) -> stretto.Schedule | str:
        calls.append(task.loop.name)
        return stretto.Schedule(1000, {op.name: 50 * i for i, op in enumerate(task.loop.ops)})

    calls: list[str] = []
    stretto.register_generator("mine-in-store", mine)
    for _ in range(2):
        assert not answer(READY, store, options={"generator": "mine-in-store"}).kept
    assert calls == ["four_op", "four_op"]


def test_caches_are_where_the_user_has_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STRETTO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "stretto"
    assert AnswerStore().file == tmp_path / "stretto" / "answers-2.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "stretto"
    monkeypatch.setenv("STRETTO_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_another_stretto_has_another_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = caching.package_sum()
    assert here == caching.package_sum.__wrapped__()
    (tmp_path / "caching.py").write_text("# changed")
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "caching.py"))
    assert caching.package_sum.__wrapped__() != here
