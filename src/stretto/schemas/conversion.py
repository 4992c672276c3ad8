"""A loop in another format."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stretto.schemas.values import Positive, Where


class ConvertedLoop(TypedDict):
    """`loop` of a conversion document."""

    name: str
    ops: Positive


class Loss(TypedDict):
    """`loss` of a conversion document."""

    loop: str
    lost: str


class ConversionDocument(TypedDict):
    """A loop in another format."""

    schema: Literal["stretto.conversion/1"]
    success: Literal[True]
    input: str
    format: Literal["json", "mlir", "graphml", "ssp"]
    files: Annotated[list[str], Where(minItems=1)]
    loops: list[ConvertedLoop]
    losses: Annotated[list[Loss], "What the format cannot say of a loop."]
    notes: list[str]
