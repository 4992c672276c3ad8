"""Kernels that fail on the GPU, some time after their launch: told as the user's, and banned.

    launch, launch, launch ── sync: CUDA_ERROR_ILLEGAL_ADDRESS ──► whose was the last of ours?
                                                   └──► banned on disk, and named at the launch

The error may come to the user by a call that is not ours: it is looked for as the process ends.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stretto.launching.events import DeviceError
from stretto.launching.timing import Sample
from stretto.launching.trial import Runner
from stretto.launching.verdicts import ban

if TYPE_CHECKING:
    from stretto.triton.dispatch import Dispatch

LAST: list[Dispatch | None] = [None]
"""Whose kernel of ours was launched last, with no event to tell what became of it."""


class KernelFailedError(RuntimeError):
    """A kernel failed on the GPU, some time after its launch."""


def failed(error: DeviceError, mine: Dispatch, pending: Iterable[Sample]) -> KernelFailedError:
    """What the user is told; kernels of ours that may have failed are banned."""
    places = [sample.place for sample in pending if sample.runner is Runner.OURS]
    suspects = [mine] if places else [one for one in LAST if one is not None]
    told = f"{error}: a kernel failed on the GPU and nothing runs there in this process any more"
    if not suspects:
        return KernelFailedError(f"{told}; none of Stretto's was running")
    names = _banned(suspects, error)
    where = f", launched at {places[0]}" if places else ""
    return KernelFailedError(
        f"{told}; it may be Stretto's kernel of {names}{where}, which is not used again"
    )


def _banned(suspects: Sequence[Dispatch], error: DeviceError) -> str:
    for one in suspects:
        ban(one.key, one.name, f"it failed on the GPU: {error}")
    LAST[0] = None
    return " or ".join(f"`{one.name}`" for one in suspects)


def watch_end() -> None:
    """Look for a failure as the process ends, which another library may have been told of."""
    atexit.unregister(looked_for)
    atexit.register(looked_for)


def looked_for() -> None:
    """Ban a kernel of ours after which nothing ran on the GPU any more, and say so."""
    one = LAST[0]
    error = None if one is None or one.events is None else one.events.failure(0)
    if one is not None and error is not None:
        names = _banned([one], error)
        sys.stderr.write(
            f"stretto: {error}: it may be Stretto's kernel of {names}, which is not used again\n"
        )
