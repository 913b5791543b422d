import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faceoff.files import canonical_json
from faceoff.telemetry.summary import (
    counter_increase,
    integrate,
    longest_gap,
    read_telemetry,
    summarise,
    to_parquet,
)

START = 1_796_000_000.0


def write(path: Path, samples: list[dict], gpus: dict | None = None, rapl: dict | None = None) -> Path:
    header = {"header": {"interval_s": 0.5, "cpu": "AMD EPYC 7763", "gpus": gpus or {}, "rapl": rapl or {}}}
    path.write_text("".join(json.dumps(line) + "\n" for line in [header, *samples]))
    return path


def gpu_run(seconds: float, power: float = 200.0, **changes) -> list[dict]:
    return [
        {"time_s": START + t, "gpu0_power_w": power, "gpu0_energy_j": 1000 + power * t, "cpu_percent": 5.0, **changes}
        for t in np.arange(0, seconds + 0.25, 0.5)
    ]


def test_means_and_maxima_of_the_window_only(tmp_path: Path) -> None:
    samples = [{"time_s": START + t, "cpu_percent": float(t), "load_1min": None} for t in range(10)]
    found = summarise(write(tmp_path / "t.jsonl", samples), (START + 2, START + 5), 0.5)
    assert found["samples"] == 4
    assert (found["means"], found["maxima"]) == ({"cpu_percent": 3.5}, {"cpu_percent": 5.0})
    assert (found["window_s"], found["interval_s"], found["max_gap_s"]) == (3.0, 0.5, 1.0)
    assert found["gap_too_long"] is False
    assert found["devices"] == ["AMD EPYC 7763"]


def test_energy_of_constant_power_by_counter_and_by_integration(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", gpu_run(60), {"0": "NVIDIA A30"})
    found = summarise(path, (START + 10.2, START + 50.2), 0.5)
    assert found["energy"] == {"value": 8000.0, "unit": "J", "source": "NVML energy counter, GPUs: 1"}
    assert [(energy["value"], energy["source"]) for energy in found["energies"]] == [
        (8000.0, "NVML energy counter, GPUs: 1"),
        (8000.0, "NVML power, integrated, GPUs: 1"),
    ]
    assert (found["means"]["power_w"], found["maxima"]["power_w"]) == (200.0, 200.0)
    assert found["devices"] == ["NVIDIA A30"]
    assert "gpu0_energy_j" not in found["means"]


def test_sources_that_disagree_are_both_shown(tmp_path: Path) -> None:
    samples = [{**line, "gpu0_energy_j": 2 * line["gpu0_energy_j"]} for line in gpu_run(60)]
    found = summarise(write(tmp_path / "t.jsonl", samples, {"0": "NVIDIA A30"}), (START, START + 60), 0.5)
    assert [energy["value"] for energy in found["energies"]] == [24000.0, 12000.0]


def test_no_energy_below_30_seconds(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", gpu_run(60), {"0": "NVIDIA A30"})
    assert summarise(path, (START, START + 29.9), 0.5)["energy"] is None
    assert summarise(path, (START, START + 30.0), 0.5)["energy"]["value"] == 6000.0


def test_no_energy_when_one_of_two_gpus_does_not_tell(tmp_path: Path) -> None:
    samples = [{**line, "gpu1_power_w": None, "gpu1_energy_j": None} for line in gpu_run(60)]
    found = summarise(write(tmp_path / "t.jsonl", samples, {"0": "T4", "1": "T4"}), (START, START + 60), 0.5)
    assert (found["energy"], found["energies"]) == (None, [])
    assert "power_w" not in found["means"]


def test_no_energy_when_the_gpu_fell_off(tmp_path: Path) -> None:
    samples = gpu_run(60)
    for line in samples[60:]:
        line |= {"gpu0_power_w": None, "gpu0_energy_j": None}
    found = summarise(write(tmp_path / "t.jsonl", samples, {"0": "T4"}), (START, START + 60), 0.5)
    assert found["energy"] is None


def test_rapl_of_two_packages_one_of_which_wraps(tmp_path: Path) -> None:
    samples = [
        {"time_s": START + t, "rapl0_energy_j": (90 + 10 * t) % 262, "rapl1_energy_j": 5 * t % 262} for t in range(41)
    ]
    path = write(tmp_path / "t.jsonl", samples, rapl={"rapl0_energy_j": 262.0, "rapl1_energy_j": 262.0})
    energy = summarise(path, (START, START + 40), 0.5)["energy"]
    assert energy == {"value": 600.0, "unit": "J", "source": "RAPL energy counter, processor packages: 2"}


def test_gap_over_a_second_is_flagged_also_at_the_end(tmp_path: Path) -> None:
    samples = [line for line in gpu_run(60) if not START + 20 < line["time_s"] < START + 21.5]
    path = write(tmp_path / "t.jsonl", samples, {"0": "T4"})
    found = summarise(path, (START, START + 60), 0.5)
    assert (found["max_gap_s"], found["gap_too_long"]) == (1.5, True)
    died = summarise(path, (START, START + 70), 0.5)
    assert (died["max_gap_s"], died["gap_too_long"], died["energy"]) == (10.0, True, None)


def test_throttling_stands_beside_the_result(tmp_path: Path) -> None:
    samples = [{**line, "gpu0_throttle_reasons": 4.0 + 64.0 * (i < 30)} for i, line in enumerate(gpu_run(59.5))]
    found = summarise(write(tmp_path / "t.jsonl", samples, {"0": "T4"}), (START, START + 60), 0.5)
    assert found["throttle"] == {"0": {"power cap": 1.0, "thermal slowdown (hardware)": 0.25}}


@pytest.mark.parametrize("window", [None, (START, START + 1.0)])
def test_no_samples_at_all(tmp_path: Path, window) -> None:
    for path in (tmp_path / "none.jsonl", Path("/dev/null")):
        found = summarise(path, window, 0.5)
        assert (found["samples"], found["means"], found["energy"], found["devices"]) == (0, {}, None, [])
        to_parquet(path, tmp_path / "t.parquet", window)
        assert pq.read_table(tmp_path / "t.parquet").num_rows == 0


def test_without_a_window_everything_is_shown_but_no_energy(tmp_path: Path) -> None:
    found = summarise(write(tmp_path / "t.jsonl", gpu_run(60), {"0": "T4"}), None, 0.5)
    assert (found["samples"], found["window_s"], found["energy"]) == (121, 60.0, None)


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "null", "7", '"x"', '{"cpu_percent": 1}', '{"time_s": null}', '{"time_s": "now"}', '{"header": 7}',
     '{"time_s": 1, "cpu_percent": 1e999}', '{"time_s": 1, "cpu_percent": [1]}', '{"missing": [1]}', "\0\0\0"],
)  # fmt: skip
def test_broken_line_is_counted_and_the_rest_is_read(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "t.jsonl", gpu_run(2))
    path.write_text(path.read_text() + line + "\n" + json.dumps({"time_s": START + 3, "swap_used_bytes": 1}) + "\n")
    telemetry = read_telemetry(path)
    assert telemetry.unreadable_lines == 1
    found = summarise(path, (START, START + 3), 0.5)
    assert found["samples"] == 6
    canonical_json(found)  # holds no NaN


