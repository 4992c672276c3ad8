"""The published schemas are those of the types, and so are the words in them."""

from __future__ import annotations

import json
from typing import Any, get_args

import jsonschema
import pytest

from stretto.lower_bounds.remedies import RemedyKind, RemedyUnit
from stretto.schemas import DOCUMENTS, json_schema
from stretto.schemas.__main__ import ROOT, path_of, text_of
from stretto.verification.layout import Rule


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_published_schema_is_that_of_its_type(name: str) -> None:
    """Where it is not: `python -m stretto.schemas`."""
    jsonschema.Draft202012Validator.check_schema(json_schema(name))
    assert path_of(name).read_text("utf-8") == text_of(name)


def test_no_schema_is_published_that_no_type_stands_for() -> None:
    assert set(ROOT.rglob("*.schema.json")) == {path_of(name) for name in DOCUMENTS}


def words(name: str, of: str, field: str) -> list[str]:
    """The words that a field of a part of a document may be."""
    found: Any = json_schema(name)["$defs"][of]["properties"][field]
    return found["enum"]


def test_every_rule_of_the_verifier_may_be_told() -> None:
    assert sorted(words("verification", "RuleViolation", "rule")) == sorted(get_args(Rule))


@pytest.mark.parametrize("name", ["bounds", "schedule"])
def test_every_remedy_may_be_told(name: str) -> None:
    assert sorted(words(name, "Remedy", "unit")) == sorted(get_args(RemedyUnit))
    assert sorted(words(name, "Remedy", "kind")) == sorted(get_args(RemedyKind))


def test_a_field_that_nobody_knows_is_refused() -> None:
    document = {"schema": "stretto.error/1", "success": False, "error": "why"}
    validator: Any = jsonschema.Draft202012Validator(json_schema("error"))
    wrong = [one.message for one in validator.iter_errors(document | {"other": 1})]
    assert any("other" in told for told in wrong), json.dumps(wrong)
