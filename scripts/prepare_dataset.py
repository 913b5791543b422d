"""Prepare a data set: check its source, make its files, write its manifest."""

import argparse
import sys
from pathlib import Path

from faceoff.data.manifest import write_failure
from faceoff.data.preparation import prepare_dataset, read_card
from faceoff.errors import FaceoffError


def main() -> None:
    """Parse the command line and prepare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--card", type=Path, required=True, help="config/data/NAME.yaml")
    parser.add_argument("--output", type=Path, required=True, help="results/data/NAME/manifest.json")
    parser.add_argument("--record-failure", action="store_true", help="write a manifest that says why, and exit 0")
    arguments = parser.parse_args()
    try:
        prepare_dataset(read_card(arguments.card), arguments.output)
    except FaceoffError as error:
        if not arguments.record_failure:
            sys.exit(f"{Path(__file__).name}: {error}")
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        write_failure(arguments.output, arguments.output.parent.name, str(error))


if __name__ == "__main__":
    main()
