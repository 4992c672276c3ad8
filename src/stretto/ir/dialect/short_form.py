"""The short form of an operation: its operands in a row, and the type of what it makes.

    %0 = nv_tileas.async.tiled_tma_load %desc, %coord : !smem_ref
    %1 = nv_tileas.async.smem_write %src : !smem_ref
    %2 = nv_tileas.async.wgmma %a, %b, %c : !tmem_ref
    %3 = nv_tileas.async.smem_read %0 : !reg

Its operands are defined above it, so their types are known. It is read beside the long form, in
which everything is printed; which of the two a text has is seen from where it ends: a long one has
`->` or a second type after the first.
"""

from __future__ import annotations

import re

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser

_OPENS, _CLOSES = "<([{", ">)]}"

FORMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("async.tiled_tma_load", "async.cp_async"), ("source", "coordinates")),
    **dict.fromkeys(("async.smem_write", "async.tmem_store"), ("value",)),
    **dict.fromkeys(("async.smem_read", "async.tmem_load"), ("source",)),
    **dict.fromkeys(("async.wgmma", "async.tcgen05_mma", "async.dot"), ("a", "b", "accumulator")),
}
"""Operations that may be written in short, and their operands in the order they stand.

The last takes all that are left, where it takes several; what is not there is left out."""


def allow(cls: type[Operation], kind: str) -> None:
    """Let an operation be written in short, where it has such a form."""
    if kind not in FORMS or not issubclass(cls, IRDLOperation):
        return
    long = cls.parse

    def parse(parser: Parser) -> IRDLOperation:
        if is_short(parser.lexer.input.content, parser.pos):
            return _parse(cls, FORMS[kind], parser)
        return long(parser)

    cls.parse = parse  # pyright: ignore[reportAttributeAccessIssue]


_OPERANDS = re.compile(r"%[\w.$#-]+(?:\s*,\s*%[\w.$#-]+)*")
_TYPE = re.compile(r"[!\w.$]+")


def is_short(text: str, at: int) -> bool:
    """Whether the operation whose operands begin there is written in short.

    Nothing but attributes stands between its operands and the colon, and one type after it.
    """
    operands = _OPERANDS.match(text, at)
    if operands is None:
        return False
    at = _space(text, operands.end())
    if text.startswith("{", at):
        at = _space(text, _closed(text, at))
    if not text.startswith(":", at):
        return False
    named = _TYPE.match(text, _space(text, at + 1))
    if named is None:
        return False
    at = named.end()
    if text.startswith("<", at):
        at = _closed(text, at)
    return not text.startswith((",", "->"), _space(text, at))


def _closed(text: str, at: int) -> int:
    """Behind the bracket that closes the one that stands there; strings are passed over."""
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif text.startswith("->", at):
            at += 1
        elif text[at] in _OPENS:
            depth += 1
        elif text[at] in _CLOSES:
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return at


def _space(text: str, at: int) -> int:
    """Behind blanks and comments."""
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text.startswith("//", at):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        else:
            break
    return at


def _parse(cls: type[IRDLOperation], names: tuple[str, ...], parser: Parser) -> IRDLOperation:
    begin = parser.pos
    given = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _defined(parser))
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    made = parser.parse_type()
    definition = cls.get_irdl_definition()
    many = names[-1] if len(given) > len(names) else ""
    if many and "Var" not in type(dict(definition.operands)[many]).__name__:
        parser.raise_error(
            f"{len(given)} operands; `{cls.name}` has up to {len(names)} in its short form",
            begin,
            parser.pos,
        )
    roles: dict[str, list[SSAValue]] = {
        name: given[i:] if i + 1 == len(names) else given[i : i + 1] for i, name in enumerate(names)
    }
    properties = {
        name: attributes.pop(name) for name in list(attributes) if name in definition.properties
    }
    operands = [roles.get(name, []) for name, _ in definition.operands]
    results = [[made] if name == "result" else [] for name, _ in definition.results]
    return cls.build(
        operands=operands, result_types=results, properties=properties, attributes=attributes
    )


def _defined(parser: Parser) -> SSAValue:
    """A value that stands above; its type is known."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    if values is None or operand.index >= len(values):
        told = f"`%{operand.operand_name}` is not defined above; the long form states its type"
        parser.raise_error(told, operand.span)
    return values[operand.index]
