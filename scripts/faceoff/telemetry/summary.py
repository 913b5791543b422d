"""Telemetry after a measurement: the samples of the timed window, as Parquet and in numbers."""

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from faceoff.files import atomic_path
from faceoff.telemetry.nvml import THROTTLE_REASONS

Window = tuple[float, float] | None

LONGEST_GAP_S = 1.0  # MLPerf's power rules ask for at least one sample a second
LONGEST_ENERGY_GAP_S = 2.0  # one reading may fail; more, and nobody knows what was drawn
SHORTEST_ENERGY_WINDOW_S = 30.0
COUNTERS = ("energy_j", "throttle_reasons")  # a mean or a maximum of these says nothing
TIME = "time_s"
POWER = "power_w"


@dataclass(frozen=True)
class Telemetry:
    """A sampler's file: columns of equal length, NaN where a field is missing, and why it is."""

    header: dict[str, Any]
    columns: dict[str, np.ndarray]
    missing: dict[str, str] = field(default_factory=dict)
    unreadable_lines: int = 0

    @property
    def times(self) -> np.ndarray:
        """Unix time of each sample, s, in order."""
        return self.columns[TIME]


def read_telemetry(jsonl: Path) -> Telemetry:
    """Read a sampler's file; one that does not exist holds no samples. Lines cut by a kill are counted, not read."""
    header: dict[str, Any] = {}
    missing: dict[str, str] = {}
    columns: dict[str, array] = {TIME: array("d")}
    unreadable = samples = 0
    for line in _lines(jsonl):
        try:
            entry = json.loads(line)
            if "header" in entry:
                header = dict(entry["header"])
            elif "missing" in entry:
                missing |= {str(name): str(why) for name, why in entry["missing"].items()}
            else:
                values = {name: np.nan if value is None else float(value) for name, value in entry.items()}
                if not np.isfinite(values.get(TIME, np.nan)) or any(map(np.isinf, values.values())):
                    raise ValueError("no sample")
                for name, value in values.items():
                    columns.setdefault(name, array("d", [np.nan]) * samples).append(value)
                samples += 1
                for column in columns.values():
                    if len(column) < samples:
                        column.append(np.nan)
        except (ValueError, TypeError, AttributeError):
            unreadable += 1
    arrays = {name: np.asarray(column) for name, column in columns.items()}
    order = np.argsort(arrays[TIME], kind="stable")
    arrays = {name: column[order] for name, column in arrays.items()}
    total = _total_power(arrays, header)
    return Telemetry(header, arrays if total is None else {**arrays, POWER: total}, missing, unreadable)


