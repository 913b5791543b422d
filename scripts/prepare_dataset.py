"""Prepare a data set: check its source, make its files, write its manifest."""

import argparse
import sys
from pathlib import Path

from faceoff.data.preparation import prepare_dataset, read_card
from faceoff.errors import FaceoffError


def main() -> None:
    """Parse the command line and prepare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--card", type=Path, required=True, help="config/data/NAME.yaml")
    parser.add_argument("--output", type=Path, required=True, help="results/data/NAME/manifest.json")
    arguments = parser.parse_args()
    try:
        prepare_dataset(read_card(arguments.card), arguments.output)
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")


if __name__ == "__main__":
    main()
