"""The text of a prediction."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from stretto.report import prediction


def test_an_iteration_below_the_ii_says_why_that_can_be() -> None:
    def told(cycles: float) -> str:
        loop = SimpleNamespace(
            name="loop", coded=False, cycles=cycles, bound="tensor core", spent={"compute": {}},
            stages=2, ii=512, units={}, kinds={}, agent="compute", trips=9,
        )  # fmt: skip
        text = prediction._loop_to_text(cast("Any", loop))  # pyright: ignore[reportPrivateUsage]
        return " ".join(" ".join(text).split())

    assert "less than the II" in told(500.0)
    assert "less than the II" not in told(512.0)
