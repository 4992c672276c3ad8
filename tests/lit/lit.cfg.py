"""How lit runs the `.mlir` tests here: tools out of the environment that runs lit itself.

lit -v tests/lit                  writes under the system's temporary folder, not beside the tests
lit -v -D exec_root=DIR tests/lit
lit -v -D tools=DIR tests/lit     the commands in DIR, which `tests/warm_tools.py` serves
"""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import lit.formats

config: Any = globals()["config"]
lit_config: Any = globals()["lit_config"]

HERE = Path(__file__).resolve().parent
TOOLS = Path(sys.executable).parent

config.name = "Stretto"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = str(HERE)
config.test_exec_root = lit_config.params.get("exec_root") or str(
    Path(tempfile.gettempdir()) / f"stretto-lit-{os.getuid()}"
)
path = (lit_config.params.get("tools"), str(TOOLS), config.environment.get("PATH", ""))
config.environment["PATH"] = os.pathsep.join(filter(None, path))
for tool in ("stretto", "stretto-opt", "xdsl-opt", "filecheck"):
    if not (TOOLS / tool).exists():
        lit_config.fatal(f"{tool} is not installed in {TOOLS}")
config.substitutions.append(("%examples", str(HERE.parent.parent / "examples")))
