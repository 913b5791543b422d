"""Prices of whole systems."""

from collections.abc import Mapping
from typing import Any

from faceoff.errors import ConfigError


def price_ratio(systems: Mapping[str, Any], system: str, baseline: str) -> float:
    """Return the price of a whole system divided by the baseline's.

    A price is {"ratio": r, "relative_to": the other system}, given for either of the two, or {"amount": a,
    "currency": c} for both. Raises ConfigError otherwise.
    """
    price, base = systems[system].get("price") or {}, systems[baseline].get("price") or {}
    if price.get("relative_to") == baseline and price.get("ratio"):
        return float(price["ratio"])
    if base.get("relative_to") == system and base.get("ratio"):
        return 1.0 / float(base["ratio"])
    if price.get("amount") and base.get("amount") and price.get("currency") == base.get("currency"):
        return float(price["amount"]) / float(base["amount"])
    raise ConfigError(
        f"systems.{system}.price: expected {{ratio: 1.2, relative_to: {baseline}}} or, for both systems, "
        f"{{amount: 10000, currency: USD}}; found {price or 'no price'} beside {base or 'no price'} of {baseline}"
    )
