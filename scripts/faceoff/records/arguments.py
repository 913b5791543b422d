"""Arguments that several programs read alike."""

import json
from pathlib import Path
from typing import Any

from faceoff.errors import ConfigError


def presentation_argument(text: str) -> dict[str, Any]:
    """Return a presentation, its systems and workloads in the order in which they are to be drawn.

    Their order is told apart, in `order`, because the JSON's own keys are sorted. Raises ConfigError as json_argument.
    """
    presentation = json_argument(text)
    for part, names in presentation.get("order", {}).items():
        found = presentation[part]
        presentation[part] = {name: found[name] for name in names if name in found}
    return presentation


def json_argument(text: str) -> Any:
    """Return the JSON that `text` is or, when it starts as neither object nor list, that the file of that name holds.

    Raises ConfigError when there is no such file or it is no JSON.
    """
    try:
        return json.loads(text if text.lstrip().startswith(("{", "[")) else Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"expected JSON or the path of a JSON file, found {text[:80]!r}: {error}") from error
