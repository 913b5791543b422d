"""A data set that no program can fetch: its cells say how to get it, and the others go on."""

from pathlib import Path

from checkouts import copy_checkout, run
from quick_study import edit, stale_jobs

from faceoff.records.record import read_record


def test_cells_without_their_data_set_fail_and_the_others_go_on(tmp_path: Path):
    root = copy_checkout(tmp_path / "faceoff")
    edit(root, "config/benchmarks/ncf.yaml", "target: 0.63\n", "target: 0.4\n")
    study = "config/studies/laptop.yaml"
    edit(root, study, "[ncf-tiny, resnet50-tiny]", "[ncf-tiny, resnet50-reference]")
    edit(root, study, "[1x1, 1x2]", "[1x1]")
    edit(root, study, "[1, 2, 3]", "[1]")
    edit(
        root,
        study,
        "figures: [time_to_target, epochs_to_target, throughput, scaling, quality_curve]",
        "figures: [throughput]",
    )
    edit(root, "config/config.yaml", "[laptop, r7525-a100-a30]", "[laptop]")
    result = run("snakemake", "--cores", "2", "results/figures", cwd=root)

    reference = "results/train/resnet50-reference/laptop/1x1/seed1/record.json"
    failed = read_record(root / reference)
    assert failed["outcome"] == "failed"
    for text in ("sign up at https://www.image-net.org", "config/data/imagenet.yaml", "n01440764"):
        assert text in failed["reason"]
        assert text in result.stdout + result.stderr
    assert read_record(root / "results/train/ncf-tiny/laptop/1x1/seed1/record.json")["outcome"] == "ok"
    assert (root / "results/figures/laptop/throughput.svg").is_file()

    assert {job for job in stale_jobs(root) if job.split()[0] in ("prepare_dataset", "train_model")} == {
        "prepare_dataset imagenet",
        "train_model resnet50-reference/laptop/1x1/seed1",
    }
