"""Collect the records of a study's cells into one table: a row a cell, also for cells that failed or never ran."""

import argparse
import json
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.records.collect import collect, read_collections, read_identities, write_records
from faceoff.records.expected import expected_cells


def main() -> None:
    """Read the command line, then collect and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=json.loads, required=True, help="what the study expects, as JSON")
    parser.add_argument("--published", type=Path, nargs="*", default=[], help="results/published/*.parquet")
    parser.add_argument("--systems", type=Path, nargs="*", default=[], help="results/systems/*.json")
    parser.add_argument("--parquet", type=Path, required=True, help="the table as Parquet")
    parser.add_argument("--csv", type=Path, required=True, help="the table as CSV, without the curves")
    arguments = parser.parse_args()
    table = collect(
        arguments.plan["study"],
        expected_cells(arguments.plan),
        read_collections(arguments.published),
        read_identities(arguments.systems),
    )
    write_records(table, arguments.parquet, arguments.csv)


if __name__ == "__main__":
    try:
        main()
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
