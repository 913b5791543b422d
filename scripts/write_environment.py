"""Writes a conda environment file from a lock, so that `snakemake --sdm conda` installs the same pins."""

import argparse
from pathlib import Path

from faceoff.files import write_text
from faceoff.study.environment import conda_environment


def main() -> None:
    """Read the lock and write the environment file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    write_text(arguments.output, conda_environment(arguments.lock.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
