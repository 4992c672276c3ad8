"""Is what was read what NVIDIA's own disassembler reads?

    %7 = mini %6, %cst_8_i32 signed : tile<i32>      `mini` of the values that %6 and %cst_8_i32
                                                     stand for, signed, a tile<i32>

The text and the tree are walked together: names of results are bound to our values as they come,
and operands must be those that the text names. Types, attributes and locations are looked for in
what is left of the line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stretto.frontends.tileir import Block, Function, Operation, Value
from stretto.frontends.tileir.attributes import Attribute, Bounded, Dense, DivBy, Scalar

NAME = r"%[\w.$-]+"
USE = re.compile(rf"({NAME})(#\d+)?")
BOUND = re.compile(rf"({NAME})(?= = |: | in \()")
UNSAID = {
    "rounding_mode": {"nearest_even", "full", "nearest_int_to_zero"},
    "rounding": {"zero"},
    "overflow": {"none"},
}
"""What an attribute is if the text does not tell it."""
SAID = re.compile(
    r"\b(nearest_even|zero|negative_inf|positive_inf|approx|full|nearest_int_to_zero|nearest_away"
    r"|no_signed_wrap|no_unsigned_wrap|no_wrap|weak|relaxed|acquire|release|acq_rel|tl_blk|device"
    r"|sys|signed|unsigned|equal|not_equal|less_than|less_than_or_equal|greater_than"
    r"|greater_than_or_equal|unordered|ordered|and|or|xor|add|addf|max|min|umax|umin|xchg"
    r"|flush_to_zero|propagate_nan|fast_acc|saturating)\b"
)
WORDS = {
    "rounding_mode", "rounding", "overflow", "memory_ordering_semantics", "memory_scope", "mode",
    "signedness", "signedness_lhs", "signedness_rhs", "comparison_predicate", "comparison_ordering",
}  # fmt: skip
FLAGS = {"flush_to_zero", "propagate_nan", "fast_acc", "saturating"}


@dataclass
class Comparison:
    """A text and a function, side by side."""

    lines: list[str]
    places: dict[str, tuple[tuple[str, int, int], ...]]
    """Of each `#loc`, innermost first; empty if the text has none."""
    bound: dict[str, Value] = field(default_factory=dict[str, Value])
    found: list[str] = field(default_factory=list[str])
    at: int = 0
    operations: int = 0

    def next(self) -> str:
        self.at += 1
        return self.lines[self.at - 1]

    def say(self, operation: Operation, message: str) -> None:
        self.found.append(f"line {self.at}: {operation.name} at {operation.offset}: {message}")

    def block(self, block: Block) -> None:
        for operation in block.operations:
            self.operation(operation)

    def operation(self, operation: Operation) -> None:
        self.operations += 1
        line = self.next()
        if line.strip().startswith("}") and not operation.operands.get("operands", (1,)):
            self.at -= 1  # a block that hands nothing on ends without a word
            return
        while operation.blocks and not line.rstrip().endswith("{"):
            line += self.next()
        made, has, rest = line.strip().partition(" = ")
        if not has or not re.fullmatch(rf"{NAME}(:\d+)?(, {NAME})*", made):
            made, rest = "", line.strip()
        names = _results(made)
        name, _, rest = rest.partition(" ")
        if name == "print_tko" and not operation.results:
            names = []  # 13.1 writes no token, and the disassembler adds one
        if name != operation.name or len(names) != len(operation.results):
            self.say(operation, f"not `{line.strip()}`")
            return
        place = self._nested(operation, rest)
        self.bound.update(zip(names, operation.results, strict=True))
        if self.places and place not in self.places:
            self.say(operation, f"no place {place}")
        elif self.places and self.places[place] != _frames(operation):
            self.say(operation, f"at {operation.location}, not {self.places[place]}")

    def _nested(self, operation: Operation, rest: str) -> str:
        """Operands, types and attributes, then the blocks; where the text says it stands."""
        arguments: list[str] = BOUND.findall(rest) if operation.blocks else []
        unquoted = re.sub(r'"[^"]*"', "", rest)
        uses = [name + index for name, index in USE.findall(unquoted) if name not in arguments]
        wanted = [self.bound.get(name) for name in uses]
        if wanted != list(operation.values):
            self.say(operation, f"operands {operation.values}, not {uses}")
        self._types(operation, rest)
        for said in _unlike(operation, rest):
            self.say(operation, f"{said} in `{rest}`")
        last = rest
        for number, block in enumerate(operation.blocks):
            named = arguments
            if number == 0 and len(named) != len(block.arguments):
                self.say(operation, f"arguments {block.arguments}, not {named}")
            self.bound.update(zip(named, block.arguments, strict=False))
            self.block(block)
            last = self.next()
        found = re.search(r"loc\((#loc\d*)\)", last)
        return found[1] if found else ""

    def _types(self, operation: Operation, rest: str) -> None:
        for value in operation.results:
            if str(value.type) not in rest:
                self.say(operation, f"no {value.type} in `{rest}`")


def _results(made: str) -> list[str]:
    if not made:
        return []
    name, _, number = made.partition(":")
    if number:
        return [f"{name}#{k}" for k in range(int(number))]
    return made.split(", ")


def _frames(operation: Operation) -> tuple[tuple[str, int, int], ...]:
    return tuple((frame.file, frame.line, frame.column) for frame in operation.location)


def _unlike(operation: Operation, rest: str) -> Iterator[str]:
    """Attributes that the text does not have, and those that only the text has."""
    before = rest.split(" : ", maxsplit=1)[0]
    before = re.sub(r'"[^"]*"|' + NAME, "", before)
    words: list[str] = []
    for key, value in operation.attributes.items():
        if key in WORDS:
            assert isinstance(value, str)
            if value not in UNSAID.get(key, ()):
                words.append(value)
        elif key in FLAGS:
            words += [key] if value else []
        else:
            yield from _numbers(key, value, rest)
            yield from (f"{key} is {said}" for said in _pieces(key, value) if said not in rest)
    if sorted(SAID.findall(before)) != sorted(words):
        yield f"{words} are not the words"


def _pieces(key: str, value: Attribute) -> Iterator[str]:
    """What the text must have of an attribute."""
    match value:
        case DivBy():
            yield f"div_by<{value.divisor}" + ("" if value.every is not None else ">")
        case Bounded():
            low, high = ("?" if n is None else str(n) for n in (value.low, value.high))
            yield f"bounded<{low}, {high}>"
        case Mapping():
            for name, item in value.items():
                yield f"{name} = "
                yield from _pieces(name, item)
        case Scalar():
            yield str(value.value)
        case tuple() if key == "permutation":
            yield f"[{', '.join(map(str, value))}]"
        case bool():
            yield key if value and key == "reverse" else ""
        case int() if key == "dim":
            yield str(value)
        case str():
            yield value
        case _:
            pass


def _numbers(key: str, value: Attribute, rest: str) -> Iterator[str]:
    """Numbers that the text has otherwise."""
    if isinstance(value, Dense) and value.is_splat:
        said = re.findall(rf"<{value.type.element}: ([^\[>]*)>", rest)
        made = [(int.from_bytes(value.data, "little"), next(value.values()))]
    elif key == "identities" and isinstance(value, tuple):
        listed = re.search(r"identities=\[(.*?)\]", rest)
        said = [item.split(" : ")[0] for item in listed[1].split(", ")] if listed else []
        made = [(item.bits, item.value) for item in value if isinstance(item, Scalar)]
    else:
        return
    alike = len(said) == len(made) and all(map(_alike, said, made))
    if not alike:
        yield f"{made}, not {said},"


def _alike(said: str, made: tuple[int, int | float | bool]) -> bool:
    """MLIR prints as many digits as name the number, or its bits."""
    bits, value = made
    if said.startswith("0x"):
        return int(said, 16) == bits
    if said in ("true", "false"):
        return value is (said == "true")
    return abs(float(said) - value) <= 1e-6 * abs(value)


def compare(function: Function, text: str) -> Comparison:
    """The differences between a function and what a disassembler prints of it."""
    lines = [line for line in text.splitlines() if line.strip()]
    entry = next(k for k, line in enumerate(lines) if line.startswith("entry @"))
    walk = Comparison(lines, _places(lines), at=entry + 1)
    named = re.match(r"entry @([\w.$-]+)\(", lines[entry])
    if named is None or named[1] != function.name:
        walk.found.append(f"{function.name} is not `{lines[entry]}`")
    parameters = re.findall(rf"({NAME}): ([^%]*?)(?=, %|\)|, ?$| loc)", lines[entry])
    for value, (name, said) in zip(function.body.arguments, parameters, strict=True):
        if said.strip(" ,") != str(value.type):
            walk.found.append(f"{name} is {value.type}, not {said}")
        walk.bound[name] = value
    walk.block(function.body)
    return walk


def _places(lines: list[str]) -> dict[str, tuple[tuple[str, int, int], ...]]:
    """What each `#loc` stands for."""
    said = dict(line.split(" = ", 1) for line in lines if line.startswith("#loc"))

    def frames(name: str) -> tuple[tuple[str, int, int], ...]:
        text = said[name]
        if found := re.match(r'loc\("(.*)":(\d+):(\d+)\)', text):
            return ((found[1], int(found[2]), int(found[3])),)
        if found := re.match(r"#cuda_tile.di_loc<(#loc\d*) in ", text):
            return frames(found[1])
        if found := re.match(r"loc\(callsite\((#loc\d*) at (#loc\d*)\)\)", text):
            return frames(found[1]) + frames(found[2])
        return ()

    return {name: frames(name) for name in said}
