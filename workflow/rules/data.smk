rule prepare_dataset:
    output:
        "results/data/{dataset}/manifest.json",
    log:
        "logs/prepare_dataset/{dataset}.log",
    benchmark:
        "logs/prepare_dataset/{dataset}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        asked=lambda w: jobs.dataset_asked(w.dataset),
        code=lambda w: jobs.dataset_code(w.dataset),
        failures=lambda w: jobs.dataset_failures(w.dataset),
    shell:
        "python scripts/prepare_dataset.py --card config/data/{wildcards.dataset:q}.yaml --output {output:q} --record-failure"
        " > {log:q} 2>&1"


rule describe_system:
    output:
        "results/systems/{system}.json",
    log:
        "logs/describe_system/{system}.log",
    benchmark:
        "logs/describe_system/{system}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        code=jobs.code("describe_system"),
        identity=lambda w: jobs.present_identity(w.system),
        system=lambda w: jobs.system(w.system),
    shell:
        "python scripts/describe_system.py --system {params.system:q} --output {output:q} > {log:q} 2>&1"
