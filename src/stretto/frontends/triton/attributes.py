"""Types, attributes and locations of Triton's MLIR text.

tensor<128x!tt.ptr<f16>>           Tile((128,), Pointer(Scalar("f16")))
dense<0xFF800000>                  a float by its bits: minus infinity
loc(callsite(#loc3 at #loc7))      a place, and who called; aliases may stand below their use
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

from stretto.frontends.triton.scanning import STRING, SYMBOL, Scanner
from stretto.kernel import Attribute, Location, Pointer, Scalar, Tile, Token, Type, View

_NUMBER = re.compile(
    r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)?)|(?:true|false)\b"
)
_DIMENSION = re.compile(r"(\d+)x")
_ALIAS = re.compile(r"#[A-Za-z_][\w$]*")
_LOCATION_ALIAS = re.compile(r"^(#loc\d*)\s*=\s*loc\(", re.MULTILINE)
_PLACE = re.compile(r":(\d+)(?::(\d+))?(?:\s+to\s+(?::(\d+)|:?(\d+):(\d+)))?")
_ANY_ALIAS = re.compile(r"^([#!][A-Za-z_][\w$]*)\s*=\s*", re.MULTILINE)
_SCALAR = re.compile(r"(?:[su]?i\d+|bf16|tf32|f\d+(?:E\d+M\d+\w*)?|index)\b")
_DEEP = 60
"""How deep types, attributes and locations may nest."""
UNKNOWN = "unknown"
_LIBRARY = ("triton/language/", "triton/experimental/")
"""Where Triton's own functions stand; a place there says little to the one who calls them."""
_FLOATS = {"f64": ("<d", "<Q"), "f32": ("<f", "<I"), "f16": ("<e", "<H")}
_EXPONENT_BITS = {"f8E4M3FN": 4, "f8E5M2": 5, "f8E4M3FNUZ": 4, "f8E5M2FNUZ": 5, "f8E4M3B11FNUZ": 4}


def float_of_bits(bits: int, element: str) -> float | None:
    """The floating-point number of some bits; None where the element is none we know."""
    if element == "bf16":
        return float_of_bits((bits & 0xFFFF) << 16, "f32")
    if element in _FLOATS:
        floating, whole = _FLOATS[element]
        size = struct.calcsize(whole)
        return struct.unpack(floating, struct.pack(whole, bits & ((1 << 8 * size) - 1)))[0]
    if element in ("f8E4M3FN", "f8E5M2"):
        return _small_float(bits, _EXPONENT_BITS[element], element)
    return None


def _small_float(bits: int, exponent_bits: int, element: str) -> float:
    mantissa_bits = 7 - exponent_bits
    sign = -1.0 if bits & 0x80 else 1.0
    exponent = (bits & 0x7F) >> mantissa_bits
    mantissa = bits & ((1 << mantissa_bits) - 1)
    top = (1 << exponent_bits) - 1
    if element == "f8E5M2" and exponent == top:
        return float("nan") if mantissa else sign * float("inf")
    if element == "f8E4M3FN" and bits & 0x7F == 0x7F:
        return float("nan")
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == 0:
        return sign * float(mantissa) * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


