"""A kernel file made ready: kernels' loops are counted, and what ends with a loop is undefined.

for i in range(n): …     ─►  for i in __loop__(n): …      in functions of gluon.jit only
                             i = <undefined after its loop>
"""

from __future__ import annotations

import ast
from typing import Any

from stretto.errors import DocumentError

LOOP = "__loop__"
UNDEFINED = "__undefined__"
VALUE = "__value__"


class LoopVariable:
    """The value of a loop's variable after its loop, which Gluon does not define."""

    def _refuse(self, *_: Any) -> Any:
        raise NameError("a loop variable is used after its loop")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __ge__ = _refuse
    __index__ = __bool__ = __int__ = __floordiv__ = __mod__ = __getattr__ = _refuse


def _is_jit(decorator: ast.expr) -> bool:
    target = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(target, ast.Attribute):
        owner = target.value
        return target.attr == "jit" and not (isinstance(owner, ast.Name) and owner.id == "triton")
    return isinstance(target, ast.Name) and target.id == "jit"


def value_of(constant: Any) -> Any:
    """A constant's value: constants are themselves here."""
    return getattr(constant, "value", constant)


def names() -> dict[str, Any]:
    """What a file that was made ready refers to."""
    from stretto.sanitizer.stand_ins.language import range_  # noqa: PLC0415 - it loads NumPy

    return {LOOP: range_, UNDEFINED: LoopVariable(), VALUE: value_of}


class _Kernels(ast.NodeTransformer):
    """Rewrites the functions that run on the device."""

    def __init__(self) -> None:
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        device = any(_is_jit(d) for d in node.decorator_list)
        self._depth += device
        self.generic_visit(node)
        self._depth -= device
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr != "value" or not isinstance(node.ctx, ast.Load):
            return node
        call = ast.Call(ast.Name(VALUE, ast.Load()), [node.value], [])
        return ast.copy_location(call, node)

    def visit_For(self, node: ast.For) -> Any:
        self.generic_visit(node)
        if not self._depth or not isinstance(node.iter, ast.Call):
            return node
        called = node.iter.func
        if not (
            (isinstance(called, ast.Name) and called.id == "range")
            or (isinstance(called, ast.Attribute) and called.attr == "range")
        ):
            return node
        node.iter.func = ast.copy_location(ast.Name(LOOP, ast.Load()), called)
        if not isinstance(node.target, ast.Name):
            return node
        gone = ast.Assign(
            targets=[ast.Name(node.target.id, ast.Store())], value=ast.Name(UNDEFINED, ast.Load())
        )
        return [node, ast.copy_location(gone, node)]


def prepared(text: str, file: str) -> Any:
    """The file's code; a fault of its syntax is told with its place."""
    try:
        tree = ast.parse(text, file)
    except SyntaxError as error:
        place = f"{error.lineno or 1}:{error.offset or 1}"
        raise DocumentError(f"{file}:{place}", "", error.msg) from error
    except ValueError as error:
        raise DocumentError(file, "", str(error)) from error
    tree = _Kernels().visit(tree)
    ast.fix_missing_locations(tree)
    return compile(tree, file, "exec", dont_inherit=True)
