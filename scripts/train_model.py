"""Trains one cell to its quality target.

By hand:    eval "$(python scripts/describe_cell.py ncf-tiny/laptop/1x1/seed1)"
As a rank:  where RANK is set (the supervisor, torchrun), the process is one rank of the run.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.measurement.launcher import enter_rank


def parse_arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cell", required=True, help="workload/system/layout/seedN")
    parser.add_argument("--spec", type=json.loads, required=True, help="what is asked, as JSON")
    parser.add_argument("--manifest", type=Path, required=True, help="the data set's manifest")
    parser.add_argument("--fingerprint", required=True, help="the hash of the code")
    parser.add_argument("--attempt", type=int, default=1, help="1, or 2 after a job that died")
    parser.add_argument("--failures", type=int, default=0, help="how often the cell had failed before, for the record")
    parser.add_argument("--drift-token", default="", help="set where a changed system is measured again")
    parser.add_argument("--log", default="", help="the log's path, for the record")
    parser.add_argument("--segment", type=Path, help="a rank's directory for checkpoint and result")
    return parser.parse_args()


def main() -> int:
    """Run as a rank or as the supervisor of all ranks; return the exit status."""
    arguments = parse_arguments()
    if "RANK" in os.environ:
        enter_rank()
        from faceoff.training.rank import run_rank

        segment = arguments.segment or Path(f"results/train/{arguments.cell}/.segments/by-hand")
        segment.mkdir(parents=True, exist_ok=True)
        return run_rank(arguments.spec, arguments.manifest, arguments.fingerprint, segment)
    from faceoff.training.cell import measure_training

    measure_training(
        arguments.cell,
        spec=arguments.spec,
        manifest=arguments.manifest,
        fingerprint=arguments.fingerprint,
        attempt=arguments.attempt,
        failures_before=arguments.failures,
        drift_token=arguments.drift_token,
        log=arguments.log,
    )
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
