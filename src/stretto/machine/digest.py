"""A machine in a line: two that cost the same have the same digest.

h200.toml ──► Machine ──► sha256:5b1f...     the file's name and its comments do not count
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from stretto.machine.machine import Machine


def digest(machine: Machine) -> str:
    """Of everything that a machine states."""
    return "sha256:" + sha256(repr(replace(machine, file="", extends="")).encode()).hexdigest()
