# The README's two commands are `make demo` and `make test`; both set up from nothing.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
DASK := .venv/dask
GPU := .venv/gpu
DOCS := .venv/docs
ECOSYSTEM := .venv/ecosystem
NODE_MODULES := viewer/node_modules/.ready
# A schedule of ours that the verifier refuses is an error in whatever is run from here.
export STRETTO_REFUSED := error
# Every command that a test starts would compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE
COMPILED := $(addprefix src/stretto/generate/kernel/,seats.py seats.pxd moving.py moving.pxd)

.PHONY: record-values setup environments chromium demo test test-deep test-oracle test-cutile test-gpu test-tritons test-dask test-browser test-ecosystem ecosystem viewer pictures test-on-gpu lint format examples docs bench bench-quality bench-exact bench-speed bench-gpu bench-batch performance wheels clean

setup: $(READY)

$(READY): pyproject.toml requirements.txt hatch_build.py $(COMPILED)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Stretto needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# All that the targets of .ci/run install; with --jobs 2, two at a time.
environments: setup $(GPU)/.ready $(ECOSYSTEM)/.part chromium $(NODE_MODULES) $(DOCS)/.ready $(DASK)/.ready

demo: setup
	$(BIN)/stretto schedule examples/attention_forward.mlir
	@mkdir -p build
	$(BIN)/stretto schedule examples/attention_forward.mlir --format html -o build/attention.html
	$(BIN)/stretto simulate examples/attention_forward.mlir --mode specialized --iterations 6
	$(BIN)/stretto explain examples/over_smem.json
	@echo "The schedule of attention to look at, in any browser: build/attention.html"

test: setup
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The same property tests with many more examples.
test-deep: setup
	STRETTO_HYPOTHESIS=deep $(BIN)/python -m pytest -n 2 --dist worksteal

# Our generic form, read by upstream MLIR in an environment of its own (jaxlib ships the bindings).
ORACLE := .venv/oracle
test-oracle: setup $(ORACLE)/.ready
	$(BIN)/python tests/oracle/compare.py $(ORACLE)/bin/python

$(ORACLE)/.ready: tests/oracle/requirements.txt
	$(PYTHON) -m venv $(ORACLE)
	$(ORACLE)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	touch $@

# Tile IR bytecode, as cuTile itself writes it and disassembles it, in an environment of its own.
CUTILE := .venv/cutile
test-cutile: setup $(CUTILE)/.ready
	$(BIN)/python tests/cutile/compare.py $(CUTILE)/bin/python

