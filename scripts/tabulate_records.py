"""Write one table of a study from its table of records, as CSV and as Markdown."""

import argparse
import importlib
import sys
from pathlib import Path

from faceoff.errors import ConfigError, FaceoffError
from faceoff.records.arguments import presentation_argument
from faceoff.records.frame import read_records
from faceoff.tables.text import write_csv, write_markdown


def main() -> None:
    """Read the command line, then tabulate and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, help="a module of faceoff.tables, such as results")
    parser.add_argument("--records", type=Path, required=True, help="results/records/STUDY.parquet")
    parser.add_argument(
        "--presentation", type=presentation_argument, required=True, help="JSON, or the path of its file"
    )
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--md", type=Path, required=True)
    arguments = parser.parse_args()
    name = f"faceoff.tables.{arguments.table}"
    try:
        tabulate = importlib.import_module(name).tabulate
    except (ModuleNotFoundError, AttributeError) as error:
        raise ConfigError(
            f"--table: expected a module of faceoff.tables with tabulate(), found {name}: {error}"
        ) from error
    table = tabulate(read_records(arguments.records), arguments.presentation)
    write_csv(table, arguments.csv)
    write_markdown(table, arguments.md)


if __name__ == "__main__":
    try:
        main()
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
