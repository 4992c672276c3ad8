"""The independent checker: counts a schedule out in absolute time, rule by rule."""

from stretto.verify.layout import RULES, Rule, Violation
from stretto.verify.verifier import verify

__all__ = ["RULES", "Rule", "Violation", "verify"]
