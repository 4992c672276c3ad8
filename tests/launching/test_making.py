"""Values made quickly are frozen dataclasses like all others."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from stretto.loop import Dependence
from stretto.loop.parts import quickly


@dataclass(frozen=True, slots=True)
class Plain:
    """As dataclasses make it."""

    src: str
    latency: int
    via: str = "nothing"


@quickly
@dataclass(frozen=True, slots=True)
class Quick:
    """The same, made quickly."""

    src: str
    latency: int
    via: str = "nothing"


def test_fields_are_given_as_to_any_dataclass() -> None:
    made = Quick("a", latency=3)
    assert (made.src, made.latency, made.via) == ("a", 3, "nothing")
    assert repr(made) == "Quick(src='a', latency=3, via='nothing')"
    assert replace(made, via="x") == Quick("a", 3, "x") != made
    assert hash(made) == hash(Quick("a", 3))
    with pytest.raises(TypeError, match="latency"):
        Quick("a")  # pyright: ignore[reportCallIssue]


def test_signatures_are_those_of_dataclasses() -> None:
    mine, plain = (list(inspect.signature(kind).parameters) for kind in (Quick, Plain))
    assert mine == plain
    assert inspect.get_annotations(Quick.__init__) == inspect.get_annotations(Plain.__init__)


def test_values_made_quickly_are_frozen_and_survive_pickling() -> None:
    made = Dependence("a", "b", 8)
    with pytest.raises(FrozenInstanceError):
        made.latency = 9  # pyright: ignore[reportAttributeAccessIssue]
    assert pickle.loads(pickle.dumps(made)) == made