def to_parquet(jsonl: Path, parquet: Path, window: Window) -> None:
    """Write the samples within `window` (Unix seconds; None for all) as Parquet, a float64 column a field, atomically.

    Missing values are null; `power_w` is the sum over the GPUs. Without samples the table has no rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    telemetry = read_telemetry(jsonl)
    inside = _inside(telemetry.times, window)
    table = pa.table(
        {name: pa.array(column[inside], pa.float64(), from_pandas=True) for name, column in telemetry.columns.items()}
    )
    with atomic_path(parquet) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def summarise(jsonl: Path, window: Window, interval_s: float) -> dict[str, Any]:
    """Return a record's telemetry block for the samples within `window` (Unix seconds; None for all).

    samples; interval_s asked; max_gap_s between samples or from one to the window's edge, and gap_too_long (over 1 s);
    window_s; means and maxima by field; throttle: by GPU and reason the share of samples; energy: value in J, unit and
    source, or None without a window; energies: each source apart; devices: names from the devices; missing: fields that
    failed and why.
    """
    telemetry = read_telemetry(jsonl)
    times = telemetry.times
    found = energies(telemetry, window) if window else []
    if window is None:
        window = (float(times[0]), float(times[-1])) if len(times) else (0.0, 0.0)
    inside = _inside(times, window)
    gap = longest_gap(times[inside], window)
    fields = {name: column[inside] for name, column in telemetry.columns.items() if name != TIME}
    shown = {
        name: column[~np.isnan(column)]
        for name, column in fields.items()
        if not name.endswith(COUNTERS) and not np.isnan(column).all()
    }
    gpus = telemetry.header.get("gpus", {})
    return {
        "samples": int(inside.sum()),
        "interval_s": interval_s,
        "max_gap_s": round(gap, 3),
        "gap_too_long": gap > LONGEST_GAP_S,
        "window_s": round(window[1] - window[0], 3),
        "means": {name: round(float(column.mean()), 3) for name, column in shown.items()},
        "maxima": {name: round(float(column.max()), 3) for name, column in shown.items()},
        "throttle": {index: _throttle_shares(fields.get(f"gpu{index}_throttle_reasons")) for index in gpus},
        "energy": found[0] if found else None,
        "energies": found,
        "devices": list(gpus.values()) or list(filter(None, [telemetry.header.get("cpu")])),
        "missing": telemetry.missing,
        "unreadable_lines": telemetry.unreadable_lines,
    }


def energies(telemetry: Telemetry, window: tuple[float, float]) -> list[dict[str, Any]]:
    """Return the energy used within a window by each source that can tell, the most trusted first.

    Of GPUs: NVML's energy counters, then NVML's power integrated; of a machine without GPUs: RAPL's package counters.
    Nothing for a window under 30 s, nor from a source that misses a device or two seconds of it.
    """
    if window[1] - window[0] < SHORTEST_ENERGY_WINDOW_S:
        return []
    columns, times = telemetry.columns, telemetry.times
    nothing = np.full(len(times), np.nan)
    gpus, rapl = telemetry.header.get("gpus", {}), telemetry.header.get("rapl", {})
    counted = [counter_increase(times, columns.get(f"gpu{index}_energy_j", nothing), window) for index in gpus]
    integrated = [integrate(times, columns.get(f"gpu{index}_power_w", nothing), window) for index in gpus]
    packages = [counter_increase(times, columns.get(name, nothing), window, wrap) for name, wrap in rapl.items()]
    sources = {
        f"NVML energy counter, GPUs: {len(gpus)}": counted,
        f"NVML power, integrated, GPUs: {len(gpus)}": integrated,
        f"RAPL energy counter, processor packages: {len(rapl)}": packages,
    }
    known = {source: [part for part in parts if part is not None] for source, parts in sources.items()}
    return [
        {"value": round(sum(parts), 3), "unit": "J", "source": source}
        for source, parts in known.items()
        if parts and len(parts) == len(sources[source])
    ]


def integrate(times: np.ndarray, power: np.ndarray, window: tuple[float, float]) -> float | None:
    """Return the energy in J of `power` (W, NaN where unknown) over a window, by the trapezoidal rule.

    Power is linear between two readings. None where readings leave a gap of more than 2 s.
    """
    known = ~np.isnan(power)
    times, power = times[known], power[known]
    inside = _inside(times, window)
    if not _covers(times, window) or longest_gap(times[inside], window) > LONGEST_ENERGY_GAP_S:
        return None
    points = np.concatenate([[window[0]], times[inside], [window[1]]])
    return float(np.trapezoid(np.interp(points, times, power), points))


def counter_increase(
    times: np.ndarray, counter: np.ndarray, window: tuple[float, float], wrap: float | None = None
) -> float | None:
    """Return by how much a counter grew over a window; `wrap` is where it starts again from 0.

    None where the counter has no reading within 2 s of either edge of the window, or falls though it does not wrap.
    """
    known = ~np.isnan(counter)
    times, counter = times[known], counter[known]
    if not _covers(times, window):
        return None
    steps = np.diff(counter)
    if wrap:
        steps = np.where(steps < 0, steps + wrap, steps)
    if (steps < 0).any():
        return None
    grown = np.concatenate([[0.0], np.cumsum(steps)])
    return float(np.interp(window[1], times, grown) - np.interp(window[0], times, grown))


def longest_gap(times: Sequence[float] | np.ndarray, window: tuple[float, float]) -> float:
    """Return the longest time in s within a window that holds no sample; `times` are the samples within it."""
    return float(np.diff(np.concatenate([[window[0]], times, [window[1]]])).max())


def _covers(times: np.ndarray, window: tuple[float, float]) -> bool:
    gap = LONGEST_ENERGY_GAP_S
    return len(times) > 0 and bool(times[0] <= window[0] + gap and times[-1] >= window[1] - gap)


def _inside(times: np.ndarray, window: Window) -> np.ndarray:
    if window is None:
        return np.ones(len(times), dtype=bool)
    return (times >= window[0]) & (times <= window[1])


def _total_power(columns: dict[str, np.ndarray], header: dict[str, Any]) -> np.ndarray | None:
    gpus = [columns.get(f"gpu{index}_power_w") for index in header.get("gpus", {})]
    known = [column for column in gpus if column is not None]
    return np.sum(known, axis=0) if known and len(known) == len(gpus) else None


def _throttle_shares(reasons: np.ndarray | None) -> dict[str, float]:
    if reasons is None or np.isnan(reasons).all():
        return {}
    bits = reasons[~np.isnan(reasons)].astype(np.int64)
    shares = {name: round(float((bits & bit != 0).mean()), 3) for bit, name in THROTTLE_REASONS.items()}
    return {name: share for name, share in shares.items() if share > 0}


def _lines(path: Path) -> Iterable[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            yield from filter(str.strip, stream)
    except FileNotFoundError:
        return
