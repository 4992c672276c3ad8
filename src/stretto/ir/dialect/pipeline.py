"""Pipelines between agents.

    %ring = async.pipeline.create_pipeline : !nv_tileas.pipeline<3, !nv_tileas.smem_ref<...>>
    producer:  acquire a free slot ─► write into it ─► commit
    consumer:  wait for a full one ─► read it       ─► release

An iterator names a slot; `inc_iter` goes on to the next. `agent_switch` has a region an agent.
An iterator with `init` values begins as many slots before the first: there nothing waits, and a
read sees those values. A slot of registers has no address: who writes it yields what goes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import BytesAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator
from xdsl.utils.exceptions import VerifyException

from stretto.ir.dialect.types import (
    TOKEN,
    IteratorType,
    PipelineType,
    TokenType,
    buffer_of,
    same_slot,
)
from stretto.ops.spaces import MEMORIES

ITERATOR = eq(IteratorType())
PIPELINE = base(PipelineType)
_PIPELINE = "nv_tileas.async.pipeline."
_AT = "$pipeline `[` $iterator `]` (`after` $after^)? attr-dict `:` type($pipeline)"


@irdl_op_definition
class CreatePipelineOp(IRDLOperation):
    """A ring of tiles; `producers` and `consumers` are how many agents arrive on each side.

    It has a ring of its own, or hands the slots of another one on. `pipe` is what it is in a
    program: its name, and the operations at its ends.
    """

    name = "nv_tileas.async.pipeline.create_pipeline"
    T: ClassVar = VarConstraint("T", PIPELINE)

    ring = opt_operand_def(T)
    producers = opt_prop_def(base(IntegerAttr))
    consumers = opt_prop_def(base(IntegerAttr))
    pipe = opt_prop_def(base(DictionaryAttr))
    result = result_def(T)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "(`on` $ring^)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        """At least one agent on a side that is stated."""
        for side, count in (("producers", self.producers), ("consumers", self.consumers)):
            if count is not None and count.value.data < 1:
                told = f"{count.value.data} {side}"
                raise VerifyException(f"`{self.name}` has {told}; at least 1 is needed")


@irdl_op_definition
class CreateIteratorOp(IRDLOperation):
    """The first slot of a pipeline, or a place before it that sees `init` values.

    `phase` is the parity it first waits for; `side` and `op` say whose it is in a program.
    """

    name = "nv_tileas.async.pipeline.create_iterator"

    pipeline = operand_def(PIPELINE)
    init = var_operand_def(AnyAttr())
    op = opt_prop_def(base(StringAttr) | base(BytesAttr))
    side = opt_prop_def(base(StringAttr))
    phase = opt_prop_def(base(IntegerAttr))
    result = result_def(ITERATOR)

    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$pipeline (`init` `(` $init^ `:` type($init) `)`)? attr-dict `:` type($pipeline)"
    )

    def verify_(self) -> None:
        """What it sees before the first slot is what slots hold."""
        for value in self.init:
            same_slot(self, self.pipeline.type, value.type)


@irdl_op_definition
class IncIterOp(IRDLOperation):
    """The next slot, round the ring."""

    name = "nv_tileas.async.pipeline.inc_iter"

    iterator = operand_def(ITERATOR)
    result = result_def(ITERATOR)

    assembly_format = "$iterator attr-dict"


class _AtSlot(IRDLOperation):
    """Something that happens to the slot an iterator points to."""

    pipeline = operand_def(PIPELINE)
    iterator = operand_def(ITERATOR)
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)

    assembly_format = _AT


@irdl_op_definition
class ProducerAcquireOp(_AtSlot):
    """Waits until the slot is free."""

    name = "nv_tileas.async.pipeline.producer_acquire"


@irdl_op_definition
class ProducerCommitOp(_AtSlot):
    """Hands the slot to the consumers."""

    name = "nv_tileas.async.pipeline.producer_commit"


@irdl_op_definition
class ConsumerWaitOp(_AtSlot):
    """Waits until the slot is full."""

    name = "nv_tileas.async.pipeline.consumer_wait"


@irdl_op_definition
class ConsumerReleaseOp(_AtSlot):
    """Hands the slot back to the producers."""

    name = "nv_tileas.async.pipeline.consumer_release"


class _SlotBody(IRDLOperation):
    """An operation with a body that sees the slot: `%p[%i] after %t (%slot) { ... } : ...`."""

    pipeline = operand_def(PIPELINE)
    iterator = operand_def(ITERATOR)
    after = var_operand_def(TOKEN)
    token = result_def(TOKEN)
    results_of_body = var_result_def(AnyAttr())
    body = region_def("single_block")

    def verify_(self) -> None:
        """The body sees the slot, and yields what the operation results in."""
        pipeline = self.pipeline.type
        arguments = self.body.block.args
        if not isinstance(pipeline, PipelineType):
            return
        addressed = isinstance(self, ConsumerReadOp) or buffer_of(pipeline.slot) in MEMORIES
        if [a.type for a in arguments] != [pipeline.slot] * addressed:
            told = ", ".join(str(a.type) for a in arguments) or "nothing"
            wanted = f"the slot is {pipeline.slot}"
            if not addressed:
                wanted += ", which has no address: the body yields what goes there"
            raise VerifyException(f"`{self.name}`: its body takes {told}; {wanted}")
        check_yield(self, self.body.block, self.results_of_body.types, "its body", "the operation")

    @classmethod
    def parse(cls, parser: Parser) -> _SlotBody:
        """`%ring[%i] (after %t, ...)? (%slot) { ... } {attrs} : pipeline -> types`."""
        pipeline = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        iterator = parser.parse_unresolved_operand()
        parser.parse_punctuation("]")
        tokens: list[SSAValue] = []
        if parser.parse_optional_keyword("after") is not None:
            tokens = parser.parse_comma_separated_list(
                Parser.Delimiter.NONE, lambda: parser.parse_operand(TokenType())
            )
        slots = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_argument)
        body = parser.parse_region(slots)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pipeline_type = parser.parse_type()
        results: Sequence[Attribute] = ()
        if parser.parse_optional_punctuation("->") is not None:
            results = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        _terminate(body)
        return cls.create(
            operands=[
                parser.resolve_operand(pipeline, pipeline_type),
                parser.resolve_operand(iterator, IteratorType()),
                *tokens,
            ],
            result_types=[TokenType(), *results],
            attributes=attributes,
            regions=[body],
        )

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        pipeline, iterator, *tokens = self.operands
        printer.print_string(" ")
        printer.print_ssa_value(pipeline)
        with printer.in_square_brackets():
            printer.print_ssa_value(iterator)
        if tokens:
            printer.print_string(" after ")
            printer.print_list(tokens, printer.print_ssa_value)
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.regions[0].block.args, printer.print_block_argument)
        printer.print_string(" ")
        last = self.regions[0].block.last_op
        silent = isinstance(last, YieldOp) and not last.operands and not last.attributes
        printer.print_region(
            self.regions[0],
            print_entry_block_args=False,
            print_empty_block=False,
            print_block_terminators=not silent,
        )
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(pipeline.type)
        if len(self.results) > 1:
            printer.print_string(" -> ")
            printer.print_list(self.result_types[1:], printer.print_attribute)


def check_yield(
    op: Operation, block: Block, made: Iterable[Attribute], body: str, maker: str
) -> None:
    """Refuse a body that yields other things than its operation makes."""
    last = block.last_op
    yielded, wanted = last.operand_types if isinstance(last, YieldOp) else (), tuple(made)
    if tuple(yielded) != wanted:
        told, expected = (", ".join(map(str, types)) or "nothing" for types in (yielded, wanted))
        raise VerifyException(f"`{op.name}`: {body} yields {told}; {maker} makes {expected}")


def _terminate(body: Region) -> None:
    """End a body with the yield of nothing that its text left out."""
    block = body.block
    if not isinstance(block.last_op, YieldOp):
        block.add_op(YieldOp.create())


@irdl_op_definition
class ProducerWriteOp(_SlotBody):
    """Fills a slot that was acquired; the body sees it. The token is for the commit."""

    name = "nv_tileas.async.pipeline.producer_write"


@irdl_op_definition
class ConsumerReadOp(_SlotBody):
    """Reads a slot that is full; the body sees it. The token is for the release."""

    name = "nv_tileas.async.pipeline.consumer_read"


@irdl_op_definition
class AgentSwitchOp(IRDLOperation):
    """Several agents at work at once, a region each."""

    name = "nv_tileas.async.pipeline.agent_switch"

    agents = var_region_def("single_block")

    @classmethod
    def parse(cls, parser: Parser) -> AgentSwitchOp:
        """`{ ... }, { ... } {attrs}`."""
        regions = [parser.parse_region()]
        while parser.parse_optional_punctuation(",") is not None:
            regions.append(parser.parse_region())
        for region in regions:
            if not region.blocks:
                region.add_block(Block())
            _terminate(region)
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attributes") is not None:
            attributes = parser.parse_optional_attr_dict()
        return cls.create(regions=regions, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """As `parse` reads it."""
        printer.print_string(" ")
        printer.print_list(self.regions, self._print_agent(printer))
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @staticmethod
    def _print_agent(printer: Printer) -> Callable[[Region], None]:
        def show(region: Region) -> None:
            last = region.block.last_op
            silent = isinstance(last, YieldOp) and not last.attributes
            printer.print_region(
                region, print_empty_block=False, print_block_terminators=not silent
            )

        return show

    def verify_(self) -> None:
        """At least one agent, each without arguments."""
        if not self.regions:
            raise VerifyException(f"`{self.name}` has no agent")
        for number, region in enumerate(self.regions):
            if region.block.args or (region.block.last_op and region.block.last_op.operands):
                raise VerifyException(f"`{self.name}`: agent {number} takes and yields nothing")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The end of a body, and what it results in."""

    name = "nv_tileas.async.pipeline.yield"

    arguments = var_operand_def(AnyAttr())

    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def verify_(self) -> None:
        """It ends the bodies of this dialect alone."""
        parent = self.parent_op()
        if parent is not None and not parent.name.startswith(_PIPELINE):
            raise VerifyException(f"`{self.name}` ends no `{parent.name}`")


BODIES = (ProducerWriteOp, ConsumerReadOp)
"""Operations whose body belongs to the loop around them."""
OPERATIONS = (
    CreatePipelineOp,
    CreateIteratorOp,
    IncIterOp,
    ProducerAcquireOp,
    ProducerWriteOp,
    ProducerCommitOp,
    ConsumerWaitOp,
    ConsumerReadOp,
    ConsumerReleaseOp,
    AgentSwitchOp,
    YieldOp,
)
