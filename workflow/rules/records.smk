rule collect_records:
    input:
        published=lambda w: jobs.published(w.study),
        records=lambda w: jobs.live_records(w.study),
        systems=lambda w: jobs.described_systems(w.study),
    output:
        parquet="results/records/{study}.parquet",
        csv="results/records/{study}.csv",
    log:
        "logs/collect_records/{study}.log",
    benchmark:
        "logs/collect_records/{study}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        code=jobs.code("collect_records"),
        frozen=lambda w: jobs.frozen_records(w.study),
        plan=lambda w: jobs.collection_plan(w.study),
    shell:
        "python scripts/collect_records.py --plan {params.plan:q} --published {input.published:q} --systems {input.systems:q}"
        " --parquet {output.parquet:q} --csv {output.csv:q} > {log:q} 2>&1"


rule tabulate_records:
    input:
        "results/records/{study}.parquet",
    output:
        csv="results/tables/{study}/{table}.csv",
        md="results/tables/{study}/{table}.md",
    log:
        "logs/tabulate_records/{study}/{table}.log",
    benchmark:
        "logs/tabulate_records/{study}/{table}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        code=lambda w: jobs.table_code(w.table),
        presentation=lambda w: jobs.table_presentation(w.study, w.table),
    shell:
        "python scripts/tabulate_records.py --table {wildcards.table:q} --records {input:q}"
        " --presentation {params.presentation:q} --csv {output.csv:q} --md {output.md:q} > {log:q} 2>&1"
