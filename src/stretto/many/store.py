"""A store of answers: a loop that was solved once is not solved again.

    loop + machine + options + Stretto ──► key ──► answers-2.sqlite ──► verified again ──► answer
                                                        │ nothing, or not whole
                                                        └──► solved, and kept

An entry has the best that is known under its key, and how long it was sought. It only ever
improves: fewer spills, a smaller II, then a proof, a higher bound, more objectives proved. One that
was cut off by a time limit is an answer to whoever gives no more time, and is sought anew by
whoever does.

Many processes share one file (SQLite, a write-ahead log). A schedule that is taken out passes the
verifier first, as a new one does, and what is said of its II is held against bounds that are
computed anew. What no check can tell (that the solver refuted an II, that there is no schedule) is
believed only where the seal says that this user's Stretto found it. What is damaged, or larger than
any answer, is as if it were not there. A store that cannot be opened or written stops nothing: it
says why (`trouble`) and keeps nothing.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hmac import compare_digest
from inspect import signature
from math import inf
from pathlib import Path
from typing import Any, TypeVar

from stretto.api import fields_of, with_pins_of
from stretto.api.solving import ScheduleResult, schedule
from stretto.caching import UntrustedError, cache_folder, make_own, package_sum, seal
from stretto.document import Cursor, parse_json
from stretto.errors import StrettoError
from stretto.generate import GENERATORS
from stretto.kinds import require
from stretto.limits import ANSWER_BYTES, FILE_BYTES, ITERATION_CYCLES, STORE_BYTES
from stretto.loop import texts
from stretto.loop.json import loop_to_json
from stretto.lower_bounds import compute_bounds
from stretto.machine import Machine
from stretto.machine.digest import digest
from stretto.resources.prepare import Prepared
from stretto.solution import ScheduleAnalysis
from stretto.solution.json import analysis_to_json, read_schedule
from stretto.solve.job import lower_bound
from stretto.verification import verify

T = TypeVar("T")

FORMAT = 2
"""Of the file; another number is another file."""
PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""

MACHINES = 64

_TABLE = """create table if not exists answers (
    key text primary key, rank text not null, effort real not null,
    document blob not null, sum text not null
)"""

_GET = """select effort, case when length(document) <= :most then document end,
    case when length(sum) <= :most then sum end from answers where key = :key"""

_PUT = """insert into answers values (?, ?, ?, ?, ?) on conflict (key) do update set
    document = case when excluded.rank > rank then excluded.document else document end,
    sum = case when excluded.rank > rank then excluded.sum else sum end,
    rank = max(rank, excluded.rank),
    effort = max(effort, excluded.effort)"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A schedule of a loop, or that none was found."""

    result: ScheduleResult
    kept: bool
    """Whether it came out of the store."""


