rule train_model:
    input:
        manifest=lambda w: jobs.manifest(w.workload),
    output:
        record="results/train/{workload}/{system}/{layout}/seed{seed}/record.json",
        mllog="results/train/{workload}/{system}/{layout}/seed{seed}/mllog.txt",
        telemetry="results/train/{workload}/{system}/{layout}/seed{seed}/telemetry.parquet",
        model="results/train/{workload}/{system}/{layout}/seed{seed}/model.safetensors",
    log:
        "logs/train_model/{workload}/{system}/{layout}/seed{seed}.log",
    benchmark:
        "logs/train_model/{workload}/{system}/{layout}/seed{seed}.tsv"
    retries: 1
    conda:
        "../../envs/default.yaml"
    # A measuring job has the machine to itself. Its second attempt measures nothing: it records how the first one died.
    threads: workflow.cores
    resources:
        attempt=lambda w, attempt: attempt,
    params:
        attempts=lambda w: jobs.training_attempts(w),
        code=lambda w: jobs.training_code(w.workload),
        drift_token=lambda w: jobs.training_drift_token(w),
        spec=lambda w: jobs.training_spec(w),
    shell:
        "python scripts/train_model.py --cell {wildcards.workload:q}/{wildcards.system:q}/{wildcards.layout:q}/seed{wildcards.seed:q}"
        " --spec {params.spec:q} --manifest {input.manifest:q} --fingerprint {params.code:q} --attempt {resources.attempt:q} --failures {params.attempts:q}"
        " --drift-token={params.drift_token:q} --log {log:q} > {log:q} 2>&1"
