"""Trains cells on this machine's GPUs through train_model.py and prints a table of what was measured.

    python tests/benchmarks/train_on_gpu.py --output OUT ncf-tiny/laptop/1x1/seed1 ncf-tiny/laptop/1x1/seed2

Run it at the top of a checkout whose data sets have been prepared. OUT gets records, telemetry and table.md. The first
cell is also killed after its first checkpoint and run again, to see that it resumes.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from faceoff.measurement.attempts import read_marker
from faceoff.records.record import read_record
from faceoff.study.by_hand import command_by_hand


def main() -> None:
    """Train each cell, then print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--precisions", nargs="+", default=["fp32"])
    parser.add_argument("cells", nargs="+")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.cells:
        for precision in arguments.precisions:
            train(command(name, precision))
            rows.append((precision, keep(name, precision, arguments.output)))
    rows.append(("killed and resumed", resume(arguments.cells[0], arguments.output)))
    text = table(rows)
    print(text)
    (arguments.output / "table.md").write_text(text)


def command(name: str, precision: str, **changes: object) -> list[str]:
    """Return the command of a cell in another precision."""
    words = command_by_hand(Path(), name)
    place = words.index("--spec") + 1
    words[place] = json.dumps({**json.loads(words[place]), "precision": precision, **changes})
    return [sys.executable, *words[1:]]


def train(words: list[str]) -> None:
    """Measure one cell from nothing."""
    print(shlex.join(words[:4]), flush=True)
    directory = Path("results/train") / words[words.index("--cell") + 1]
    shutil.rmtree(directory, ignore_errors=True)
    subprocess.run(words, check=True)


def keep(name: str, label: str, output: Path) -> dict:
    """Copy a cell's record and telemetry to the output, and return the record."""
    source, stem = Path("results/train") / name, f"{name.replace('/', '-')}-{label.replace(' ', '-')}"
    shutil.copy(source / "record.json", output / f"{stem}.json")
    return read_record(source / "record.json")


def resume(name: str, output: Path) -> dict:
    """Kill the first cell after its first checkpoint, run it again to its end, and return the record."""
    words = command(name, "fp32", target=2.0, budget={"epochs": 40, "seconds": 300})
    directory = Path("results/train") / name
    shutil.rmtree(directory, ignore_errors=True)
    process = subprocess.Popen(words)
    while not list(directory.glob(".segments/*/checkpoint.safetensors")):
        time.sleep(0.01)
    marker = read_marker(directory)
    assert marker is not None
    os.kill(marker.pid, signal.SIGKILL)
    process.wait()
    subprocess.run(words, check=True)
    record = keep(name, "killed and resumed", output)
    assert record["resumed"], "it began anew"
    return record


def table(rows: list[tuple[str, dict]]) -> str:
    """Return a Markdown table of records."""
    heads = [
        "cell",
        "run",
        "outcome",
        "epochs",
        "quality",
        "samples/s",
        "time (s)",
        "init (s)",
        "train (s)",
        "wait (s)",
        "mean power (W)",
        "GPU memory (MiB)",
        "samples of telemetry",
        "longest gap (s)",
    ]
    lines = [" | ".join(heads), " | ".join("---" for _ in heads)]
    for label, record in rows:
        measured, telemetry = record["measured"], record["telemetry"]
        cell = record["cell"]
        memory = max(
            (value for key, value in telemetry["maxima"].items() if key.endswith("memory_used_bytes")), default=0
        )
        numbers = (
            [measured[key]["value"] for key in ("epochs", "quality", "throughput", "elapsed", "init", "train", "wait")]
            if measured
            else []
        )
        lines.append(
            " | ".join(
                [
                    f"{cell['workload']} {cell['layout']} seed {cell['seed']}",
                    label,
                    record["outcome"] + record["reason"],
                    *(f"{number:.5g}" for number in numbers),
                    str(telemetry["means"].get("power_w")),
                    f"{memory / 2**20:.0f}",
                    str(telemetry["samples"]),
                    str(telemetry["max_gap_s"]),
                ]
            )
        )
    provenance = rows[0][1]["provenance"]
    head = (
        f"{datetime.now(UTC):%Y-%m-%d}, {', '.join(sorted(set(provenance['devices'])))}, "
        f"driver {provenance['identity'].get('driver')}, {provenance['versions']}, `{shlex.join(sys.argv)}`"
    )
    return f"{head}\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n"


if __name__ == "__main__":
    main()
