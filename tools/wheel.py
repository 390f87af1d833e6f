"""The hook of hatchling that adds compiled modules to a wheel, where it can be compiled."""

import os
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # hatchling loads this file by its path

from tools import extension  # noqa: E402 - not before the line above


class ModuleBuildHook(BuildHookInterface[Any]):
    """Without a C compiler the wheel is pure, and Refract runs on Python alone.

    With `REFRACT_PURE_WHEEL=1` it is pure in any case: a release has one for each machine that the
    compiled one does not fit.
    """

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the modules. An editable wheel takes them from the source tree as well."""
        del version
        if os.environ.get("REFRACT_PURE_WHEEL") == "1":
            return
        try:
            built = extension.build_modules(extension.PACKAGE)
        except extension.NotCompiled as exc:
            self.app.display_warning(f"Fast lane and ingest are not compiled, because {exc}.")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        for source_name, file in built.items():
            place = Path("refract", source_name).with_name(file.name)
            build_data["force_include"][str(file)] = place.as_posix()
