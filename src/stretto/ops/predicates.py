"""How two numbers are compared: one row a predicate of `arith.cmpi` and `arith.cmpf`.

    slt   less, of integers with a sign    less   {0} < {1}     less_than signed

The rows of each stand in the order of the numbers that MLIR's generic form has for them.
"""

from __future__ import annotations

from typing import NamedTuple


class Predicate(NamedTuple):
    """One way to compare."""

    name: str
    """As MLIR spells it."""
    numpy: str
    """A function of `simulation/values.py` or of NumPy."""
    gluon: str
    """As in a row of an operation."""
    tileir: str
    """What attributes of `cmpi` or `cmpf` say; `-`: none says it."""


INTEGERS = (
    Predicate("eq", "equal", "{0} == {1}", "equal"),
    Predicate("ne", "not_equal", "{0} != {1}", "not_equal"),
    Predicate("slt", "less", "{0} < {1}", "less_than signed"),
    Predicate("sle", "less_equal", "{0} <= {1}", "less_than_or_equal signed"),
    Predicate("sgt", "greater", "{0} > {1}", "greater_than signed"),
    Predicate("sge", "greater_equal", "{0} >= {1}", "greater_than_or_equal signed"),
    Predicate("ult", "unsigned_less", "{u0} < {u1}", "less_than unsigned"),
    Predicate("ule", "unsigned_less_equal", "{u0} <= {u1}", "less_than_or_equal unsigned"),
    Predicate("ugt", "unsigned_greater", "{u0} > {u1}", "greater_than unsigned"),
    Predicate("uge", "unsigned_greater_equal", "{u0} >= {u1}", "greater_than_or_equal unsigned"),
)
FLOATS = (
    Predicate("false", "never", "({0} != {0}) & ({0} == {0})", "-"),
    Predicate("oeq", "equal", "{0} == {1}", "equal ordered"),
    Predicate("ogt", "greater", "{0} > {1}", "greater_than ordered"),
    Predicate("oge", "greater_equal", "{0} >= {1}", "greater_than_or_equal ordered"),
    Predicate("olt", "less", "{0} < {1}", "less_than ordered"),
    Predicate("ole", "less_equal", "{0} <= {1}", "less_than_or_equal ordered"),
    Predicate("one", "ordered_not_equal", "({0} < {1}) | ({0} > {1})", "not_equal ordered"),
    Predicate("ord", "ordered", "({0} == {0}) & ({1} == {1})", "-"),
    Predicate("ueq", "unordered_equal", "~(({0} < {1}) | ({0} > {1}))", "equal unordered"),
    Predicate("ugt", "unordered_greater", "~({0} <= {1})", "greater_than unordered"),
    Predicate("uge", "unordered_greater_equal", "~({0} < {1})", "greater_than_or_equal unordered"),
    Predicate("ult", "unordered_less", "~({0} >= {1})", "less_than unordered"),
    Predicate("ule", "unordered_less_equal", "~({0} > {1})", "less_than_or_equal unordered"),
    Predicate("une", "not_equal", "{0} != {1}", "not_equal unordered"),
    Predicate("uno", "unordered", "({0} != {0}) | ({1} != {1})", "-"),
    Predicate("true", "always", "({0} != {0}) | ({0} == {0})", "-"),
)
PREDICATES: dict[str, dict[str, Predicate]] = {
    "arith.cmpi": {row.name: row for row in INTEGERS},
    "arith.cmpf": {row.name: row for row in FLOATS},
}
"""By the operation, then by name."""
