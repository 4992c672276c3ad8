"""The GPU at hand, as Triton tells of it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any


def current_device() -> tuple[int, tuple[str, int]]:
    """The number of the GPU at hand, and what Triton calls its kind."""
    active = _driver().active
    device: int = active.get_current_device()
    target = _TARGETS.get(device)
    if target is None:
        found = active.get_current_target()
        target = _TARGETS[device] = (found.backend, found.arch)
    return device, target


@cache
def _driver() -> Any:
    return import_module("triton.runtime").driver


_TARGETS: dict[int, tuple[str, int]] = {}