class AttributeReader(Scanner):
    """Reads types, attributes and locations."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        self._aliases = {m[1]: m.end() for m in _ANY_ALIAS.finditer(text)}
        self._location_aliases = {m[1]: m.end() for m in _LOCATION_ALIAS.finditer(text)}
        self._locations: dict[str, Location] = {}
        self._resolving: list[str] = []
        self._depth = 0

    # Types --------------------------------------------------------------------------------

    def type(self) -> Type:
        """A type."""
        self._deeper()
        try:
            if self.take_word("tensor"):
                self.expect("<")
                found = self._tile()
                self.expect(">")
                return found
            if self.take("!tt.ptr"):
                return self.short_type("ptr")
            if self.take("!tt.tensordesc"):
                return self.short_type("tensordesc")
            if self.take("!ttg.async.token") or self.take("!tt.token") or self.take("none"):
                return Token()
            if self.peek("!"):
                raise self._alias_or_foreign()
            return self._scalar()
        finally:
            self._depth -= 1

    def _alias_or_foreign(self) -> Exception:
        name = self.text[self.at : self.at + 40].split("<")[0].split()[0].strip(",:)")
        if name.startswith(("!ttg", "!ttng")):
            return self.fail(f"type `{name}` belongs to TTGIR", hint=_GIVE_TTIR)
        return self.fail(f"type `{name}` is not known")

    def short_type(self, kind: str) -> Pointer | View:
        """What stands in angle brackets after `!tt.ptr` or `!tt.tensordesc`, or instead of it."""
        self.expect("<")
        if kind == "ptr":
            pointee = self.type()
            if self.take(","):
                self.literal(None)  # an address space
            self.expect(">")
            if not isinstance(pointee, Scalar):
                hint = "block pointers (tl.make_block_ptr) are not read: use tensor descriptors"
                raise self.fail(f"a pointer to {pointee}", hint=hint)
            # In memory a truth value is a byte, and Triton reads it as one.
            return Pointer(Scalar("i8") if pointee.element == "i1" else pointee)
        # Until 3.7 a descriptor's type had the tile's type in it, since then its shape.
        if self.take_word("tensor"):
            self.expect("<")
            tile = self._tile()
            self.expect(">")
        else:
            tile = self._tile()
        if self.take(","):
            raise self.fail("a descriptor with a layout belongs to TTGIR", hint=_GIVE_TTIR)
        self.expect(">")
        if not isinstance(tile.element, Scalar):
            raise self.fail(f"a descriptor of {tile}")
        return View(tile.shape, tile.element)

    def _tile(self) -> Tile:
        shape: list[int] = []
        while found := self.match(_DIMENSION):
            shape.append(int(found[1]))
        if self.peek("?"):
            raise self.fail("a tile of unknown size", hint="sizes of tiles are constants")
        element = self.type()
        if self.take(","):
            raise self.fail("a tile with a layout belongs to TTGIR", hint=_GIVE_TTIR)
        if not isinstance(element, Scalar | Pointer):
            raise self.fail(f"a tile of {element}")
        if min(shape, default=1) < 1:
            raise self.fail("a tile with an empty dimension")
        return Tile(tuple(shape), element)

    def _scalar(self) -> Scalar:
        found = self.match(_SCALAR)
        if found is None:
            raise self.wanted("a type")
        return Scalar(found[0].lstrip("su"))

    def types(self) -> list[Type]:
        """Types with commas between them, in parentheses or bare."""
        if not self.take("("):
            return [self.type()]
        found: list[Type] = []
        while not self.take(")"):
            found.append(self.type())
            if not self.take(","):
                self.expect(")")
                break
        return found

    # Attributes ---------------------------------------------------------------------------

    def attribute(self) -> Attribute:
        """An attribute's value; of kinds nobody asks for, its text."""
        self._deeper()
        try:
            return self._attribute()
        finally:
            self._depth -= 1

    def _attribute(self) -> Attribute:
        if self.peek('"'):
            text = self.string()
            if self.take(":"):
                self.type()
            return text
        if self.take("["):
            return self._items("]", self.attribute)
        if self.take("{"):
            return tuple(self._entries().items())
        if found := self.match(SYMBOL):
            return found[0][1:].strip('"')
        if self.peek("#"):
            return self._foreign()
        if self.take_word("dense"):
            return self._dense()
        if self.take_word("array"):
            return self._array()
        if self.take_word("unit"):
            return True
        number = self.match(_NUMBER)
        if number is not None:
            # The type tells how to read it; none is written where it is i64 or f64.
            type = self.type() if self.take(":") else None
            return self.number(number[0], type)
        if self.peek("("):
            self.types()
            self.expect("->")
            self.types()
            return ""
        if self.peek("!") or self.peek("tensor<") or _SCALAR.match(self.text, self.at):
            return self.type()
        return self.word("an attribute")

    def _foreign(self) -> str:
        """An alias, or an attribute of a dialect: its text is enough."""
        start = self.at
        self.match(_ALIAS)
        if self.take("."):
            self.word("an attribute's name")
        if self.peek("<"):
            self._balanced("<", ">")
        return self.text[start : self.at].strip()

    def _balanced(self, left: str, right: str) -> None:
        depth = 0
        while not self.done:
            if self.match(STRING):
                continue
            if self.take(left):
                depth += 1
            elif self.take("->"):
                continue
            elif self.take(right):
                depth -= 1
                if not depth:
                    return
            else:
                self.at += 1
                self._skip()
        raise self.wanted(f"`{right}`")

    def _items(self, end: str, read: Callable[[], Attribute]) -> tuple[Attribute, ...]:
        found: list[Attribute] = []
        while not self.take(end):
            found.append(read())
            if not self.take(","):
                self.expect(end)
                break
        return tuple(found)

    def _array(self) -> Attribute:
        self.expect("<")
        element = self._scalar()
        if self.take(">"):
            return ()
        self.expect(":")
        return self._items(">", lambda: self.literal(element))

    def attribute_dictionary(self) -> dict[str, Attribute]:
        """`{name = value, flag}`, if one stands here."""
        return self._entries() if self.take("{") else {}

    def _entries(self) -> dict[str, Attribute]:
        found: dict[str, Attribute] = {}
        while not self.take("}"):
            name = self.string() if self.peek('"') else self.word("an attribute's name")
            found[name] = self.attribute() if self.take("=") else True
            if not self.take(","):
                self.expect("}")
                break
        return found

    # Numbers ------------------------------------------------------------------------------

    def literal(self, type: Type | None) -> int | float | bool:
        """A number of a type."""
        found = self.match(_NUMBER)
        if found is None:
            raise self.wanted("a number")
        return self.number(found[0], type)

    def number(self, text: str, type: Type | None) -> int | float | bool:
        """What a number's text says as a number of a type; a float in hexadecimal is its bits."""
        element = type.element if isinstance(type, Tile) else type
        if text in ("true", "false"):
            return text == "true"
        floating = isinstance(element, Scalar) and element.is_float
        if "x" in text:
            whole = int(text, 16)
            if not floating:
                return whole
            assert isinstance(element, Scalar)
            value = float_of_bits(whole, element.element)
            if value is None:
                raise self.fail(f"bits of {element} are not read")
            return value
        if floating or any(c in text for c in ".eE"):
            return float(text)
        return int(text)

    def _dense(self) -> Attribute:
        """`dense<...> : type`: one number that is everywhere, or all of them in a tuple."""
        self.expect("<")
        start = self.at
        # The type stands behind the numbers; it has to be known to read them.
        self._balanced_dense()
        end = self.at
        self.expect(">")
        self.expect(":")
        type = self.type()
        after = self.at
        self.at = start
        value = self._elements(type)
        if self.at != end:
            raise self.wanted("`>`")
        self.at = after
        return value

    def _balanced_dense(self) -> None:
        while not self.done and not self.peek(">"):
            if not self.match(STRING):
                self.at += 1
                self._skip()

    def _elements(self, type: Type) -> Attribute:
        if self.peek('"'):
            return self._packed(self.string(), type)
        if self.peek("["):
            flat: list[int | float | bool] = []
            self._nested(type, flat)
            wanted = type.elements if isinstance(type, Tile) else 1
            if len(flat) != wanted:
                raise self.fail(f"{len(flat)} numbers for a tile of {wanted}")
            return tuple(flat)
        return self.literal(type)

    def _nested(self, type: Type, flat: list[int | float | bool]) -> None:
        self._deeper()
        self.expect("[")
        while not self.take("]"):
            if self.peek("["):
                self._nested(type, flat)
            else:
                flat.append(self.literal(type))
            if not self.take(","):
                self.expect("]")
                break
        self._depth -= 1

    def _packed(self, text: str, type: Type) -> Attribute:
        element = type.element if isinstance(type, Tile) else type
        if not isinstance(element, Scalar) or element.bits % 8 or not text.startswith("0x"):
            raise self.fail("packed numbers of this type are not read")
        try:
            raw = bytes.fromhex(text[2:])
        except ValueError:
            raise self.fail("packed numbers are hexadecimal digits") from None
        size = element.bits // 8
        found: list[int | float] = []
        for at in range(0, len(raw), size):
            whole = int.from_bytes(raw[at : at + size], "little", signed=element.is_integer)
            value = whole if element.is_integer else float_of_bits(whole, element.element)
            if value is None:
                raise self.fail(f"bits of {element} are not read")
            found.append(value)
        return tuple(found) if len(found) != 1 else found[0]

    # Locations ----------------------------------------------------------------------------

    def location(self) -> Location | None:
        """`loc(...)`, if one stands here; None where it says nothing."""
        if not self.take("loc("):
            return None
        found = self._location()
        self.expect(")")
        return None if found.file == UNKNOWN else found

    def _location(self) -> Location:
        self._deeper()
        try:
            return self._one_location()
        finally:
            self._depth -= 1

    def _one_location(self) -> Location:
        if self.peek("#"):
            found = self.match(_ALIAS)
            return self._aliased(found[0]) if found else Location(UNKNOWN)
        if self.peek('"'):
            text = self.string()
            place = self.match(_PLACE)
            if place is not None:
                # Triton counts columns from 0.
                return Location(text, int(place[1]), int(place[2] or 0) + 1)
            if not self.take("("):
                return Location(UNKNOWN, name=text)
            inner = self._location()
            self.expect(")")
            return Location(inner.file, inner.line, inner.column, text, inner.caller)
        if self.take_word("callsite"):
            self.expect("(")
            callee = self._location()
            self.expect("at")
            caller = self._location()
            self.expect(")")
            return _called(callee, caller)
        if self.take_word("fused"):
            if self.peek("<"):
                self._balanced("<", ">")
            self.expect("[")
            parts = [self._location()]
            while self.take(","):
                parts.append(self._location())
            self.expect("]")
            return next((p for p in parts if p.file != UNKNOWN), parts[0])
        if self.take_word(UNKNOWN):
            return Location(UNKNOWN)
        raise self.wanted("a location")

    def _aliased(self, alias: str) -> Location:
        """What an alias stands for; it may be defined anywhere in the text."""
        if alias in self._locations:
            return self._locations[alias]
        start = self._location_aliases.get(alias)
        if start is None or alias in self._resolving:
            return Location(UNKNOWN)
        back, self.at = self.at, start
        self._resolving.append(alias)
        self._skip()
        found = self._location()
        self._resolving.pop()
        self.at = back
        self._locations[alias] = found
        return found

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEP:
            raise self.fail("nested too deeply")


def _called(callee: Location, caller: Location) -> Location:
    """A place in a function and where it was called from; Triton's own functions are left out."""
    if callee.file == UNKNOWN or any(part in callee.file for part in _LIBRARY):
        name = callee.name or caller.name
        return Location(caller.file, caller.line, caller.column, name, caller.caller)
    return Location(callee.file, callee.line, callee.column, callee.name, _outer(callee, caller))


def _outer(callee: Location, caller: Location) -> Location:
    if callee.caller is None:
        return caller
    inner = callee.caller
    return Location(inner.file, inner.line, inner.column, inner.name, _outer(inner, caller))


_GIVE_TTIR = "give the .ttir file that Triton wrote beside it"


def word_of(value: Attribute | None) -> str:
    """An attribute as a word."""
    return value if isinstance(value, str) else ""