def test_parquet_is_cut_to_the_window_with_nulls(tmp_path: Path) -> None:
    samples = gpu_run(10)
    samples[6]["gpu0_power_w"] = None
    to_parquet(write(tmp_path / "t.jsonl", samples, {"0": "T4"}), tmp_path / "t.parquet", (START + 2, START + 4))
    table = pq.read_table(tmp_path / "t.parquet")
    assert table["time_s"].to_pylist() == [START + 2, START + 2.5, START + 3, START + 3.5, START + 4]
    assert table["gpu0_power_w"].to_pylist() == [200.0, 200.0, None, 200.0, 200.0]
    assert table["power_w"].null_count == 1
    assert {str(field.type) for field in table.schema} == {"double"}


@given(
    power=st.floats(0, 5000),
    offsets=st.lists(st.floats(0.01, 1.0), min_size=80, max_size=80),
    window=st.tuples(st.floats(0, 5), st.floats(30, 35)),
)
def test_law_of_constant_power(power: float, offsets: list[float], window: tuple[float, float]) -> None:
    times = np.cumsum([0.0, *offsets])
    window = (window[0], min(window[1], float(times[-1])))
    if window[1] <= window[0]:
        return
    expected = pytest.approx(power * (window[1] - window[0]), rel=1e-9, abs=1e-6)
    assert integrate(times, np.full(len(times), power), window) == expected
    assert counter_increase(times, 1e6 + power * times, window) == pytest.approx(
        power * (window[1] - window[0]), abs=1e-3
    )


@given(
    readings=st.lists(st.floats(0, 1000), min_size=40, max_size=40), cut=st.floats(5, 15), wrap=st.floats(100_000, 1e6)
)
def test_energy_of_two_windows_side_by_side_is_that_of_both(readings: list[float], cut: float, wrap: float) -> None:
    times = np.arange(40) * 0.5
    power = np.array(readings)
    parts = [integrate(times, power, (1.0, cut)), integrate(times, power, (cut, 18.0))]
    assert sum(parts) == pytest.approx(integrate(times, power, (1.0, 18.0)), abs=1e-6)
    counter = np.cumsum(power)
    wrapped = counter_increase(times, np.mod(counter + wrap - 50, wrap), (1.0, 18.0), wrap)
    assert wrapped == pytest.approx(counter_increase(times, counter, (1.0, 18.0)), abs=1e-6)


def test_counter_that_starts_again_tells_nothing() -> None:
    times = np.arange(10.0)
    assert counter_increase(times, np.array([5.0, 6, 7, 8, 0, 1, 2, 3, 4, 5]), (0.0, 9.0)) is None


@given(st.lists(st.floats(0, 100), max_size=30), st.floats(0, 50), st.floats(51, 100))
def test_longest_gap_lies_between_an_even_spread_and_the_window(times: list[float], start: float, end: float) -> None:
    inside = sorted(t for t in times if start <= t <= end)
    gap = longest_gap(inside, (start, end))
    assert (end - start) / (len(inside) + 1) - 1e-9 <= gap <= end - start + 1e-9


@given(
    times=st.lists(st.floats(START, START + 100), min_size=1, max_size=30),
    window=st.tuples(st.floats(START, START + 50), st.floats(START + 50, START + 100)),
)
def test_window_keeps_exactly_the_samples_within(tmp_path_factory, times: list[float], window) -> None:
    path = tmp_path_factory.mktemp("cut") / "t.jsonl"
    write(path, [{"time_s": t, "load_1min": 1.0} for t in times])
    to_parquet(path, path.with_suffix(".parquet"), window)
    kept = pq.read_table(path.with_suffix(".parquet"))["time_s"].to_pylist()
    assert kept == sorted(t for t in times if window[0] <= t <= window[1])
    assert summarise(path, window, 0.5)["samples"] == len(kept)
