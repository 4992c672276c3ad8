"""Who uses a value, and where: what the lowering has to know before it moves anything.

%acc ──► mulf ──► dot ──► yield      carried in place: its buffer is written over in every step
"""

from __future__ import annotations

from stretto.kernel.tree import Kernel, Operation, Region, Value

_THROUGH = frozenset(("tile.transpose", "tile.reshape", "tile.hint"))
"""Other names of a tile, wherever it is."""


class Uses:
    """Uses of all values of a kernel, by the order of the text."""

    def __init__(self, kernel: Kernel) -> None:
        self._at: dict[Operation, int] = {}
        self._users: dict[Value, list[Operation]] = {}
        self.maker: dict[Value, Operation] = {}
        for position, operation in enumerate(kernel.walk()):
            self._at[operation] = position
            for operand in operation.operands:
                self._users.setdefault(operand, []).append(operation)
            for result in operation.results:
                self.maker[result] = operation

    def of(self, value: Value) -> list[Operation]:
        """The operations that use a value, as the text has them."""
        return self._users.get(value, [])

    def after(self, value: Value, operation: Operation) -> bool:
        """Whether somebody uses a value behind an operation, or inside it."""
        here = self._at[operation]
        return any(self._at[user] > here for user in self.of(value))

    def multiplied_only(self, value: Value) -> bool:
        """Whether a tile goes into products and nowhere else."""
        return all(
            (user.name == "tile.dot" and value in user.operands[:2])
            or (user.name in _THROUGH and self.multiplied_only(user.result))
            for user in self.of(value)
        )

    def multiplied(self, value: Value) -> bool:
        """Whether a tile, by any name, goes into a product as a factor."""
        return any(
            (user.name == "tile.dot" and value in user.operands[:2])
            or (user.name in _THROUGH and self.multiplied(user.result))
            for user in self.of(value)
        )

    def summed(self, value: Value) -> int | None:
        """The dimension along which a product sums up a tile as it is; None: none does."""
        order = (0, 1)
        while len(users := self.of(value)) == 1 and users[0].name in _THROUGH:
            if users[0].name == "tile.transpose":
                order = tuple(order[n] for n in users[0].integers("order") if n < 2)
            elif users[0].name == "tile.reshape":
                return None
            value = users[0].result
        for user in users:
            if user.name == "tile.dot" and value in user.operands[:2] and len(order) == 2:
                return order[1] if user.operands[0] is value else order[0]
        return None

    def in_place(self, loop: Operation) -> frozenset[int]:
        """The carried values of a loop that a product sums up: which stay where they are."""
        (body,) = loop.regions
        return frozenset(i for i in range(len(loop.results)) if self._summed(body, i))

    def _summed(self, body: Region, position: int) -> bool:
        made = self.maker.get(body.terminator.operands[position])
        if made is None or made not in body.operations:
            return False
        argument = body.arguments[position + 1]
        handed_on = [v for v in body.terminator.operands if v in made.results]
        if made.name == "tile.dot":
            return len(handed_on) == 1 and self._derived(made.operands[2], argument, body)
        if made.name == "scf.for":
            inner = made.results.index(body.terminator.operands[position])
            begun = made.operands[3 + inner]
            return inner in self.in_place(made) and self._derived(begun, argument, body)
        return False

    def _derived(self, value: Value, argument: Value, body: Region) -> bool:
        """Whether a value is made from an argument, inside a body."""
        inside = set(body.operations)
        seen: set[Value] = set()
        queue = [value]
        while queue:
            at = queue.pop()
            if at is argument:
                return True
            made = self.maker.get(at)
            if at in seen or made is None or made not in inside:
                continue
            seen.add(at)
            queue += made.operands
        return False