$(CUTILE)/.ready: tests/cutile/requirements.txt
	$(PYTHON) -m venv $(CUTILE)
	$(CUTILE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Batches on a Dask cluster of this machine; Dask lies in a folder beside the environment.
test-dask: setup $(DASK)/.ready
	PYTHONPATH=$(abspath $(DASK)) $(BIN)/python -m pytest -W default tests/cluster/on_dask.py

$(DASK)/.ready: tests/cluster/requirements.txt | $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(DASK) --requirement $<
	touch $@

# Of the tests with Triton itself, those of launches; all of them take minutes.
LAUNCHES := decided or overlaps or another_process or not_wait or specialized

# Emitted kernels, compiled to cubins by Triton in an environment of its own; no GPU is needed.
# What rows of operations compute, anew from Triton's interpreter: tests/ops/values.json.
record-values: setup $(GPU)/.ready
	PYTHONPATH=$$($(GPU)/bin/python -c 'import triton, os; print(os.path.dirname(os.path.dirname(triton.__file__)))') $(BIN)/python tests/ops/record_values.py
test-gpu: setup $(GPU)/.ready
	TRITON_CACHE_DIR=$(GPU)/cache $(BIN)/python tests/gpu/compile.py $(GPU)/bin/python
	TRITON_CACHE_DIR=$(GPU)/cache $(BIN)/python tests/gpu/exchanges.py $(GPU)/bin/python
	TRITON_CACHE_DIR=$(GPU)/cache $(BIN)/python tests/gpu/operations.py $(GPU)/bin/python
	TRITON_CACHE_DIR=$(GPU)/cache $(BIN)/python tests/gpu/sweeping.py $(GPU)/bin/python
	TRITON_CACHE_DIR=$(GPU)/cache $(BIN)/python tests/gpu/predicting.py $(GPU)/bin/python
	PYTHONPATH=$$(echo $(abspath $(GPU))/lib/python3.*/site-packages) $(BIN)/python -m pytest -k "$(LAUNCHES)" tests/launching/test_pipeline_triton.py
	PYTHONPATH=$$(echo $(abspath $(GPU))/lib/python3.*/site-packages) $(BIN)/python -m pytest -k "warps_and_stages or hooks" tests/launching/test_autotuner.py

# The same launches with newer versions of Triton, each installed by itself; no GPU is needed.
TRITONS ?= 3.7.1 3.8.0 3.9.0
test-tritons: setup
	for version in $(TRITONS); do \
	  test -d build/triton-$$version || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target build/triton-$$version triton==$$version || exit 1; \
	  PYTHONPATH=build/triton-$$version TRITON_CACHE_DIR=build/triton-$$version/cache $(BIN)/python -m pytest \
	    -k "$(LAUNCHES) or warps_and_stages or hooks or slower" tests/launching/test_pipeline_triton.py tests/launching/test_autotuner.py || exit 1; \
	done

$(GPU)/.ready: tests/gpu/requirements.txt
	$(PYTHON) -m venv $(GPU)
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Kernels of public libraries through every step: a part of them, recorded launches, no torch.
THROUGH = PYTHONPATH=$(ECOSYSTEM)/packages:$$(echo $(GPU)/lib/python*/site-packages) \
  TRITON_CACHE_DIR=$(ECOSYSTEM)/cache $(BIN)/python tests/ecosystem/run.py build/ecosystem
test-ecosystem: setup $(GPU)/.ready $(ECOSYSTEM)/.part
	rm -rf build/ecosystem/*.ttir build/ecosystem/*.own.json
	$(THROUGH) --part

$(ECOSYSTEM)/.part: tests/ecosystem/requirements-part.txt | $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(ECOSYSTEM)/packages --requirement $<
	touch $@

# All of them: their launches are recorded anew, by the packages' own functions; about an hour.
# TUTORIALS is a folder of Triton's tutorials; left out, they are cloned where they can be.
# UPDATE=1 rewrites the table that it is compared with.
TUTORIALS ?= $(ECOSYSTEM)/triton/python/tutorials
WITH_TORCH = TUTORIALS=$$(ls -d $(TUTORIALS) 2>/dev/null) PYTHONPATH=$(ECOSYSTEM)/packages TRITON_CACHE_DIR=$(ECOSYSTEM)/cache \
  $(ECOSYSTEM)/torch/bin/python -W ignore
ecosystem: setup $(GPU)/.ready $(ECOSYSTEM)/.ready
	rm -rf build/ecosystem/*.ttir build/ecosystem/*.own.json
	$(WITH_TORCH) tests/ecosystem/record.py
	$(WITH_TORCH) tests/ecosystem/dump.py --torch build/ecosystem
	TUTORIALS=$$(ls -d $(TUTORIALS) 2>/dev/null) $(THROUGH) $(if $(UPDATE),--update)

$(ECOSYSTEM)/.ready: tests/ecosystem/requirements.txt tests/ecosystem/requirements-torch.txt | $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(ECOSYSTEM)/packages --requirement $<
	$(PYTHON) -m venv $(ECOSYSTEM)/torch
	$(ECOSYSTEM)/torch/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(word 2,$^)
	git clone --quiet --depth 1 --filter blob:none --sparse --branch v3.6.0 https://github.com/triton-lang/triton $(ECOSYSTEM)/triton \
	  && git -C $(ECOSYSTEM)/triton sparse-checkout set python/tutorials || echo "Triton's tutorials cannot be cloned; their rows stay"
	touch $@

# The viewer, in headless Chromium (Debian's package, installed where it is missing); needs Node 20.
test-browser: setup chromium $(NODE_MODULES)
	cd viewer && npm run --silent types && npm run --silent build -- --check
	cd viewer && node --test --test-concurrency=1 tests/

chromium:
	command -v chromium >/dev/null || viewer/install_chromium

# Rewrite docs/pictures/ from the shipped kernels.
pictures: setup $(NODE_MODULES)
	cd viewer && node pictures.mjs

# Rewrite the page that ships, src/stretto/report/viewer.html, from viewer/.
viewer: $(NODE_MODULES)
	cd viewer && npm run --silent types && npm run --silent build

$(NODE_MODULES): viewer/package.json viewer/package-lock.json
	cd viewer && npm ci --silent
	touch $@

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright
	$(BIN)/python docs/check_prose.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Rewrite the shipped JSON from the builder code beside it.
examples: setup
	for file in examples/*.py; do $(BIN)/python $$file || exit 1; done

# docs/api.md from signatures and docstrings, pictures from the schedule and the results that they show, a
# viewer for each kernel that ships, then all pages as a site that opens from disk; a broken
# link fails, and so does a page that would load something from elsewhere, or prose that breaks docs/style.toml.
docs: setup $(DOCS)/.ready
	$(DOCS)/bin/python docs/check_prose.py
	$(BIN)/python docs/write_api.py
	$(BIN)/python docs/draw_overlap.py
	$(BIN)/python docs/draw_attention.py
	$(BIN)/python docs/write_gallery.py build
	$(BIN)/python docs/write_commands.py build/appended
	$(DOCS)/bin/sphinx-build -q -W --keep-going -d build/doctrees docs build/site
	$(BIN)/python docs/check_site.py build/site
	@echo "build/site/index.html"

$(DOCS)/.ready: docs/requirements.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

# Ratios against the naive twins, measured side by side; writes benchmarks/results/.
bench: setup
	$(BIN)/python benchmarks/table_against_naive.py
	$(BIN)/python benchmarks/bounds_against_naive.py
	$(BIN)/python benchmarks/mlir_bodies.py
	$(BIN)/python benchmarks/kernels_in.py

# A batch of small loops that is killed on the way; BATCH="--loops 100000" takes some minutes.
bench-batch: setup
	$(BIN)/python benchmarks/batch.py $(BATCH)

# Quality and speed of the generators; CORPUS is a folder with tile-ddg/ in it, if you have one.
bench-quality: setup
	$(BIN)/python benchmarks/ablation.py
	$(BIN)/python benchmarks/quality.py $(if $(CORPUS),--corpus $(CORPUS)) $(if $(RANDOM_LOOPS),--random $(RANDOM_LOOPS))

# Proofs of the exact solver, and the textbook formulation beside them.
bench-exact: setup
	$(BIN)/python benchmarks/exact.py $(if $(CORPUS),--corpus $(CORPUS)) $(if $(RANDOM_LOOPS),--random $(RANDOM_LOOPS)) $(if $(AGAINST),--against $(AGAINST))
	$(BIN)/python benchmarks/proofs.py h200 $(if $(KERNELS),--kernels $(KERNELS))

# Speed at every size beside a C++ iterative modulo scheduler, which it builds with $(CXX); a few
# minutes. SPEED has further options (--quick, --sizes 30 100, ...); CORPUS, if you have one, is a
# folder with hatschet/ and tile-ddg/ in it, BEST the published II of each of its graphs as JSON.
bench-speed: setup
	CXX="$(CXX)" $(BIN)/python benchmarks/speed.py $(SPEED)
	$(if $(CORPUS),CXX="$(CXX)" $(BIN)/python benchmarks/speed_graphs.py --hatschet $(CORPUS)/hatschet \
	  --tiles $(CORPUS)/tile-ddg $(if $(BEST),--best $(BEST)))

# On a machine with a Hopper GPU, torch and Triton (PYTHON_GPU has them): emitted kernels are right, and how fast; and
# a sweep of configurations, predicted beside measured; make build/gpu/sweep elsewhere, and they need not be emitted there.
# TUTORIAL, if you have it, is Triton's own 06-fused-attention.py, to be compared with.
PYTHON_GPU ?= python3
build/gpu/kernels:
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/kernels.py $@
test-on-gpu: build/gpu/kernels
	$(PYTHON_GPU) benchmarks/gpu/measure.py $< --check
build/gpu/sweep:
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/sweep.py emit $@
bench-gpu: build/gpu/kernels build/gpu/sweep
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/tileiras.py measure $< -o build/gpu/results.json $(if $(TUTORIAL),--tutorial $(TUTORIAL))
	$(PYTHON_GPU) benchmarks/gpu/table.py build/gpu/results.json
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/sweep.py run $(word 2,$^) -o build/gpu/sweep.jsonl
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/predicted.py build/gpu/sweep.jsonl -o build/gpu/predicted.jsonl
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/ranked.py
	PYTHONPATH=src $(PYTHON_GPU) benchmarks/gpu/tuned.py -o build/gpu/tuned.jsonl

# Rewrite the tables and the plot of docs/performance.md from what bench-speed measured.
performance: setup
	$(BIN)/python benchmarks/speed_page.py

# What is published, into dist/: an sdist, a pure wheel, and one with the compiled core for this Python; each is
# built twice from a fresh folder and compared.
WHEELS := .venv/wheels
wheels: $(WHEELS)/.ready
	$(WHEELS)/bin/python packaging/build.py

$(WHEELS)/.ready: packaging/requirements.txt
	$(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --requirement $<
	touch $@

clean:
	rm -rf .venv viewer/node_modules .hypothesis .pytest_cache .ruff_cache .import_linter_cache
