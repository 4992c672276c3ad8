"""From the content of a kernel to its source on disk, where it does not lie there already.

Request ──► in the store? ──► Entry
               │ no
               └──► read, scheduled, emitted; spills held against the framework's own ──► Entry
                                                                                  or Declined
serve()     the same in a process of its own, one request after the other
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stretto.errors import StrettoError
from stretto.launching.asked import Asked
from stretto.launching.storing import Entry, Store
from stretto.machine import Machine

if TYPE_CHECKING:  # what a launch of a kernel that is known already need not load
    from stretto.compile.emitted import EmittedKernel
    from stretto.kernel import Kernel

OVERLAPPED = ("scf.for", "scf.while", "tile.dot")
NOTHING = "nothing of it can overlap: its framework's own kernel is as good"
"""Why a kernel is left alone that has neither a loop nor a product, or none that gains by us."""


_EMITTED: dict[str, EmittedKernel] = {}
"""What this process has emitted, the last few by their keys: other launches of it are judged by."""
KEPT = 16


def make(
    name: str,
    key: str,
    read: Callable[[], Kernel],
    asked: Asked,
    store: Store | None = None,
    *,
    grid: tuple[int, ...] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Entry:
    """The entry of a key: found, or scheduled and emitted; StrettoError where it cannot be.

    `grid` and `given` are of the launch that asks first: blocks share an SM if it gains by that.
    """
    # What a launch of a kernel that is known already need not load.
    from stretto.api.emitting import emit  # noqa: PLC0415
    from stretto.kernel.lowering.conflicts import written  # noqa: PLC0415
    from stretto.launching.compiling import can_compile, compile_emitted  # noqa: PLC0415
    from stretto.launching.gate import numbers_of  # noqa: PLC0415
    from stretto.launching.reporting import described  # noqa: PLC0415

    keep = store or Store()
    entry = keep.get(key, name)
    if entry is None:
        machine = asked.machine
        assert isinstance(machine, Machine), "Asked.on gives it"
        kernel = read()
        if not any(op.name in OVERLAPPED for op in kernel.walk()):
            raise StrettoError(NOTHING)
        made = emit(
            kernel,
            machine,
            mode=asked.mode,
            consumers=asked.consumers,
            depth=asked.depth,
            blocks=asked.blocks,
            assemble=compile_emitted if can_compile() else None,
            grid=None if given is None else grid,
            arguments=numbers_of(kernel, given or {}),
        )
        if not made.overlap:
            raise StrettoError(NOTHING)
        if len(_EMITTED) >= KEPT:
            _EMITTED.pop(next(iter(_EMITTED)))
        _EMITTED[key] = made
        entry = keep.put(key, name, made.source, *described(name, made, machine, written(kernel)))
    return entry


# In another process -----------------------------------------------------------------------


@dataclass(frozen=True)
class Compilation:
    """A kernel as its framework compiled it."""

    ptx: str
    cubin: bytes
    warps: int
    stages: int
    smem: int


@dataclass(frozen=True)
class Request:
    """A kernel that is to be made."""

    name: str
    key: str
    read: Callable[[], Kernel]
    """How it is read; something that can be pickled."""
    asked: Asked
    target: str
    """Of Triton's, such as ``cuda:90``."""
    stock: Compilation | None = field(default=None, repr=False)
    """The framework's own kernel, where there is one to hold ours against."""
    given: Mapping[str, Any] | None = None
    """The arguments of the launch, without memory: what Triton then compiles for is compiled."""
    grid: tuple[int, ...] = (1, 1, 1)
    sketch: bool = False
    """Whether only a prediction is wanted, and soon."""


@dataclass(frozen=True)
class Sketch:
    """What is predicted of a kernel with little effort."""

    seconds: float


@dataclass(frozen=True)
class Made:
    """A kernel of ours, and what is thought of the launch that asked for it."""

    entry: Entry
    slower: str = ""
    """Why this launch is not tried."""


@dataclass(frozen=True)
class Declined:
    """Why there is no kernel of ours."""

    reason: str
    lasting: bool = True
    """Whether another try would end alike."""


def answer(request: Request) -> Made | Declined | Sketch:
    """The entry of a request, or why there is none; never an exception."""
    try:
        return _sketched(request) if request.sketch else _answer(request)
    except Exception as error:  # whatever it is, the user's kernel runs
        said = " ".join(str(error).split()) or "no message"
        # Errors of our own are sentences; others need their kind to be understood.
        ours = isinstance(error, StrettoError)
        return Declined(said if ours else f"{type(error).__name__}: {said}", ours)


def _sketched(request: Request) -> Sketch:
    from stretto.api.predicting import rank  # noqa: PLC0415 - for a process of its own
    from stretto.launching.gate import numbers_of  # noqa: PLC0415

    asked, kernel = request.asked, request.read()
    found = rank(
        [(kernel, request.grid)],
        asked.machine,
        arguments=numbers_of(kernel, request.given or {}),
        mode=asked.mode,
        consumers=None if asked.consumers is None else (asked.consumers,),
        depths=(asked.depth,),
        keep=1,
    )
    return Sketch(found.best.prediction.seconds)


def _answer(request: Request) -> Made | Declined:
    from stretto.launching.compiling import can_compile, stock_of  # noqa: PLC0415

    entry = make(
        request.name, request.key, request.read, request.asked,
        grid=request.grid, given=request.given,
    )  # fmt: skip
    spilled, made = entry.document.get("spilled", 0), _EMITTED.get(request.key)
    judged = made is not None and request.given is not None and not spilled
    if request.stock is None or not (spilled or judged) or not can_compile():
        return Made(entry)
    theirs = request.stock
    stock = stock_of(theirs.ptx, theirs.cubin, theirs.warps, theirs.stages, theirs.smem)
    if spilled > stock.spilled:
        told = f"it spills {spilled:,} bytes of registers at least"
        return Declined(f"{told}, Triton's own kernel {stock.spilled:,}")
    if made is None or request.given is None:
        return Made(entry)
    from stretto.launching.gate import why_slower  # noqa: PLC0415

    machine = request.asked.machine
    assert isinstance(machine, Machine), "Asked.on gives it"
    return Made(entry, why_slower(made, stock, machine, request.grid, request.given))


def serve() -> None:
    """Answer requests from stdin on stdout, until it is closed: a maker's whole life."""
    from stretto.launching.ahead import compile_ahead  # noqa: PLC0415 - for a process of its own

    _limit()
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    requests: list[Any] = []
    there = threading.Semaphore(0)

    def read() -> None:
        try:
            while True:
                requests.append(pickle.load(asked))
                there.release()
        except Exception:  # the process that asks has ended
            os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        there.acquire()
        request: Request = requests.pop(0)
        found = answer(request)
        if isinstance(found, Made) and request.given is not None and not found.slower:
            with suppress(Exception):  # the launch then compiles, or says why it cannot
                compile_ahead(found.entry, request)
        pickle.dump(found, told)
        told.flush()


def _limit() -> None:
    """Take little of the machine: behind others, and not all of its memory."""
    with suppress(AttributeError, OSError):
        os.nice(10)
    if sys.platform == "win32":
        return
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not everywhere

        room = int(float(os.environ.get("STRETTO_MAKER_MEMORY", "16")) * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
