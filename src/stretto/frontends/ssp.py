"""Modulo problems of CIRCT, in its dialect `ssp`, as loops.

    ssp.instance @fir of "ModuloProblem" [II<3>] {
      library   { operator_type @mul [latency<3>] }              ready after 3 cycles
      resource  { resource_type @dsp [limit<2>, ii<1>] }         2 units, each held for 1 cycle
      graph {
        %0 = operation<@mul> @p(@q [dist<1>]) uses[@dsp]         p: after q of the iteration before
        operation<@mul> @q(%0) uses[@dsp]
      }
    }

Read is the form that `circt-opt` prints, of all years: a limit may stand on an operator type, as it
did at first (its units are then held for one cycle), and `uses` before or after the operands. An
operator without a limit is a slot of any capacity, for each of its operations takes a cycle of it.
`CyclicProblem` is a modulo problem of which nothing is limited. Problems of other kinds do not
overlap iterations and are left alone, with a note. What solves a problem (II, t) is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from stretto.errors import DocumentError, listed
from stretto.frontends import Source
from stretto.frontends.ssp_tokens import Token, Tokens
from stretto.loop import Dependence, Loop, Note, Op, Place, Use
from stretto.machine.written import written_machine

READ = ("ModuloProblem", "CyclicProblem")
"""The problems that are read."""
_CHAINING = ("zIn", "zOut")


@dataclass(frozen=True, slots=True)
class Properties:
    """What stands in brackets: names and their numbers, each with its place."""

    rows: dict[str, tuple[Token, str]]
    of: str = ""
    """The type that has them, as its slot is called."""

    def number(self, name: str, default: int, least: int = 0) -> int:
        """A number of this name."""
        if name not in self.rows:
            return default
        token, text = self.rows[name]
        if not text.isdecimal() or len(text) > 12 or int(text) < least:
            raise token.fail(f"`{name}` is {text}", f"expected a whole number of at least {least}")
        return int(text)


@dataclass(slots=True)
class _Operand:
    """What an operation waits for: a result by its number, or an operation by its name."""

    token: Token
    distance: int


@dataclass(slots=True)
class _Operation:
    """One operation as it stands, its names not yet looked up."""

    token: Token
    operator: Token | None
    symbol: str
    result: str
    operands: list[_Operand]
    uses: list[Token]


@dataclass(slots=True)
class _Instance:
    """A problem as it stands; types are found under every name that leads to them."""

    token: Token
    name: str
    kind: str
    operators: dict[str, Properties] = field(default_factory=dict[str, Properties])
    resources: dict[str, Properties] = field(default_factory=dict[str, Properties])
    operations: list[_Operation] = field(default_factory=list[_Operation])


def read_ssp(file: str, text: str) -> Source:
    """The modulo problems of a module; those of other kinds are noted."""
    tokens = Tokens(file, text)
    libraries = _Instance(tokens.peek, "", "")
    instances = list(_instances(tokens, libraries))
    loops: list[Loop] = []
    notes: list[Note] = []
    for i, instance in enumerate(instances):
        if instance.kind not in READ:
            told = f"`{instance.name}` is of kind {instance.kind}, not of {' or '.join(READ)}"
            notes.append(Note(Place(), f"{told}: it is left alone"))
            continue
        name = instance.name or f"instance{i}"
        if any(loop.name == name for loop in loops):
            raise instance.token.fail(f"problem `{name}` stands twice")
        loops.append(_loop(name, instance, libraries))
        notes += [Note(Place(name), told) for told in _left_out(instance)]
    if not loops:
        why = "; ".join(note.text for note in notes) or "it has no ssp.instance"
        raise DocumentError(file, "", "has no modulo problem", why)
    return Source(file, tuple(loops), tuple(notes))


def _left_out(instance: _Instance) -> Iterator[str]:
    chained = [n for n, p in instance.operators.items() if any(z in p.rows for z in _CHAINING)]
    if chained:
        told = f"{listed(chained)} state delays inside a cycle (zIn, zOut)"
        yield f"{told}; how operations share a cycle is not modelled"


# Reading ----------------------------------------------------------------------------------


def _instances(tokens: Tokens, libraries: _Instance) -> Iterator[_Instance]:
    """Every problem; libraries that stand outside go into `libraries`."""
    inside: list[str] = []
    while tokens.peek.kind != "end":
        token = tokens.next()
        word = token.text.removeprefix("ssp.")
        if token.kind == "string" and token.text.startswith("ssp."):
            hint = "expected the form that circt-opt prints, not the generic one"
            raise token.fail(f"found {token.shown} in quotes", hint)
        if word == "instance":
            yield _instance(tokens, token)
        elif word in ("library", "resource"):
            _section(tokens, word, libraries, inside)
        elif token.text in ("module", "builtin.module"):
            inside.append(tokens.symbol() if tokens.peek.kind == "symbol" else "")
            if tokens.accept("attributes"):
                tokens.skip_to("}")
            tokens.expect("{")
        elif token.text == "}" and inside:
            inside.pop()
        else:
            raise token.fail(f"found {token.shown}", "expected ssp.instance")


def _instance(tokens: Tokens, token: Token) -> _Instance:
    name = tokens.symbol() if tokens.peek.kind == "symbol" else ""
    tokens.expect("of")
    kind = tokens.string()
    _properties(tokens)
    instance = _Instance(token, name, kind)
    tokens.expect("{")
    while not tokens.accept("}"):
        section = tokens.next()
        word = section.text.removeprefix("ssp.")
        if word not in ("library", "resource", "graph"):
            raise section.fail(f"found {section.shown}", "expected library, resource or graph")
        _section(tokens, word, instance, [])
    return instance


def _section(tokens: Tokens, word: str, into: _Instance, inside: list[str]) -> None:
    """A part of a problem, or a library that stands `inside` modules."""
    called = tokens.symbol() if tokens.peek.kind == "symbol" else ""
    tokens.expect("{")
    while not tokens.accept("}"):
        if word == "graph":
            into.operations.append(_operation(tokens))
            continue
        row = tokens.next()
        wanted, rows = {
            "library": ("operator_type", into.operators),
            "resource": ("resource_type", into.resources),
        }[word]
        if row.text.removeprefix("ssp.") != wanted:
            raise row.fail(f"found {row.shown}", f"expected {wanted}")
        name = tokens.symbol()
        within = "::".join(part for part in (*inside, called, name) if part)
        own = name if into.kind else within  # outside of a problem, only the whole way leads there
        if own in rows:
            raise row.fail(f"{wanted} @{name} stands twice")
        found = replace(_properties(tokens), of=own)
        for way in (own, within, f"{into.name}::{within}"):
            rows[way] = found


def _operation(tokens: Tokens) -> _Operation:
    result = ""
    if tokens.peek.kind == "value":
        result = tokens.next().text
        tokens.expect("=")
    token = tokens.next()
    if token.text.removeprefix("ssp.") != "operation":
        raise token.fail(f"found {token.shown}", "expected operation")
    tokens.expect("<")
    operator = tokens.reference() if tokens.peek.kind == "symbol" else None
    tokens.expect(">")
    uses = _uses(tokens)
    symbol = tokens.symbol() if tokens.peek.kind == "symbol" else ""
    tokens.expect("(")
    operands: list[_Operand] = []
    while not tokens.accept(")"):
        if operands:
            tokens.expect(",")
        one = tokens.next()
        if one.kind not in ("value", "symbol"):
            raise one.fail(f"found {one.shown}", "expected a result (%0) or an operation (@name)")
        operands.append(_Operand(one, _properties(tokens).number("dist", 0)))
    uses += _uses(tokens)
    _properties(tokens)
    return _Operation(token, operator, symbol, result, operands, uses)


def _uses(tokens: Tokens) -> list[Token]:
    if not tokens.accept("uses"):
        return []
    found: list[Token] = []
    tokens.expect("[")
    while not tokens.accept("]"):
        if found:
            tokens.expect(",")
        found.append(tokens.reference())
    return found


def _properties(tokens: Tokens) -> Properties:
    """`[latency<3>, limit<1>]`, or nothing; what is in `<>` may have a type."""
    rows: dict[str, tuple[Token, str]] = {}
    if tokens.accept("["):
        while not tokens.accept("]"):
            if rows:
                tokens.expect(",")
            name = tokens.next()
            rows[name.text] = (name, tokens.number())
    return Properties(rows)


# Looking names up -------------------------------------------------------------------------


def _loop(name: str, instance: _Instance, libraries: _Instance) -> Loop:
    if not instance.operations:
        raise instance.token.fail(f"problem `{name}` has no operation")
    made = _Names(instance, libraries)
    ops = tuple(made.op(i) for i in range(len(instance.operations)))
    latency = {op.name: op.ready for op in ops}
    stated = tuple(
        Dependence(src, made.names[i], latency[src], operand.distance, made.kind(operand))
        for i, row in enumerate(instance.operations)
        for operand, src in ((one, made.source(one)) for one in row.operands)
    )
    machine = written_machine(name, f"the resources of {name}", made.slots)
    return Loop(name, ops, stated=stated, machine=machine)


class _Names:
    """The operators, resources and operations that the rows of a graph name."""

    def __init__(self, instance: _Instance, libraries: _Instance) -> None:
        self.operations = instance.operations
        self.operators = {**libraries.operators, **instance.operators}
        self.resources = {**libraries.resources, **instance.resources}
        self.slots: dict[str, int | None] = {}
        taken = {row.symbol for row in self.operations if row.symbol}
        self.names = [
            row.symbol or _free(_named(row.result) or f"op{i}", taken)
            for i, row in enumerate(self.operations)
        ]
        self._results: dict[str, str] = {}
        self._symbols: dict[str, str] = {}
        for row, name in zip(self.operations, self.names, strict=True):
            for known, key in ((self._results, row.result), (self._symbols, row.symbol)):
                if key in known:
                    raise row.token.fail(f"`{key}` stands twice")
                if key:
                    known[key] = name

    def op(self, i: int) -> Op:
        """An operation with its costs."""
        row = self.operations[i]
        if row.operator is None:
            raise row.token.fail("has no operator type", "a latency is needed: operation<@type>")
        operator = self._found(row.operator, self.operators, "operator type")
        latency = operator.number("latency", 0)
        held: dict[str, int] = {}
        for use in row.uses:
            resource = self._found(use, self.resources, "resource type")
            self.slots[resource.of] = resource.number("limit", 0) or None
            held[resource.of] = resource.number("ii", 1, least=1)
        if not held or "limit" in operator.rows:
            slot = f"{operator.of}.operator" if operator.of in self.resources else operator.of
            self.slots[slot] = operator.number("limit", 0) or None
            held[slot] = 1
        uses = tuple(Use(slot, cycles) for slot, cycles in held.items())
        return Op(self.names[i], operator.of, uses=uses, latency=latency)

    def _found(self, token: Token, rows: dict[str, Properties], what: str) -> Properties:
        if token.text not in rows:
            known = listed(dict.fromkeys(row.of for row in rows.values()))
            raise token.fail(f"no {what} @{token.text}", f"known: {known}")
        return rows[token.text]

    def source(self, operand: _Operand) -> str:
        """The operation that an operand names."""
        token = operand.token
        known = self._results if token.kind == "value" else self._symbols
        if token.text not in known:
            mark = "%" if token.kind == "value" else "@"
            raise token.fail(f"no operation {mark}{token.text}", f"known: {listed(known)}")
        return known[token.text]

    @staticmethod
    def kind(operand: _Operand) -> Literal["flow", "order"]:
        """A result flows; an operation that is named is only waited for."""
        return "flow" if operand.token.kind == "value" else "order"


def _named(result: str) -> str:
    """The name of a result, where it is more than a number."""
    return "" if result[:1].isdigit() else result


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
