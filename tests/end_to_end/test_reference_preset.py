"""A reference preset through the whole workflow, on a miniature of its data set in its real format."""

from pathlib import Path

import pytest
from checkouts import copy_checkout, run
from quick_study import edit
from unit.miniature_imagenet import CLASSES, TRAIN, VALIDATION, folders, shards

from faceoff.records.record import read_record

FACTS = "facts: {classes: 1000, train_images: 1281167, validation_images: 50000}"
COUNTS = f"train_images: {len(CLASSES) * TRAIN}, validation_images: {len(CLASSES) * VALIDATION}"


@pytest.mark.parametrize("layout", ["folders", "tfrecord"])
def test_resnet50_reference_on_a_miniature_of_imagenet(tmp_path: Path, layout: str):
    source = folders(tmp_path / "images")
    if layout == "tfrecord":
        source = shards(tmp_path / "shards", source)
    root = copy_checkout(tmp_path / "faceoff")
    edit(root, "config/data/imagenet.yaml", "path: null", f"path: {source.root}")
    classes = len(CLASSES) if layout == "folders" else 1000
    edit(root, "config/data/imagenet.yaml", FACTS, f"facts: {{classes: {classes}, {COUNTS}}}")
    card = "config/benchmarks/resnet50.yaml"
    edit(root, card, "evaluate_every: 4\n", "evaluate_every: 1\n")
    edit(root, card, "budget: {epochs: 100, seconds: 1209600}", "budget: {epochs: 1, seconds: 600}")
    edit(root, card, "batch: {size: 128, per: accelerator}", "batch: {size: 4, per: accelerator}")
    edit(root, card, "precision: fp16", "precision: fp32")
    edit(root, "config/studies/laptop.yaml", "[ncf-tiny, resnet50-tiny]", "[resnet50-reference]")
    record = "results/train/resnet50-reference/laptop/1x1/seed1/record.json"
    run("snakemake", "--cores", "2", record, cwd=root)

    found = read_record(root / record)
    measured = found["measured"]
    assert (found["outcome"], measured["steps"]["value"]) == ("dnf", 3), found["reason"]
    assert measured["parameters"]["value"] == 25_557_032
    assert measured["prepare"]["value"] + measured["init"]["value"] < measured["elapsed"]["value"], "v0.5 counts both"
    assert measured["wait"]["value"] > 0
    assert (root / record).with_name("model.safetensors").stat().st_size > 4 * 25_557_032
