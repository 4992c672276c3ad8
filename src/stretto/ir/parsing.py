"""From text to a module whose every operation knows where it stands.

    text ──► xDSL's parser ──► module      parse_module: MlirError with file:line:col and a caret
                  └──► offsets of operations and attributes, kept beside the module
                                           verify_module: verifiers, dominance, attributes

    builtin, func, arith, math, scf, ub    dialects a kernel may use, loaded when a text first
    nv_tileas                              names them

Positions stay out of the module: what is printed has no `loc` in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import (
    AnyDenseElement,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FileLineColLoc,
    ModuleOp,
    RankedStructure,
    UnregisteredOp,
)
from xdsl.ir import Attribute, BlockArgument, Dialect, Operation, OpResult, Region, SSAValue
from xdsl.irdl.dominance import DominanceInfo
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError, VerifyException
from xdsl.utils.lexer import Span
from xdsl.utils.mlir_lexer import MLIRTokenKind

from stretto.diagnostics import Diagnostic, MlirError, MlirText, Severity
from stretto.ir.attributes import verify_attributes
from stretto.ir.dialect import name_of
from stretto.limits import DENSE_ELEMENTS, MODULE_CHARACTERS
from stretto.loop import Written


def _nv_tileas() -> Dialect:
    from stretto.ir.dialect import NvTileas  # noqa: PLC0415 - when a text uses it, not before

    return NvTileas


def make_context(allow_unregistered: bool = True) -> Context:
    """A context with every dialect of xDSL, each loaded when a text uses it, and with ours.

    Operations of others are kept as they are, if allowed.
    """
    context = Context(allow_unregistered=allow_unregistered)
    for name, factory in get_all_dialects().items():
        context.register_dialect(name, factory)
    context.load_registered_dialect("builtin")
    context.register_dialect("nv_tileas", _nv_tileas)
    return context


_OURS = ("stretto.", "tileas.", "nv_tile.")
"""Prefixes of the attributes whose places are kept."""


@dataclass(frozen=True)
class Parsed:
    """A module, and where everything in it came from."""

    module: ModuleOp
    source: MlirText
    offsets: dict[Operation, int] = field(default_factory=dict[Operation, int])
    """Where each operation's name stands."""
    attribute_offsets: dict[tuple[Operation, str], int] = field(
        default_factory=dict[tuple[Operation, str], int]
    )
    verified: bool = False
    """Whether it was found to be without fault when it was parsed."""

    @staticmethod
    def of_module(module: ModuleOp, file: str = "<module>") -> Parsed:
        """A module that somebody else parsed: positions are those of its own locations."""
        return Parsed(module, MlirText(file, ""))

    def written(self, op: Operation) -> Written | None:
        """Where an operation stands, or what it was made from; None where nobody knows."""
        told = self.diagnose(op, "note", "")
        return Written(told.file, told.line, told.column) if told.line and told.column else None

    def diagnose(
        self,
        op: Operation,
        severity: Severity,
        message: str,
        notes: tuple[Diagnostic, ...] = (),
        attribute: str | None = None,
    ) -> Diagnostic:
        """Something said about an operation, or about one of its attributes."""
        offset = None
        if attribute is not None:
            offset = self.attribute_offsets.get((op, attribute))
        if offset is None:
            offset = self.offsets.get(op)
        if offset is not None:
            return self.source.diagnose(offset, severity, message, notes)
        location = op.location
        if isinstance(location, FileLineColLoc):
            line, column = location.line.data, location.column.data
            return Diagnostic(severity, message, location.filename.data, line, column, "", notes)
        return self.source.diagnose(None, severity, message, notes)


def parse_module(
    text: str,
    file: str = "<stdin>",
    *,
    context: Context | None = None,
    verify: bool = True,
) -> Parsed:
    """The module a text holds; MlirError with everything that is wrong with it."""
    if len(text) > MODULE_CHARACTERS:
        told = f"is too large; a module has at most {MODULE_CHARACTERS:,} characters"
        raise MlirError([Diagnostic("error", told, file)])
    source = MlirText(file, text)
    if is_blank(text):
        raise MlirError([source.diagnose(0, "error", "there is nothing to parse")])
    open_string = next((m.start() for m in _STRINGS.finditer(text) if m[0] == '"'), None)
    if open_string is not None:
        message = "this string does not end on its line, or has an escape that MLIR does not know"
        raise MlirError([source.diagnose(open_string, "error", message)])
    context = context or make_context()
    try:
        module, parser = _parse(source, context)
    except MlirError:
        if begins_as_mlir(text, context):
            raise
        # Whatever it is, it may be a secret: it is not quoted.
        raise MlirError([Diagnostic("error", NOT_RECOGNIZED, file)]) from None
    parsed = Parsed(module, source, parser.offsets, parser.attribute_offsets, verify)
    if verify:
        faults = verify_module(parsed)
        if faults:
            raise MlirError(faults)
    return parsed


NOT_RECOGNIZED = "is not recognized: it does not begin as MLIR does"


