"""From the text of a module to its operations as they stand, in Triton's forms or the generic one.

%3 = tt.addptr %1, %2 : !tt.ptr<f32>, i32                         RawOperation("tt.addptr", ...)
%3 = "tt.addptr"(%1, %2) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>    the same

Nothing is understood here: `translating.py` does that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from stretto.frontends.triton.attributes import AttributeReader
from stretto.frontends.triton.formats import FORMATS, REFUSED
from stretto.frontends.triton.scanning import LABEL, SYMBOL, VALUE, WORD
from stretto.kernel import Attribute, KernelError, Location, Pointer, Scalar, Tile, Type

_RESULT = re.compile(r"(%[\w$.-]+)(?::(\d+))?\s*(?:,|(=)(?!=))")
_CLAUSE = re.compile(r"(?:overflow|fastmath|roundingmode|exact|nneg)\b")
_ROUNDING = re.compile(r"(?:to_nearest_even|downward|upward|toward_zero|to_nearest_away)\b")
_NESTED = 40
"""How deep regions may nest."""
_RESULTS = 10_000


@dataclass(slots=True)
class RawOperation:
    """An operation by the names in its text."""

    name: str
    offset: int
    operands: list[str] = field(default_factory=list[str])
    results: list[str] = field(default_factory=list[str])
    types: list[Type] = field(default_factory=list[Type])
    """Of its results."""
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])
    segments: list[int] = field(default_factory=list[int])
    """How many operands each group of them has, where there are groups."""
    regions: list[list[RawBlock]] = field(default_factory=list["list[RawBlock]"])
    successors: list[tuple[str, list[str]]] = field(default_factory=list["tuple[str, list[str]]"])
    location: Location | None = None


@dataclass(slots=True)
class RawBlock:
    """A block: its label, its arguments and its operations."""

    label: str = ""
    arguments: list[tuple[str, Type, Location | None]] = field(
        default_factory=list["tuple[str, Type, Location | None]"]
    )
    promised: list[dict[str, Attribute]] = field(default_factory=list["dict[str, Attribute]"])
    """Attributes of each argument, of a function's first block."""
    operations: list[RawOperation] = field(default_factory=list[RawOperation])


