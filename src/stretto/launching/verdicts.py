"""What trials came to: in this process, and on disk for the next one.

    ~/.cache/stretto/verdicts/9f2c…/ban.json           the kernel is not run any more, and why
                                   /declined.json      there is no kernel of ours, and why
                                   /1b80….json         one kind of launch: whose kernel, its times

The folder is named by the key of the kernel. A verdict counts on the GPU, with the driver and with
the versions that it was reached with; on others the trial is held anew. A ban counts always.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from stretto.caching import (
    UntrustedError,
    cache_folder,
    make_own,
    read_own,
    tell,
    version_of,
    write_own,
)
from stretto.launching.trial import Runner

SCHEMA = "stretto.verdict/1"
FOLDER = "verdicts"
LIMIT = 1 << 20
"""Bytes of a file."""


@dataclass(slots=True)
class Verdict:
    """What became of one kind of launch, or of a kernel that is left alone."""

    kernel: str
    grid: tuple[int, ...] = ()
    numbers: tuple[object, ...] = ()
    runs: str = "theirs"
    """``ours``, ``theirs``, or ``trial`` while it is open."""
    why: str = ""
    """Why it was not tried, or how it was decided."""
    ours_us: float | None = None
    """Median of our kernel's times, in microseconds."""
    theirs_us: float | None = None
    key: str = field(default="", repr=False)
    counter: list[int] = field(default_factory=lambda: [0], repr=False)
    """Has how often our kernel was launched since it won."""

    @property
    def launches(self) -> int:
        """How often our kernel was launched since it won."""
        return self.counter[0]

    @property
    def gained(self) -> float | None:
        """How many times as fast the launch is as it was."""
        if self.runs != "ours" or not self.ours_us or not self.theirs_us:
            return None
        return self.theirs_us / self.ours_us

    @property
    def saved_us(self) -> float:
        """Microseconds that launches of ours took less than Triton's would have."""
        if self.gained is None or self.ours_us is None or self.theirs_us is None:
            return 0.0
        return self.launches * (self.theirs_us - self.ours_us)

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        found = {**asdict(self), "grid": list(self.grid), "launches": self.launches}
        del found["counter"]
        return {**found, "numbers": [repr(n) for n in self.numbers]}


_lock = Lock()
_known: list[Verdict] = []


LISTENERS: list[Callable[[Verdict], object]] = []
"""Are told of each verdict as it is reached."""


def note(verdict: Verdict) -> Verdict:
    """Have `verdicts` tell of it."""
    with _lock:
        _known.append(verdict)
    for listener in LISTENERS:
        listener(verdict)
    return verdict


def verdicts() -> tuple[Verdict, ...]:
    """All kinds of launches that this process has seen, in their order, and what runs them."""
    with _lock:
        return tuple(_known)


def forget() -> None:
    """Have `verdicts` begin anew."""
    with _lock:
        _known.clear()


# On disk ----------------------------------------------------------------------------------


@cache
def circumstances(gpu: str) -> str:
    """What a verdict depends on beside the kernel: the GPU, its driver, and versions."""
    try:
        driver = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").split("\n")[0]
    except OSError:
        driver = "unknown"
    versions = [f"{name} {version_of(name)}" for name in ("triton", "torch")]
    return "; ".join([gpu, driver, *versions, f"Python {platform.python_version()}"])


def _file(kind: object) -> str:
    return f"{sha256(repr(kind).encode()).hexdigest()[:32]}.json"


def remembered(key: str, kind: object, about: str) -> Mapping[str, Any] | None:
    """A verdict of an earlier process, where it still counts."""
    found = _read(key, _file(kind))
    if found is None or found.get("circumstances") != about or found.get("kind") != repr(kind):
        return None
    return found if found.get("runs") in {runner.value for runner in Runner} else None


def remember(key: str, kind: object, about: str, verdict: Verdict) -> None:
    """Keep a verdict for other processes; what cannot be kept is found again."""
    document = {"circumstances": about, "kind": repr(kind), **verdict.to_json()}
    _write(key, _file(kind), document)


def banned(key: str) -> str | None:
    """Why a kernel of ours is not run any more."""
    found = _read(key, "ban.json")
    return None if found is None else str(found.get("reason", "it failed"))


def ban(key: str, name: str, reason: str) -> None:
    """Have no process run a kernel of ours any more."""
    _write(key, "ban.json", {"kernel": name, "reason": reason})


def declined(key: str) -> str | None:
    """Why there is no kernel of ours, where that was found out earlier."""
    found = _read(key, "declined.json")
    return None if found is None else str(found.get("reason", "it was declined"))


def decline(key: str, name: str, reason: str) -> None:
    """Have no process look again for what cannot be made."""
    _write(key, "declined.json", {"kernel": name, "reason": reason})


def _write(key: str, file: str, document: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": SCHEMA, **document}, indent=2, default=repr) + "\n"
    with suppress(OSError):
        write_own(make_own(cache_folder(), FOLDER, key) / file, text.encode())


def _read(key: str, file: str) -> Mapping[str, Any] | None:
    try:
        found = json.loads(read_own(cache_folder(), FOLDER, key, file, limit=LIMIT))
    except UntrustedError as error:
        tell(error)
        return None
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:  # pyright: ignore[reportUnknownMemberType]
        return None
    return found  # pyright: ignore[reportUnknownVariableType]
