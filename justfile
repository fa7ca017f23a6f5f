# The tests and the checks that every change needs.
default: test lint types

# The ordinary tests, in parallel.
test *options:
    uv run pytest {{ options }}

# The long ones: 10,000 generated histories, a 100 MB session, the real client.
slow:
    uv run pytest -m slow -n 2

# Generated inputs that no run has tried: the gate tries the same ones each time.
search *options:
    CUTLINE_SEARCH=1 uv run pytest -m slow -n 2 tests/test_cut_properties.py tests/test_formats.py {{ options }}

# Style, and that the formatter would change nothing.
lint:
    uv run ruff check
    uv run ruff format --check

# The package's types, strictly.
types:
    uv run mypy

# Mend what can be mended without thinking.
fmt:
    uv run ruff check --fix
    uv run ruff format

# Write constraints.txt anew: the newest versions that the ranges admit.
constraints:
    uv lock --upgrade
    uv export --quiet --all-extras --no-hashes --no-emit-project --no-annotate --no-header > constraints.txt

# Ratios against orjson within one run.
bench:
    uv run python benchmarks/bench_cut.py

# What the project's CI runs.
ci:
    .ci/run
