#!/bin/sh
# Everything that make test leaves out: race-built servers, soak, load and fairness on
# several nodes, every browser journey, the full crash suite on both databases,
# the race detector on every package, and fuzzing with new seeds.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

STEPMILL_TEST_LONG=1
export STEPMILL_TEST_LONG

require_go
require_cc
require_node
require_chromium
require_postgres

packages >"$scratch/packages"
grep '/stepmill/test/' "$scratch/packages" >"$scratch/blackbox"
grep -v '/stepmill/test/' "$scratch/packages" >"$scratch/unit"

step "npm packages for the tests"
npm ci --prefix test/receivers --ignore-scripts --no-audit --no-fund

try "every browser journey" sh scripts/web.sh journeys

# More parallel tests than cores: the PostgreSQL tests mostly wait.
race_packages() { test_race -parallel 4 -timeout 25m $(cat "$scratch/unit"); }
try "packages under the race detector" race_packages
try "a crash at every write" go test -timeout 25m -run '^TestCrashAtEveryWrite$' ./internal/engine

# -count=1 bypasses the test cache, which does not track the binary under test.
STEPMILL_TEST_BIN=$scratch/bin
export STEPMILL_TEST_BIN
race_blackbox() { test_race -timeout 30m -count=1 -p 2 $(cat "$scratch/blackbox"); }
try "black-box tests of race-built servers" race_blackbox
on_postgres() { STEPMILL_TEST_DATABASE=postgres go test -timeout 25m -count=1 -p 2 ./test/crash ./test/scripts ./test/receivers; }
try "black-box tests on PostgreSQL" on_postgres

try "fuzzing" make --no-print-directory fuzz FUZZTIME="${FUZZTIME:-10s}"
# A fixed seed: whether the lane passes must not depend on luck. make fuzz-api uses a
# new one each time.
try "fuzzing the API" make --no-print-directory fuzz-api FUZZTIME="${FUZZTIME:-1m}" FUZZ_SEED="${FUZZ_SEED:-1}"
verdict
