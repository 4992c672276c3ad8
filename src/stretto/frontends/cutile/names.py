"""What arithmetic of Tile IR is called in a kernel: one row each.

addf              arith.addf
divi signed, rounding<negative_inf>    arith.floordivsi
"""

from __future__ import annotations

FLOATS = {
    "absf": "math.absf",
    "addf": "arith.addf",
    "ceil": "math.ceil",
    "cos": "math.cos",
    "cosh": "math.cosh",
    "divf": "arith.divf",
    "exp": "math.exp",
    "exp2": "math.exp2",
    "floor": "math.floor",
    "fma": "math.fma",
    "fpowf": "math.powf",
    "log": "math.log",
    "log2": "math.log2",
    "mulf": "arith.mulf",
    "negf": "arith.negf",
    "remf": "arith.remf",
    "rsqrt": "math.rsqrt",
    "sin": "math.sin",
    "sinh": "math.sinh",
    "sqrt": "math.sqrt",
    "subf": "arith.subf",
    "tan": "math.tan",
    "tanh": "math.tanh",
}
INTEGERS = {
    "absi": "math.absi",
    "addi": "arith.addi",
    "andi": "arith.andi",
    "mulhii": "arith.mulhiui",
    "muli": "arith.muli",
    "ori": "arith.ori",
    "shli": "arith.shli",
    "subi": "arith.subi",
    "xori": "arith.xori",
}
SIGNED = {
    "maxi": ("arith.maxui", "arith.maxsi"),
    "mini": ("arith.minui", "arith.minsi"),
    "remi": ("arith.remui", "arith.remsi"),
    "shri": ("arith.shrui", "arith.shrsi"),
}
"""Unsigned, signed."""
DIVISIONS = {
    ("unsigned", "zero"): "arith.divui",
    ("unsigned", "negative_inf"): "arith.divui",
    ("unsigned", "positive_inf"): "arith.ceildivui",
    ("signed", "zero"): "arith.divsi",
    ("signed", "negative_inf"): "arith.floordivsi",
    ("signed", "positive_inf"): "arith.ceildivsi",
}
EXTREMES = {
    ("maxf", False): "arith.maxnumf",
    ("maxf", True): "arith.maximumf",
    ("minf", False): "arith.minnumf",
    ("minf", True): "arith.minimumf",
}
PREDICATES = {
    "equal": "eq",
    "not_equal": "ne",
    "less_than": "lt",
    "less_than_or_equal": "le",
    "greater_than": "gt",
    "greater_than_or_equal": "ge",
}
COMPARISONS = {"cmpf": "arith.cmpf", "cmpi": "arith.cmpi"}

# What is written for something else.
BITCAST = "arith.bitcast"
CONSTANT = "arith.constant"
FROM_SIGNED = "arith.sitofp"
FROM_UNSIGNED = "arith.uitofp"
NARROW = "arith.trunci"
NARROW_FLOAT = "arith.truncf"
POWER = "math.powf"
SELECT = "arith.select"
SUBTRACT = "arith.subi"
TO_SIGNED = "arith.fptosi"
TO_UNSIGNED = "arith.fptoui"
WIDEN_FLOAT = "arith.extf"
WIDEN_SIGNED = "arith.extsi"
WIDEN_UNSIGNED = "arith.extui"
MULTIPLY = "arith.muli"
DIVIDE_UP = "arith.ceildivsi"
