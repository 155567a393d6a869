# Every target installs what it needs, from nothing but Python 3.11 and pip, into .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check torture bench clean

demo: $(READY)
	$(BIN)/stepwell demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 tests/unit

torture: $(READY)
	STEPWELL_TORTURE=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder tests/laws tests/spark tests/recovery
	PYTHONPATH=tests $(BIN)/python -m querygen --queries 3000

bench: $(READY)
	$(BIN)/stepwell bench ingest

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[postgres,shell,dev]'
	touch $(READY)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis warehouse stepwell-demo stepwell-demo.html
