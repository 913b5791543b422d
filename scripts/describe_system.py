"""Describe a system: what the configuration says and what this machine is."""

import argparse
import json
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.files import write_json
from faceoff.measurement.description import describe_system
from faceoff.measurement.identity import identity


def main() -> None:
    """Parse the command line and write the description."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", type=json.loads, required=True, metavar="JSON", help="name, accelerator, node, ...")
    parser.add_argument("--output", type=Path, required=True, help="results/systems/NAME.json")
    arguments = parser.parse_args()
    try:
        write_json(arguments.output, describe_system(arguments.system, identity()))
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")


if __name__ == "__main__":
    main()
