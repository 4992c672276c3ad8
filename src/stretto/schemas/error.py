"""A failure that concerns no single loop."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from stretto.schemas.values import Where


class ErrorDocument(TypedDict):
    """A failure that concerns no single loop."""

    schema: Literal["stretto.error/1"]
    success: Literal[False]
    errors: Annotated[list[str], Where(minItems=1)]
