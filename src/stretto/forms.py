"""How a document of schedules is written, besides text, JSON and MLIR: the one list."""

from __future__ import annotations

from typing import Literal, TypeGuard, get_args

Form = Literal["csv", "html", "trace", "svg"]
"""A row an operation, a page to look through, a trace for Perfetto, a picture."""
FORMS: tuple[Form, ...] = get_args(Form)


def is_form(text: str) -> TypeGuard[Form]:
    """Whether there is a form of that name."""
    return text in FORMS
