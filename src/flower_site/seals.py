"""A cell's seal: a hash of its code and saved outputs, written by the notebook runner.

Code or an output that was changed without running the notebook no longer fits its seal; the check
sees that in milliseconds, long before the notebook is run again in CI.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

KEY = "flower_seal"


def seal(source: str, outputs: Iterable[Mapping[str, Any]]) -> str:
    """The seal of a code cell; how the file cuts texts into lines makes no difference."""
    content = [
        {
            "type": output["output_type"],
            "name": output.get("name", ""),
            "text": "".join(output.get("text", "")),
            "data": {
                kind: "".join(value) if isinstance(value, list) and "json" not in kind else value
                for kind, value in output.get("data", {}).items()
            },
        }
        for output in outputs
    ]
    text = json.dumps([source, content], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def broken_seal(cell: Mapping[str, Any]) -> str | None:
    """What is wrong with a code cell's seal, or None."""
    outputs = cell.get("outputs", [])
    found = cell.get("metadata", {}).get(KEY)
    if found is None:
        return "有输出，却不是由 make notebooks 运行出来的" if outputs else None
    if found != seal(cell["source"], outputs):
        return "代码或保存的输出在运行之后被改过"
    return None
