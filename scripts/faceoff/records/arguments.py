"""Arguments that several programs read alike."""

import json
from pathlib import Path
from typing import Any

from faceoff.errors import ConfigError


def json_argument(text: str) -> Any:
    """Return the JSON that `text` is or, when it starts as neither object nor list, that the file of that name holds.

    Raises ConfigError when there is no such file or it is no JSON.
    """
    try:
        return json.loads(text if text.lstrip().startswith(("{", "[")) else Path(text).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ConfigError(f"expected JSON or the path of a JSON file, found {text[:80]!r}: {error}") from error
