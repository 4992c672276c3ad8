"""Names: what a module is called is what an import of it gives, and no public function's name."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import walk_packages

import stretto

IMPORTED = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        assert error.name is None or not error.name.startswith("stretto"), name
        continue  # of Triton or cuTile, which are not at hand
    found = {}
    exec(f"import {name} as found", found)
    assert found["found"] is sys.modules[name], name
"""


def modules() -> list[str]:
    found = walk_packages(stretto.__path__, "stretto.", onerror=lambda _: None)
    return [one.name for one in found if not one.name.endswith("__main__")]


def test_an_import_of_a_module_gives_that_module() -> None:
    names = modules()
    assert {"stretto.lower_bounds", "stretto.compile.candidates"} <= {*names}
    subprocess.run([sys.executable, "-c", IMPORTED, *names], check=True, timeout=120)


def test_no_module_has_the_name_of_a_public_function() -> None:
    assert not {name.removeprefix("stretto.") for name in modules()} & {*stretto.__all__}
