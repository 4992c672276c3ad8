"""Soft constraints in a kernel: each of the two families moves FlashAttention's loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import stretto
from stretto.solve.wishes import wishes_of

ATTENTION = Path(__file__).parents[2] / "examples" / "attention_forward.mlir"


@pytest.mark.parametrize(
    ("wish", "first", "second"),
    [("same_depth", "load_k", "load_v"), ("structural", "load_v", "qk")],
)
def test_wishes_decide_in_attention(wish: str, first: str, second: str) -> None:
    """Both tiles of a step in one stage; both loaded before the first product: at the same II."""
    (loop,) = stretto.read(str(ATTENTION))
    plain = stretto.schedule(loop)
    wished = replace(
        loop,
        ops=tuple(
            replace(op, constraint=replace(op.constraint, **{wish: 1}))
            if op.name in (first, second)
            else op
            for op in loop.ops
        ),
    )
    if wish == "structural":  # of the operations of a number, in program order
        assert loop.index[first] < loop.index[second]
    (asked,) = wishes_of(wished)
    assert asked.broken(plain).startswith(f"`{wish}` 1 is not kept to")
    found = stretto.schedule(wished)
    assert asked.broken(found) == ""
    assert found.warnings == plain.warnings
    assert found.ii == plain.ii
