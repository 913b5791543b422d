"""What a cell was asked, apart from where and with which seed: only answers to one question may be compared."""

from collections.abc import Mapping
from typing import Any

from faceoff.files import canonical_json, sha256_text

# Where and how it ran; everything else in a spec is the question.
CIRCUMSTANCES = ("accelerator", "expected_devices", "layout", "seed", "sharing", "stack")


def question_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the question in a training cell's spec: network, data, target, hyperparameters, batch, budget, clock."""
    return {key: value for key, value in spec.items() if key not in CIRCUMSTANCES}


def question_hash(question: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that stand for a question."""
    return sha256_text(canonical_json(dict(question)))[:16]


def question_note(recorded: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return in words how a recorded question differs from the present one, as "target: recorded 0.97, now 0.9"."""
    before, after = _flat(recorded), _flat(now)
    differences = [
        f"{key}: recorded {before.get(key, 'nothing')}, now {after.get(key, 'nothing')}"
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key)
    ]
    return "; ".join(differences) or None


def _flat(question: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in question.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat
