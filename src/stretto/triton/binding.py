"""Launches of our kernel of one kind: bound to addresses, checked, made quick.

Loaded + arguments ──► Bound ──► quick launch: any addresses, compared and handed on
                            └──► slowly: what is like no other, bound as it comes
"""

# Tensors are anybody's.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stretto.errors import StrettoError
from stretto.launching.comparing import check_alike
from stretto.launching.loading import Bound, Loaded
from stretto.launching.quick import Guard, quick_launch
from stretto.launching.verdicts import ban
from stretto.triton.launched import Launched

HOOKS = (None,) * 6
"""For what Triton hands a launcher between grid and arguments: stream, function, hooks."""
HEAD = 3 + len(HOOKS)
"""What stands before the arguments."""
ADDRESSES = 1024
"""Launches of a kind that are kept ready; beyond, all are forgotten and made anew as they come."""

Launch = Callable[..., object]
"""Takes what Triton hands a launcher."""


@dataclass(frozen=True)
class Binding:
    """Our kernel, and what stands beside it."""

    loaded: Loaded
    launched: Launched
    stock: Launch
    tell: Callable[[Exception], object]
    """Says why a launch is Triton's."""

    def bound(self, args: Sequence[Any]) -> Bound:
        """A launch that is ready; StrettoError where its tensors cannot be."""
        return self.loaded.bind(dict(zip(self.launched.names, args[HEAD:], strict=True)))

    def launch(self, args: tuple[Any, ...], bound: Bound, guard: Guard) -> Launch:
        """Launches of a kind, of which the first is bound."""
        given = dict(zip(self.launched.names, args[HEAD:], strict=True))
        slowly = self._slowly(args, bound, guard)
        return quick_launch(bound, args[:3], self.launched.names, given, slowly, guard)

    def _slowly(self, args: tuple[Any, ...], bound: Bound, guard: Guard) -> Launch:
        """The same for whatever is launched: what is bound to addresses is kept for the next."""
        places = tuple(HEAD + n for n in self.launched.tensors)
        stock, counter = self.stock, guard.counter
        ready: dict[object, Bound | None] = {_addresses(args, places): bound}

        def launch(*args: Any) -> object:
            where = _addresses(args, places)
            if where in ready:
                bound = ready[where]
            else:
                if len(ready) >= ADDRESSES:
                    ready.clear()
                bound = ready[where] = self._bound_or_not(args)
            if bound is None:
                return stock(*args)
            guard.last[0] = guard.owner
            counter[0] += 1
            try:
                return bound.launch(args[:3], args[3])
            except Exception as error:
                raise guard.failed(error, args[3]) from error

        return launch

    def _bound_or_not(self, args: tuple[Any, ...]) -> Bound | None:
        try:
            return self.bound(args)
        except Exception as error:  # tensors that overlap, or that no copy engine reaches
            self.tell(error)
            return None

    def check(self, args: tuple[Any, ...], key: str) -> None:
        """Run both kernels on copies; StrettoError, and a ban, where they differ."""
        head, values = args[:HEAD], args[HEAD:]

        def ours(copies: Sequence[Any]) -> None:
            self.bound((*head, *copies)).launch(args[:3], args[3])

        try:
            check_alike(
                self.launched.names, values, lambda copies: self.stock(*head, *copies), ours
            )
        except StrettoError as error:
            ban(key, self.launched.name, str(error))
            raise


def _addresses(args: Sequence[Any], places: Sequence[int]) -> object:
    """What a bound launch depends on, beside its kind."""
    found: list[Any] = []
    for n in places:
        value = args[n]
        base = value if hasattr(value, "data_ptr") else value.base
        found += (base.data_ptr(), base.shape)
    return tuple(found)
