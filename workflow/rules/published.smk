rule read_published:
    input:
        "config/published/{collection}.csv",
    output:
        "results/published/{collection}.parquet",
    log:
        "logs/read_published/{collection}.log",
    benchmark:
        "logs/read_published/{collection}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        code=jobs.code("read_published"),
    shell:
        "python scripts/read_published.py --input {input:q} --output {output:q} > {log:q} 2>&1"
