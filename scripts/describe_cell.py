"""Print the command that measures one cell by hand, with what the configuration asks of it.

    eval "$(python scripts/describe_cell.py ncf-tiny/laptop/1x1/seed1)"

The data set must have been prepared: snakemake results/data/movielens-100k/manifest.json
"""

import argparse
import shlex
import sys
from pathlib import Path

from faceoff.errors import FaceoffError
from faceoff.study.by_hand import command_by_hand


def main() -> None:
    """Print the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cell", help="workload/system/layout/seedN; it need not be in a study")
    arguments = parser.parse_args()
    print(shlex.join(command_by_hand(Path(), arguments.cell)))


if __name__ == "__main__":
    try:
        main()
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