def answer(
    ready: Prepared,
    store: AnswerStore | None = None,
    *,
    time_limit: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> Answer:
    """The schedule of a loop: the one that is kept, else a new one, which is kept from then on.

    `options` are those of `stretto.schedule`; without a store it is nothing else.
    """
    asked = bound_options(options or {})
    ready = with_pins_of(ready, asked.pop("pins"))
    if store is None or asked["generator"] not in GENERATORS:
        # Who else makes schedules may be another tomorrow, and is no part of the key.
        return Answer(schedule(ready, time_limit=time_limit, **asked), kept=False)
    key = key_of(ready, asked)
    known = store.get(key, ready, asked)
    if known is not None and known.effort >= (inf if time_limit is None else time_limit):
        return _kept(known, asked, time_limit)
    found = schedule(ready, time_limit=time_limit, **asked)
    effort = time_limit if found.overdue and time_limit is not None else inf
    store.put(key, found, effort)
    if known is not None and rank(known.result) > rank(found):
        return _kept(known, asked, time_limit)
    return Answer(found, kept=False)


def _kept(known: Known, asked: Mapping[str, Any], time_limit: float | None) -> Answer:
    """What is known, as the answer to what is asked now."""
    options: dict[str, Any] = {**asked, "pins": [], "time_limit": time_limit}
    return Answer(replace(known.result, options=options), kept=True)


def key_of(ready: Prepared, options: Mapping[str, Any]) -> str:
    """What an answer depends on, as one number: the problem, the options, and Stretto itself."""
    given = bound_options(options)
    problem = json.dumps([loop_to_json(ready.loop), texts(ready.notes), given], ensure_ascii=False)
    found = hashlib.sha256(f"{FORMAT}\0{package_sum()}\0{_sum_of(ready.machine)}\0".encode())
    found.update(problem.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def bound_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """All options, those that were not given at their defaults; StrettoError for another."""
    known = _defaults()
    for name in options:
        if name not in known:
            raise StrettoError(f"no option `{name}`; known: {', '.join(known)}")
    require(schedule, (), options)
    merged = {**known, **options}
    return {**merged, "pins": list(merged["pins"]), "without": sorted(merged["without"])}


@cache
def _defaults() -> Mapping[str, Any]:
    """The options of `stretto.schedule` that an answer depends on."""
    parameters = signature(schedule).parameters
    left_out = ("loop", "machine", "time_limit", "progress")
    return {name: p.default for name, p in parameters.items() if name not in left_out}


_sums: dict[int, tuple[Machine, str]] = {}
"""Of the machines of late, by their identity: to compare them takes as long as to add them up."""


def _sum_of(machine: Machine) -> str:
    known = _sums.get(id(machine))
    if known is None:
        if len(_sums) >= MACHINES:
            _sums.clear()
        known = _sums[id(machine)] = machine, digest(machine)
    return known[1]


def rank(found: ScheduleAnalysis) -> str:
    """How good an answer is, as a text that sorts: later is better."""
    if not found.success or found.ii is None:
        return "0"
    proof = found.proof
    optimal, lower = (proof.optimal, proof.lower_bound) if proof is not None else (False, 0)
    proved = sum(row.optimal for row in proof.objectives) if proof is not None else 0
    most = ITERATION_CYCLES
    fits, ii, stages = (
        max(0, most - number) for number in (found.spilled, found.ii, found.stage_count)
    )
    return f"1 {fits:09} {ii:09} {optimal:d} {lower:09} {proved:03} {stages:09}"


# The file ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """An entry that was taken out."""

    result: ScheduleResult
    effort: float
    """Seconds after which the search for it was cut off; infinite: it was not."""


class AnswerStore:
    """The answers in a file; every thread and every process has its own connection."""

    def __init__(self, file: Path | None = None) -> None:
        self._given = file
        self._local = threading.local()
        self._off = self._full = False
        self.trouble = ""
        """Why nothing is kept any more; "": all is well."""

    def __reduce__(self) -> tuple[type[AnswerStore], tuple[Path | None]]:
        return AnswerStore, (self._given,)

    @property
    def file(self) -> Path:
        """Where it is: for a store that goes elsewhere, where caches are there."""
        return self._given or cache_folder() / f"answers-{FORMAT}.sqlite"

    def get(
        self, key: str, ready: Prepared, options: Mapping[str, Any] | None = None
    ) -> Known | None:
        """The entry of a key, if it is whole and ours, and its schedule is legal."""
        row: tuple[object, object, object] | None = self._try(
            lambda c: c.execute(_GET, {"key": key, "most": ANSWER_BYTES}).fetchone()
        )
        if row is None:
            return None
        effort, data, total = row
        result = self._try(lambda _: _read(key, data, total, ready, bound_options(options or {})))
        if result is None or not isinstance(effort, float):  # SQLite keeps what it is given
            self._try(lambda c: c.execute("delete from answers where key = ?", (key,)))
            return None
        return Known(result, effort)

    def put(self, key: str, found: ScheduleResult, effort: float = inf) -> None:
        """Keep an answer, where it is better than the one that is kept."""
        if self._full:
            return
        entry = analysis_to_json(found.analysis, found.problem.loop, found.problem.machine)
        document = {"overdue": found.overdue, "schedule": entry}
        data = zlib.compress(json.dumps(document).encode())
        if len(data) <= ANSWER_BYTES:
            row = (key, rank(found), effort, data)
            self._try(lambda c: c.execute(_PUT, (*row, seal(key.encode(), data))))

    def _try(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        if self._off:
            return None
        try:
            return work(self._connection())
        except (sqlite3.Error, OSError, UntrustedError) as error:
            self._full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            self._off = not self._full
            does = "takes no more" if self._full else "is of no use"
            hint = "; it may be removed" if isinstance(error, sqlite3.Error) else ""
            self.trouble = f"the store of answers, {self.file}, {does}: {error}{hint}"
            return None

    def _connection(self) -> sqlite3.Connection:
        known: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if known is not None:
            return known
        make_own(self.file.parent)
        connection = sqlite3.connect(self.file, timeout=PATIENCE, isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")
        (page,) = connection.execute("pragma page_size").fetchone()
        connection.execute(f"pragma max_page_count = {STORE_BYTES // page}")
        connection.execute(_TABLE)
        self._local.connection = connection
        return connection


def _read(
    key: str, data: object, total: object, ready: Prepared, options: Mapping[str, Any]
) -> ScheduleResult | None:
    """A kept answer; None where it is damaged or not ours, or a check refuses it."""
    if not isinstance(data, bytes) or not isinstance(total, str):
        return None
    if not compare_digest(total.encode(), seal(key.encode(), data).encode()):
        return None
    try:
        top = parse_json("answer", _unpacked(data).decode())
        found = read_schedule(top.get("schedule"), {ready.loop.name: ready.loop})
        overdue = top.opt("overdue", Cursor.boolean, False)
    except (StrettoError, TypeError, ValueError, zlib.error):
        return None
    if found.loop != ready.loop.name or found.machine != ready.machine.name:
        return None
    if found.success and verify(ready.loop, ready.machine, found, max_stages=options["max_stages"]):
        return None
    if not _credible(found, ready, options):
        return None
    return ScheduleResult(**fields_of(replace(found, overdue=overdue)), problem=ready)


def _unpacked(data: bytes) -> bytes:
    """What was packed; ValueError where that is more than any answer has."""
    unpacking = zlib.decompressobj()
    found = unpacking.decompress(data, FILE_BYTES)
    if not unpacking.eof:
        raise ValueError(f"is cut off, or has more than {FILE_BYTES:,} bytes")
    return found


def _credible(found: ScheduleAnalysis, ready: Prepared, options: Mapping[str, Any]) -> bool:
    """Whether what is said of the II agrees with the bounds of the loop, computed anew."""
    stages: int | None = options["max_stages"]
    bounds = compute_bounds(ready.loop, ready.machine, fuse=options["fuse"], max_stages=stages)
    if found.bounds is not None and found.bounds != bounds:
        return False
    proof, ii = found.proof, found.ii
    if proof is None:
        return True
    refuted, _ = lower_bound(bounds.mii, found.refused)
    if proof.optimal and (proof.lower_bound != ii or found.spilled):
        return False
    return proof.lower_bound <= (refuted if ii is None else min(ii, refuted))
