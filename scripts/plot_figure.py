"""Draw one figure of a study from its table of records; each output's suffix (svg, png, pdf) names its format."""

import argparse
import importlib
import sys
from pathlib import Path

from faceoff.errors import ConfigError, FaceoffError
from faceoff.figures import style
from faceoff.records.arguments import presentation_argument
from faceoff.records.frame import read_records


def main() -> None:
    """Read the command line, then draw and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", required=True, help="a module of faceoff.figures, such as time_to_target")
    parser.add_argument("--records", type=Path, required=True, help="results/records/STUDY.parquet")
    parser.add_argument(
        "--presentation", type=presentation_argument, required=True, help="JSON, or the path of its file"
    )
    parser.add_argument("--output", type=Path, nargs="+", required=True)
    arguments = parser.parse_args()
    name = f"faceoff.figures.{arguments.figure}"
    try:
        draw = importlib.import_module(name).draw
    except (ModuleNotFoundError, AttributeError) as error:
        raise ConfigError(
            f"--figure: expected a module of faceoff.figures with draw(), found {name}: {error}"
        ) from error
    style.save(draw(read_records(arguments.records), arguments.presentation), arguments.output)


if __name__ == "__main__":
    try:
        main()
    except FaceoffError as error:
        sys.exit(f"{Path(__file__).name}: {error}")
