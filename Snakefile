"""Faceoff: puts GPU servers head to head. `snakemake --cores all results/figures` runs all of it."""

import sys
from pathlib import Path

from snakemake.utils import min_version

min_version("9.27")
sys.path.insert(0, str(Path(workflow.basedir) / "scripts"))

from faceoff.errors import FaceoffError
from faceoff.study.environment import prefer_this_python
from faceoff.study.jobs import Jobs


configfile: "config/config.yaml"


prefer_this_python()
try:
    jobs = Jobs(Path(workflow.basedir), config)
except FaceoffError as error:
    sys.exit(str(error))


wildcard_constraints:
    **jobs.wildcard_constraints(),


include: "workflow/rules/data.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/published.smk"
include: "workflow/rules/records.smk"
include: "workflow/rules/figures.smk"


# A rule whose name is the path: each figure stays a file of its own, and a deleted one is noticed.
rule:
    name:
        "results/figures"
    default_target: True
    input:
        jobs.targets(),
    localrule: True


onsuccess:
    print(jobs.bad_cells())


onerror:
    print(jobs.bad_cells())
