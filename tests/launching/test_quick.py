"""A launch that is ready for any addresses: handed on, counted, or sent another way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stretto.launching.loading import Bound, Loaded, Tensor
from stretto.launching.quick import Guard, quick_launch


class Given:
    """A tensor as a launch has it."""

    nbytes = 64

    def __init__(self, address: int) -> None:
        self.address = address

    def data_ptr(self) -> int:
        return self.address

    def is_contiguous(self) -> bool:
        return True


def test_launches_are_counted_whichever_way_they_go() -> None:
    ran: list[str] = []
    counter = [0]

    def launcher(*args: object) -> None:
        ran.append(f"ours at {args[9]:#x}")

    def slowly(*_: object) -> None:
        ran.append("slowly")

    read, wrote = Tensor(0x1000, "f16", (32,), (1,)), Tensor(0x2000, "f16", (32,), (1,))
    kernel: Any = SimpleNamespace(function=1, packed_metadata=2, metadata=SimpleNamespace())
    kernel.run = launcher
    loaded = Loaded(None, lambda *_: (), ("a", "b"), {"num_warps": 4}, frozenset("b"))
    bound = Bound(loaded, (read, wrote), {"a": read, "b": wrote}, kernel)
    given = {"a": Given(0x1000), "b": Given(0x2000)}
    guard = Guard([None], "owner", counter, lambda error, _: error)
    launch = quick_launch(bound, (1, 1, 1), ("a", "b"), given, slowly, guard)
    head = (1, 1, 1, 0, None, None, None, None, None)
    launch(*head, Given(0x3000), Given(0x4000))
    launch(*head, Given(0x5000), Given(0x6000))
    assert ran == ["ours at 0x3000", "ours at 0x5000"]
    assert counter == [2]
    assert guard.last == ["owner"]
    launch(*head, Given(0x5000), Given(0x5020))  # what is written overlaps what is read
    launch(*head, Given(0x5008), Given(0x6000))  # an address that no copy engine reaches
    assert ran[2:] == ["slowly", "slowly"]
    assert counter == [2]  # the slower way counts for itself
