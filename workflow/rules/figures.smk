rule plot_figure:
    input:
        "results/records/{study}.parquet",
    output:
        svg=report(
            "results/figures/{study}/{figure}.svg",
            caption="../report/figure.rst",
            category="{study}",
            labels={"figure": "{figure}"},
        ),
        png="results/figures/{study}/{figure}.png",
        pdf="results/figures/{study}/{figure}.pdf",
    log:
        "logs/plot_figure/{study}/{figure}.log",
    benchmark:
        "logs/plot_figure/{study}/{figure}.tsv"
    conda:
        "../../envs/default.yaml"
    params:
        code=lambda w: jobs.figure_code(w.figure),
        presentation=lambda w: jobs.figure_presentation(w.study, w.figure),
    shell:
        "python scripts/plot_figure.py --figure {wildcards.figure:q} --records {input:q}"
        " --presentation {params.presentation:q} --output {output:q} > {log:q} 2>&1"
