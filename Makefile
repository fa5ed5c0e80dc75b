# Every command of the project. `make lab` and `make test` set up what they need.
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)

help:           ## this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

native:         ## native library and runner into the source tree (incremental)
	@scripts/native.sh native

native-arm:     ## the same for AArch64, with the cross compiler
	@scripts/native.sh aarch64

native-asan:    ## build/asan: library and lite_run under AddressSanitizer and UBSan
	@scripts/native.sh asan

native-tsan:    ## build/tsan: library and lite_run under ThreadSanitizer
	@scripts/native.sh tsan

.PHONY: help native native-arm native-asan native-tsan
