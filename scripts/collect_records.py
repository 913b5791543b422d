"""Collect the records of a study's cells into one table: a row a cell, also for cells that failed or never ran."""

import argparse
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.records.arguments import json_argument
from faceoff.records.collect import collect, read_collections, read_identities, write_records


def main() -> None:
    """Read the command line, then collect and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True)
    parser.add_argument("--expected", required=True, help="JSON list of cells, or the path of its file")
    parser.add_argument("--published", type=Path, nargs="*", default=[], help="results/published/*.parquet")
    parser.add_argument("--systems", type=Path, nargs="*", default=[], help="results/systems/*.json")
    parser.add_argument("--output", type=Path, required=True, help="the table as Parquet")
    parser.add_argument("--csv", type=Path, required=True, help="the table as CSV, without the curves")
    arguments = parser.parse_args()
    table = collect(
        arguments.study,
        json_argument(arguments.expected),
        read_collections(arguments.published),
        read_identities(arguments.systems),
    )
    write_records(table, arguments.output, arguments.csv)


if __name__ == "__main__":
    try:
        main()
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
