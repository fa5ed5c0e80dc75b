# Every command of the project. `make lab`, `make demo` and `make test` set up what they need.
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)
JOBS ?= $(shell nproc)
# A worker for every core, and one more for every four: a fifth of the time, tests wait for a browser or a device.
WORKERS ?= $(shell echo $$(($(JOBS) + ($(JOBS) + 3) / 4)))
MODEL ?=
LESSON ?=
ICD ?=
PYTEST_ARGS ?=
# Python starts hundreds of times in the tests: each module is compiled once.
unexport PYTHONDONTWRITEBYTECODE
LINT = ruff check . && ruff format --check --quiet . && lint-imports --no-logo && mypy

help:           ## this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

lab:            ## set up and open JupyterLab on the first lesson (LESSON=6: on that one)
	@scripts/setup.sh lab
	@lite lab $(LESSON)

demo:           ## set up and take a model through the whole walk, no browser (MODEL=FILE)
	@scripts/setup.sh run
	@scripts/demo.sh $(MODEL)

test:           ## set up, lint, and run the tests
	@scripts/setup.sh test
	@# Tests also wait for browsers and devices: the linters run beside them.
	@found=$$(mktemp); { $(LINT); } > "$$found" 2>&1 & linters=$$!; \
		pytest --all -n $(WORKERS) --dist worksteal $(PYTEST_ARGS); tests=$$?; \
		wait $$linters; lint=$$?; [ $$lint = 0 ] || cat "$$found"; rm -f "$$found"; \
		exit $$(( tests ? tests : lint ))

test-sweeps:    ## the same once more: under sanitizers, simulated, on 32-bit ARM, with every real model
	@scripts/setup.sh test
	@# Tests that need a build wait for its lock (tests/tools.py); the others run meanwhile.
	@mkdir -p build; exec 8> build/.sweeps; flock 8; \
		scripts/sweep_builds.sh & builds=$$!; exec 8>&-; \
		pytest --sweeps -n $(WORKERS) --dist worksteal $(PYTEST_ARGS); tests=$$?; \
		wait $$builds; built=$$?; exit $$(( tests ? tests : built ))

test-opencl:    ## the OpenCL tests on one driver alone (ICD=FILE: an .icd file or the driver's library)
	@[ -n "$(ICD)" ] || { echo "error: ICD names no driver; make test-opencl ICD=/etc/OpenCL/vendors/pocl.icd" >&2; exit 2; }
	@[ -e "$(ICD)" ] || { echo "error: ICD=$(ICD): no such file" >&2; exit 2; }
	@scripts/setup.sh test
	@OCL_ICD_VENDORS=$(abspath $(ICD)) LITE_TEST_REQUIRE=opencl \
		pytest -m "opencl and not (simulator or browser or hours)" -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

test-long:      ## sweeps of hours: every network, every OpenCL program for every chip, every fault
	@scripts/setup.sh test
	@scripts/sweep_builds.sh
	@pytest -m "hours or opencl and not (simulator or browser)" -n $(JOBS) --dist worksteal $(PYTEST_ARGS)

lint:           ## ruff, import contracts, types
	@scripts/setup.sh test
	$(LINT)

format:         ## ruff's formatter and its safe fixes
	@scripts/setup.sh test
	ruff format --quiet .
	ruff check --fix --quiet .

bench:          ## set up and measure (BENCH="…" passes arguments)
	@scripts/setup.sh test
	@python -m benchmarks.environments
	@python -m benchmarks $(BENCH)

docs:           ## build the documentation into site/
	@scripts/setup.sh test
	@python scripts/docs.py
	@python scripts/gallery.py
	@mkdocs build --quiet --strict

site: docs      ## the documentation and the page that runs models, Try it here, into site/ for any static server
	@python scripts/try_page.py site/try

messages:       ## every text for translators, build/lite_workbench.pot (LOCALE=de: and that catalogue)
	@scripts/setup.sh test
	@python scripts/messages.py $(LOCALE)

bundle:         ## the widgets' JavaScript, bundled where a source changed
	@python3 scripts/bundle.py

native:         ## native library and runner into the source tree (incremental)
	@scripts/native.sh native

native-arm:     ## the same for AArch64, with the cross compiler
	@scripts/native.sh aarch64

native-armhf:   ## the same for 32-bit ARM with NEON, with its cross compiler
	@scripts/native.sh armv7

native-wasm:    ## the same as WebAssembly, with zig (pip install ziglang)
	@scripts/native.sh wasm

native-asan:    ## build/asan: library and lite_run under AddressSanitizer and UBSan
	@scripts/native.sh asan

native-tsan:    ## build/tsan: library and lite_run under ThreadSanitizer
	@scripts/native.sh tsan

wheel:          ## dist/: a wheel for this machine
	@scripts/setup.sh test
	@scripts/wheel.sh

wheel-arm:      ## dist/: a wheel for AArch64 Linux, cross-built
	@scripts/setup.sh test
	@scripts/wheel.sh aarch64

wheels:         ## dist/: wheels for Linux (glibc, musl), macOS and Windows, cross-built here with zig (pip install ziglang)
	@scripts/setup.sh test
	@scripts/wheel.sh all

sdist:          ## dist/: the sources with the bundle of the widgets, to build wheels from
	@scripts/setup.sh test
	@python -m build --sdist --no-isolation --skip-dependency-check -Cbuild-dir=build/sdist .

clean:          ## forget every build (keeps .venv)
	rm -rf build dist site out widgets/node_modules widgets/lite_widgets/static
	cd engine/lite_engine/_native && rm -rf bin lib include *.so*

.PHONY: help lab demo test test-sweeps test-opencl test-long lint format bench docs site messages bundle native native-wasm native-arm native-armhf native-asan native-tsan wheel \
	wheel-arm wheels sdist clean