def begins_as_mlir(text: str, context: Context) -> bool:
    """Whether a text begins with an operation that may be one, an alias or a block."""
    start = _GAP.match(text)
    first = _FIRST.match(text, start.end() if start else 0)
    return first is not None and (first[1] is None or first[1] in context.registered_dialect_names)


def is_blank(text: str) -> bool:
    """Whether a text has nothing but comments."""
    return not _COMMENT.sub("", text).strip()


_GAP = re.compile(r"(?:\s|//[^\n]*)*")
_FIRST = re.compile(
    r"""%[\w$.-]+(?::\d+)?\s*[,=] | [#!][A-Za-z_][\w$.]*\s*= | \^[\w$.]+\s*[(:] | \{-\#
    | "[A-Za-z_][\w$]*\.[\w$.]+"\s*\( | module\b\s*[@{a] | ([A-Za-z_][\w$]*)\.\w""",
    re.VERBOSE,
)
_COMMENT = re.compile(r"//[^\n]*")
_STRINGS = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*"|"')
"""Comments, strings, and a quote that begins no string: xDSL takes exponential time over those."""


def _parse(source: MlirText, context: Context) -> tuple[ModuleOp, PlacingParser]:
    parser: PlacingParser | None = None

    def refuse(message: str) -> MlirError:
        return MlirError([source.diagnose(parser.here if parser else 0, "error", message)])

    try:
        parser = PlacingParser(context, source.text, source.file)
        return parser.parse_module(), parser
    except ParseError as error:
        raise MlirError([_parse_error(source, error)]) from None
    except VerifyException as error:
        raise refuse(str(error)) from None
    except RecursionError:
        raise refuse("nested too deeply") from None
    except Exception as error:  # a text must never end in a traceback
        said = " ".join(map(str, error.args))
        raise refuse(f"cannot be parsed: {said}" if said else "cannot be parsed") from None


def _parse_error(source: MlirText, error: ParseError) -> Diagnostic:
    notes: tuple[Diagnostic, ...] = ()
    if isinstance(error, MultipleSpansParseError):
        notes = tuple(
            source.diagnose(span.start, "note", said or error.ref_text or "see here")
            for span, said in error.refs
        )
    return source.diagnose(error.span.start, "error", error.msg.strip(), notes)


def verify_module(parsed: Parsed) -> tuple[Diagnostic, ...]:
    """Every fault: of operations by their own rules, of dominance, of attributes."""
    found: list[Diagnostic] = []
    for op in parsed.module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except Exception as error:  # xDSL's verifiers raise all kinds
            found.append(parsed.diagnose(op, "error", _reason(error)))
        found += [
            parsed.diagnose(op, "error", message, attribute=name)
            for name, message in verify_attributes(op)
        ]
    found += _empty_bodies(parsed)
    for op, operand, definer in _undominated(parsed.module):
        name = f"`%{operand.name_hint}`" if operand.name_hint else f"operand {_index(op, operand)}"
        notes = ()
        if definer is not None:
            notes = (parsed.diagnose(definer, "note", f"{name} is defined here"),)
        message = f"`{name_of(op)}` uses {name} where its definition does not reach"
        found.append(parsed.diagnose(op, "error", message, notes))
    return tuple(sorted(found, key=lambda diagnostic: (diagnostic.line, diagnostic.column)))


def _index(op: Operation, operand: SSAValue) -> int:
    return next(i for i, value in enumerate(op.operands) if value is operand)


def _reason(error: Exception) -> str:
    """What a verifier said, without the banner that xDSL puts before it."""
    said = str(error).removeprefix("Operation does not verify: ").strip()
    return said or f"does not verify ({type(error).__name__})"


def _empty_bodies(parsed: Parsed) -> Iterator[Diagnostic]:
    for op in parsed.module.walk():
        for region in op.regions:
            for block in region.blocks:
                if not block.ops:
                    try:
                        block.verify()
                    except VerifyException as error:
                        yield parsed.diagnose(op, "error", _reason(error))


# Is every value defined before it is used? xDSL's own verifiers do not ask ----------------


def _undominated(module: ModuleOp) -> Iterator[tuple[Operation, SSAValue, Operation | None]]:
    """Each use that its definition does not reach: user, value and definer (None: an argument)."""
    place: dict[Operation, int] = {op: i for i, op in enumerate(module.walk())}
    known: dict[Region, DominanceInfo] = {}
    for op in place:
        for operand in op.operands:
            definer = operand.op if isinstance(operand, OpResult) else None
            if not _reaches(operand, op, place, known):
                yield op, operand, definer