class ModuleParser(AttributeReader):
    """Reads a module."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        self._nesting = 0

    def module(self) -> list[RawOperation]:
        """The operations at the top of the module."""
        found: list[RawOperation] = []
        while not self.done:
            if self._alias():
                continue
            if self.take("{-#"):
                end = self.text.find("#-}", self.at)
                self.at = len(self.text) if end < 0 else end + 3
                self._skip()
                continue
            operation = self.operation()
            if operation.name in ("module", "builtin.module"):
                for block in operation.regions[0] if operation.regions else []:
                    found += block.operations
            else:
                found.append(operation)
        return found

    def _alias(self) -> bool:
        """Past the definition of an alias."""
        if not (self.peek("#") or self.peek("!")):
            return False
        self.at += 1
        self.word("an alias's name")
        self.expect("=")
        if self.peek("loc("):
            self.location()
        else:
            self.attribute()
        return True

    # Operations ---------------------------------------------------------------------------

    def operation(self) -> RawOperation:
        """One operation, in either form."""
        results = self._results()
        offset = self.at
        if self.peek('"'):
            found = self._generic(offset)
        else:
            name = self.match(WORD)
            if name is None:
                raise self.wanted("an operation")
            found = self._custom(name[0], offset)
        found.results = results
        place = self.location()
        found.location = place
        return found

    def _results(self) -> list[str]:
        found: list[str] = []
        while self.peek("%"):
            result = self.match(_RESULT)
            if result is None:
                raise self.wanted("a result")
            count = int(result[2]) if result[2] is not None else None
            if count is None:
                found.append(result[1])
            elif count > _RESULTS:
                raise self.fail(f"{count:,} results")
            else:
                found += [f"{result[1]}#{i}" for i in range(count)]
            if result[3]:
                break
        return found

    def _generic(self, offset: int) -> RawOperation:
        made = RawOperation(self.string(), offset)
        made.operands = self._list("(", ")")
        if self.take("["):
            while not self.take("]"):
                made.successors.append(self._successor())
                if not self.take(","):
                    self.expect("]")
                    break
        if self.take("<{"):
            made.attributes |= self._entries()
            self.expect(">")
        if self.take("("):
            while not self.take(")"):
                made.regions.append(self.region())
                if not self.take(","):
                    self.expect(")")
                    break
        made.attributes |= self.attribute_dictionary()
        self.expect(":")
        self.types()
        self.expect("->")
        made.types = self.types()
        sizes = made.attributes.get("operandSegmentSizes")
        if isinstance(sizes, tuple):
            made.segments = [size for size in sizes if isinstance(size, int)]
        if made.successors:
            self._hand_on(made)
        return made

    def _hand_on(self, made: RawOperation) -> None:
        """The generic form has what a branch hands on among its operands."""
        condition, *sizes = made.segments or [0, len(made.operands)]
        if len(sizes) != len(made.successors) or condition + sum(sizes) != len(made.operands):
            raise self.fail(f"`{made.name}` hands on what no block takes", made.offset)
        at = condition
        for i, size in enumerate(sizes):
            made.successors[i] = (made.successors[i][0], made.operands[at : at + size])
            at += size
        made.operands = made.operands[:condition]

    def _custom(self, name: str, offset: int) -> RawOperation:
        made = RawOperation(name, offset)
        special = {
            "module": self._module,
            "builtin.module": self._module,
            "tt.func": self._function,
            "func.func": self._function,
            "scf.for": self._for,
            "scf.if": self._if,
            "scf.while": self._while,
            "scf.condition": self._condition,
            "cf.cond_br": self._conditional_branch,
            "cf.br": self._branch,
            "arith.constant": self._constant,
        }.get(name)
        if special is not None:
            special(made)
        elif name in FORMATS:
            for step in FORMATS[name].split():
                self._step(step, made)
        else:
            self._unknown(made)
        return made

    def _unknown(self, made: RawOperation) -> None:
        """An operation whose form is not known: its location, if its line has one, and no more."""
        line = self.rest_of_line(made.offset)
        at = line.rfind(" loc(")
        if at >= 0:
            self.at = made.offset + at + 1
            made.location = self.location()
        prefix = made.name.split(".")[0]
        if prefix in ("ttg", "ttng", "nvgpu", "triton_gpu", "triton_nvidia_gpu"):
            hint = "give the .ttir file that Triton wrote beside it"
            raise self.fail(f"`{made.name}` belongs to TTGIR", made.offset, hint)
        place = made.location or self.place(made.offset)
        raise unknown_operation(place, made.name)

    def _step(self, step: str, made: RawOperation) -> None:  # noqa: PLR0912 - one case a letter
        letter, _, word = step.partition(":") if step != ":" else (":", "", "")
        match letter:
            case "o":
                made.operands.append(self._value())
                made.segments.append(1)
            case "?":
                there = self.take(",")
                if there:
                    made.operands.append(self._value())
                made.segments.append(int(there))
            case "*":
                self._operands(made)
            case "*G":
                self._operands(made)
                if made.operands:
                    self.expect(":")
                    self._types_bare()
            case "[*]":
                listed = self._list("[", "]")
                made.operands += listed
                made.segments.append(len(listed))
            case "A":
                made.attributes |= self.attribute_dictionary()
            case "B":
                self._clauses()
            case "W":
                made.attributes[word] = self.word(word)
            case "S":
                made.attributes[word] = self.string()
            case "f":
                if self.take(word):
                    made.attributes[word] = True
            case "s":
                if self.take("scale"):
                    made.attributes[word] = self._value()
            case "L":
                self._pairs(made)
            case _:
                self._typed_step(letter, made)

    def _typed_step(self, letter: str, made: RawOperation) -> None:  # noqa: PLR0912 - likewise
        match letter:
            case "R":
                made.types = [self.type()]
            case "T":
                self._types_bare() if made.name.endswith(".return") else self.type()
            case "C":
                made.types = [_compared(self.type())]
            case "P":
                made.types = [self._pointee()]
            case "V":
                made.types = [self._types_bare()[-1]]
            case "M":
                self._types_bare()
            case "X":
                if self.take(":"):
                    self._operands(made)
                    self.expect(":")
                    self._types_bare()
            case "U":
                if self.take(":"):
                    self._types_bare()
                self.expect("->")
                made.types = self._types_bare()
            case "F":
                self.types()
                self.expect("->")
                made.types = self.types()
            case "by":
                self.expect("*")
            case "D" | "D!" | "Q":
                found = self._named_or_short("ptr" if letter == "Q" else "tensordesc")
                if letter == "D!":
                    made.types = [found]
            case _:
                self.expect(letter)

    def _named_or_short(self, kind: str) -> Type:
        return self.short_type(kind) if self.peek("<") else self.type()

    def _pointee(self) -> Type:
        at = self.at
        type = self.type()
        if isinstance(type, Pointer):
            return type.pointee
        if isinstance(type, Tile) and isinstance(type.element, Pointer):
            return Tile(type.shape, type.element.pointee)
        raise self.fail(f"expected a pointer or a tile of such, not {type}", at)

    def _types_bare(self) -> list[Type]:
        found = [self.type()]
        while self.take(","):
            found.append(self.type())
        return found

    def _operands(self, made: RawOperation) -> None:
        while self.peek("%"):
            made.operands.append(self._value())
            if not self.take(","):
                break

    def _clauses(self) -> None:
        while True:
            if self.match(_CLAUSE):
                if self.peek("<"):
                    self._balanced("<", ">")
            elif not self.match(_ROUNDING):
                return

    def _pairs(self, made: RawOperation) -> None:
        """`cacheModifier = ca evictionPolicy = evict_last`."""
        while found := WORD.match(self.text, self.at):
            self.at = found.end()
            self._skip()
            if self.take("="):
                value = self.match(WORD)
                made.attributes[found[0]] = value[0] if value else self.attribute()
            else:
                made.attributes[found[0]] = True
            self.take(",")

    def _value(self) -> str:
        found = self.match(VALUE)
        if found is None:
            raise self.wanted("a value")
        return found[0]

    def _list(self, left: str, right: str) -> list[str]:
        self.expect(left)
        found: list[str] = []
        while not self.take(right):
            found.append(self._value())
            if not self.take(","):
                self.expect(right)
                break
        return found

    # Control flow and constants -----------------------------------------------------------

    def _module(self, made: RawOperation) -> None:
        self.match(SYMBOL)
        if self.take_word("attributes"):
            made.attributes = self.attribute_dictionary()
        made.regions.append(self.region())

    def _function(self, made: RawOperation) -> None:
        for word in ("public", "private", "nested"):
            if self.take_word(word):
                made.attributes["sym_visibility"] = word
        symbol = self.match(SYMBOL)
        if symbol is None:
            raise self.wanted("the name of a function")
        made.attributes["sym_name"] = symbol[0][1:].strip('"')
        entry = RawBlock()
        self.expect("(")
        while not self.take(")"):
            name, type = self._value(), self._after_colon()
            entry.promised.append(self.attribute_dictionary())
            entry.arguments.append((name, type, self.location()))
            if not self.take(","):
                self.expect(")")
                break
        if self.take("->"):
            made.types = self.types()
        if self.take_word("attributes"):
            made.attributes |= self.attribute_dictionary()
        if self.peek("{"):
            made.regions.append(self.region(entry))

    def _after_colon(self) -> Type:
        self.expect(":")
        return self.type()

    def _for(self, made: RawOperation) -> None:
        self.take_word("unsigned")
        index = self._value()
        self.expect("=")
        made.operands.append(self._value())
        self.expect("to")
        made.operands.append(self._value())
        self.expect("step")
        made.operands.append(self._value())
        names, initial = self._initial("iter_args")
        made.operands += initial
        if self.take("->"):
            made.types = self.types()
        index_type: Type = Scalar("index")
        if self.take(":"):
            index_type = self.type()
        if len(names) != len(made.types):
            raise self.fail(f"{len(names)} carried values of {len(made.types)} types")
        carried = zip(names, made.types, strict=True)
        entry = RawBlock(arguments=[(index, index_type, None), *((n, t, None) for n, t in carried)])
        made.regions.append(self.region(entry))
        made.attributes |= self.attribute_dictionary()

    def _initial(self, word: str = "") -> tuple[list[str], list[str]]:
        names: list[str] = []
        values: list[str] = []
        if word and not self.take_word(word):
            return names, values
        self.expect("(")
        while not self.take(")"):
            names.append(self._value())
            self.expect("=")
            values.append(self._value())
            if not self.take(","):
                self.expect(")")
                break
        return names, values

    def _if(self, made: RawOperation) -> None:
        made.operands.append(self._value())
        if self.take("->"):
            made.types = self.types()
        made.regions.append(self.region())
        if self.take_word("else"):
            made.regions.append(self.region())
        made.attributes |= self.attribute_dictionary()

    def _while(self, made: RawOperation) -> None:
        names, made.operands = self._initial() if self.peek("(") else ([], [])
        self.expect(":")
        types = self.types()
        self.expect("->")
        made.types = self.types()
        if len(names) != len(types):
            raise self.fail(f"{len(names)} carried values of {len(types)} types")
        entry = RawBlock(arguments=[(n, t, None) for n, t in zip(names, types, strict=True)])
        made.regions.append(self.region(entry))
        self.expect("do")
        made.regions.append(self.region())
        if self.take_word("attributes"):
            made.attributes |= self.attribute_dictionary()

    def _condition(self, made: RawOperation) -> None:
        self.expect("(")
        made.operands.append(self._value())
        self.expect(")")
        made.attributes |= self.attribute_dictionary()
        if self.peek("%"):
            self._operands(made)
            self.expect(":")
            self._types_bare()

    def _conditional_branch(self, made: RawOperation) -> None:
        made.operands.append(self._value())
        if self.peek("weights"):
            self.word("weights")
            self._balanced("(", ")")
        self.expect(",")
        made.successors.append(self._successor())
        self.expect(",")
        made.successors.append(self._successor())
        made.attributes |= self.attribute_dictionary()

    def _branch(self, made: RawOperation) -> None:
        made.successors.append(self._successor())
        made.attributes |= self.attribute_dictionary()

    def _successor(self) -> tuple[str, list[str]]:
        label = self.match(LABEL)
        if label is None:
            raise self.wanted("a block")
        passed: list[str] = []
        if self.take("("):
            while self.peek("%"):
                passed.append(self._value())
                if not self.take(","):
                    break
            self.expect(":")
            self._types_bare()
            self.expect(")")
        return label[0], passed

    def _constant(self, made: RawOperation) -> None:
        made.attributes |= self.attribute_dictionary()
        start = self.at
        value = self.attribute()
        bare = isinstance(value, bool) and ":" not in self.text[start : self.at]
        made.types = [Scalar("i1") if bare else self._type_behind(start)]
        made.attributes["value"] = value

    def _type_behind(self, start: int) -> Type:
        """The type a constant's text ends with."""
        end = self.at
        colon = self.text.rfind(":", start, end)
        if colon < 0:
            return Scalar("i64")
        self.at = colon + 1
        self._skip()
        type = self.type()
        self.at = end
        return type

    # Regions ------------------------------------------------------------------------------

    def region(self, entry: RawBlock | None = None) -> list[RawBlock]:
        """`{ ... }`: blocks, of which the first may have its arguments from elsewhere."""
        self._nesting += 1
        if self._nesting > _NESTED:
            raise self.fail("regions are nested too deeply")
        self.expect("{")
        blocks = [entry or RawBlock()]
        while not self.take("}"):
            if self.done:
                raise self.wanted("`}`")
            if self.peek("^"):
                opened = self._block()
                if blocks[-1].operations or entry is not None or blocks[-1].label:
                    blocks.append(opened)
                else:
                    blocks[-1] = opened
            else:
                blocks[-1].operations.append(self.operation())
        self._nesting -= 1
        return blocks

    def _block(self) -> RawBlock:
        label = self.match(LABEL)
        if label is None:
            raise self.wanted("a block")
        made = RawBlock(label[0])
        if self.take("("):
            while not self.take(")"):
                name, type = self._value(), self._after_colon()
                made.arguments.append((name, type, self.location()))
                if not self.take(","):
                    self.expect(")")
                    break
        self.expect(":")
        return made


def _compared(type: Type) -> Type:
    return Tile(type.shape, Scalar("i1")) if isinstance(type, Tile) else Scalar("i1")


def unknown_operation(place: Location, name: str) -> KernelError:
    """That an operation is not one of those that are read, and what can be done."""
    if name in REFUSED:
        what, hint = REFUSED[name]
        return KernelError(place, f"`{name}`, {what}, cannot be lowered", hint)
    return KernelError(place, f"`{name}` is not an operation of a kernel that can be read")
