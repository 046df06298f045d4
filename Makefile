# `make` lists the targets.

MODULE   := github.com/stepmill/stepmill
PKG      ?= ./...
ARGS     ?=
PART     ?=
FUZZTIME ?= 30s

# Evaluated only by targets that use it.
VERSION = $(patsubst v%,%,$(shell git describe --tags --always --dirty 2>/dev/null || echo dev))
LDFLAGS = -s -w -X $(MODULE)/internal/config.Version=$(VERSION)

# Without -trimpath, a clone in another directory could not use what is in the build cache.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

LINTER    := bin/golangci-lint
TESTSUM   := bin/gotestsum
VULNCHECK := bin/govulncheck

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run build web pictures check test test-long race lint gen verify verify-tidy verify-gen bench fuzz fuzz-api audit clean

help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z][a-z-]*:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Start the server (ARGS=--help lists its flags)
	go run ./cmd/stepmill serve $(ARGS)

build: ## Build bin/stepmill: static, without cgo
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o bin/stepmill ./cmd/stepmill

web: ## Build the dashboard into web/dist, which is committed
	npm ci --prefix web --ignore-scripts --no-audit --no-fund
	npm run --prefix web types
	npm run --prefix web build

pictures: ## Retake the screenshots in docs/tour.md
	cd web && PICTURES=1 STEPMILL_TEST_LONG=1 npx vitest run -c vitest.e2e.config.ts e2e/tour

check: ## Run the quick checks of what changed, before a commit
	@sh scripts/check.sh

test: ## Test everything that decides whether the product works
	@sh scripts/test.sh

test-long: ## Run race detector, soak, load, every journey, fuzzing (PART=race: one part)
	@sh scripts/test-long.sh $(PART)

# Tests run several times faster without instrumenting SQLite's translated C code.
race: ## Run the tests of PKG (./...) under the race detector, uncached
	CGO_ENABLED=1 go test -race -gcflags='modernc.org/...=-race=false' -count=1 -timeout 20m $(PKG)

lint: $(LINTER) ## Run the linters on PKG (./...)
	$(LINTER) config verify
	$(LINTER) run $(PKG)

# The tools have a module of their own, so that their dependencies stay out of ours.
$(LINTER) $(TESTSUM) $(VULNCHECK): tools/go.mod tools/go.sum
	go -C tools build -o ../$@ $(TOOL)
	@touch $@

$(LINTER): TOOL := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TESTSUM): TOOL := gotest.tools/gotestsum
$(VULNCHECK): TOOL := golang.org/x/vuln/cmd/govulncheck

gen: ## Regenerate generated files
	go generate ./...

verify: ## Run all checks: tidy modules, up-to-date generated files, lint, tests
	@$(MAKE) --no-print-directory verify-tidy
	@$(MAKE) --no-print-directory verify-gen
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test

verify-tidy:
	@sh scripts/tidy.sh

# Compares the tree before and after, not with the last commit, so that it also works with uncommitted changes.
verify-gen:
	@set -eu; tmp=$$(mktemp -d); trap 'rm -rf "$$tmp"' EXIT; \
	sums() { git ls-files -z --cached --others --exclude-standard >"$$tmp/files"; xargs -0 cksum <"$$tmp/files" 2>/dev/null | sort -u; }; \
	sums >"$$tmp/before"; \
	$(MAKE) --no-print-directory gen; \
	sums >"$$tmp/after"; \
	diff "$$tmp/before" "$$tmp/after" || { echo "verify-gen: generated files were out of date; commit the changes that make gen made" >&2; exit 1; }

bench: ## Run the benchmark (ARGS sets its flags)
	go run ./bench $(ARGS)

# Before Go 1.27, running out of time can be reported as a failure without a failing input (go.dev/issue/75804).
fuzz: ## Run each fuzz target for FUZZTIME (30s)
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; \
	grep -rEo --include='*_test.go' --exclude-dir=node_modules --exclude-dir=testdata '^func Fuzz[A-Za-z0-9_]+' . \
	| sed 's|/[^/]*:func | |' | sort | { \
		failed=; \
		while read -r dir name; do \
			echo "== $$name in $$dir"; \
			go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" >"$$log" 2>&1 </dev/null && { tail -n 1 "$$log"; continue; }; \
			if grep -q '^    context deadline exceeded$$' "$$log" && ! grep -q 'Failing input' "$$log"; then echo "ok: time is up"; continue; fi; \
			cat "$$log"; failed="$$failed $$name"; \
		done; \
		test -z "$$failed" || { echo "fuzz: failed:$$failed" >&2; exit 1; }; \
	}

# FUZZTIME has a default above, which is that of make fuzz.
fuzz-api: ## Send requests made from the API's document to the server for FUZZTIME (10m); FUZZ_SEED repeats a run
	STEPMILL_FUZZ_TIME=$(if $(filter file,$(origin FUZZTIME)),10m,$(FUZZTIME)) go test -count=1 -timeout 0 -v -run '^TestAPI$$' ./test/fuzzapi

# Belongs to no test lane: a new advisory says nothing about the change under test. The
# second audit runs even if the first one fails.
audit: $(VULNCHECK) ## Look for known vulnerabilities in dependencies; needs the internet
	@failed=; \
	$(VULNCHECK) ./... || failed="$$failed govulncheck"; \
	npm audit --prefix web --omit=dev || failed="$$failed npm-audit"; \
	test -z "$$failed" || { echo "audit: failed:$$failed" >&2; exit 1; }

clean: ## Remove built files
	rm -rf bin
