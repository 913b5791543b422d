"""Check a collection of published results (CSV) and write it as Parquet."""

import argparse
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.records.published import read_collection, write_collection


def main() -> None:
    """Read the command line, then check and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=Path, required=True, help="config/published/COLLECTION.csv")
    parser.add_argument("--output", type=Path, required=True, help="results/published/COLLECTION.parquet")
    arguments = parser.parse_args()
    write_collection(read_collection(arguments.input), arguments.output)


if __name__ == "__main__":
    try:
        main()
    except (FaceoffError, OSError) as error:
        sys.exit(f"{Path(__file__).name}: {error}")