def _reaches(
    value: SSAValue,
    user: Operation,
    place: dict[Operation, int],
    known: dict[Region, DominanceInfo],
) -> bool:
    """In a block its place decides, between blocks their dominance, else what encloses the user."""
    if not isinstance(value, OpResult | BlockArgument):
        return False
    home = value.op.parent if isinstance(value, OpResult) else value.block
    if home is None or home.parent is None:
        return False
    beside = home.find_ancestor_op_in_block(user)
    if beside is not None:
        # Walking visits an operation before what it encloses, so places order a block.
        return not isinstance(value, OpResult) or place[value.op] < place[beside]
    region, within = home.parent, user.parent
    block = None if within is None else region.find_ancestor_block_in_region(within)
    if block is None:
        return False
    if region not in known:
        known[region] = DominanceInfo(region)
    return known[region].strictly_dominates(home, block)


# Positions --------------------------------------------------------------------------------


class _BitsElement(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """A number in hexadecimal, which of a floating-point type is its bits, as MLIR has it."""

    def to_type(self, parser: AttrParser, type: AnyDenseElement) -> Any:
        """By its bits, where xDSL takes it for a whole number."""
        if isinstance(type, AnyFloat) and isinstance(self.value, int):
            size = type.compile_time_size
            return next(type.iter_unpack((self.value % (1 << 8 * size)).to_bytes(size, "little")))
        return super().to_type(parser, type)


class PlacingParser(Parser):
    """xDSL's parser, which also notes where operations and our attributes stand."""

    def __init__(self, ctx: Context, input: str, name: str) -> None:
        self.offsets: dict[Operation, int] = {}
        self.attribute_offsets: dict[tuple[Operation, str], int] = {}
        self._open: list[tuple[int, dict[str, int]]] = []
        self._first_uses: dict[str, Span] = {}
        self._dense_elements = 0
        super().__init__(ctx, input, name)

    @property
    def here(self) -> int:
        """Where the operation in work begins, or else where the parser stands."""
        return self._open[-1][0] if self._open else self._current_token.span.start

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        """The module; a value that nobody defines is reported where it is first used."""
        try:
            return super().parse_module(allow_implicit_module)
        except ParseError:
            undefined = [name for name in self.forward_ssa_references if name in self._first_uses]
            if not undefined or not self._at_end():
                raise
            name = undefined[0]
            raise ParseError(self._first_uses[name], f"`%{name}` is not defined") from None

    def _at_end(self) -> bool:
        return self._current_token.span.start >= len(self.lexer.input.content.rstrip())

    def parse_operation(self) -> Operation:
        """An operation, with its place."""
        self._open.append((self._current_token.span.start, {}))
        op = super().parse_operation()
        offset, attributes = self._open.pop()
        self.offsets[op] = offset
        for name, at in attributes.items():
            self.attribute_offsets[op, name] = at
        return op

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        # As MLIR has it, an operation stands where its name does, after its results.
        self._open[-1] = (self._current_token.span.start, self._open[-1][1])
        if self._current_token.kind == MLIRTokenKind.BARE_IDENT:
            self._refuse_unknown(self._current_token.text)
        return results

    def _get_op_by_name(self, name: str) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        known = self.ctx.get_optional_op(name, dialect_stack=stack)
        if known is None:
            self.raise_error(f"`{name}` is no operation of a known dialect", self.here)
        return known

    def _refuse_unknown(self, name: str) -> None:
        """Nobody knows how to read an unknown operation unless it is in generic form."""
        known = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if known is None or issubclass(known, UnregisteredOp):
            hint = f'only its generic form, "{name}"(...), could be read'
            self.raise_error(f"`{name}` is no operation of a known dialect; {hint}")

    def _parse_attribute_entry(self) -> tuple[str, Attribute]:
        at = self._current_token.span.start
        entry = super()._parse_attribute_entry()
        if self._open and entry[0].startswith(_OURS):
            self._open[-1][1].setdefault(entry[0], at)
        return entry

    def parse_dense_int_or_fp_elements_attr(
        self, type: RankedStructure[AnyDenseElement] | None
    ) -> DenseIntOrFPElementsAttr:
        """A dense constant whose type is known beforehand."""
        if type is not None:
            self._count_elements(type)
        return super().parse_dense_int_or_fp_elements_attr(type)

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        found = super()._parse_tensor_literal_element()
        if found.span.text[:2] in ("0x", "0X"):
            return _BitsElement(found.is_negative, found.value, found.span)
        return found

    def _parse_dense_literal_type(self) -> RankedStructure[AnyDenseElement]:
        type = super()._parse_dense_literal_type()
        self._count_elements(type)
        return type

    def _count_elements(self, type: RankedStructure[AnyDenseElement]) -> None:
        """Refuse constants that take too much room: xDSL writes every element of a splat out."""
        self._dense_elements += max(0, prod(type.get_shape()))
        if self._dense_elements > DENSE_ELEMENTS:
            limit = f"a module may have {DENSE_ELEMENTS:,} elements of them"
            self.raise_error(f"the dense constants up to here are too large; {limit}", self.here)

    def resolve_operand(self, operand: UnresolvedOperand, type: Attribute):
        """The value of a name; the first use of one that is yet unknown is noted."""
        name = operand.operand_name
        if name not in self.ssa_values:
            self._first_uses.setdefault(name, operand.span)
        return super().resolve_operand(operand, type)
