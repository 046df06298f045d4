#!/bin/sh
# The lane that decides whether the product works: every package on both
# databases, with the race detector where concurrency matters; the dashboard with
# its main browser journeys; and shorter tests of what the real binary promises
# (kill, cancel, resume, takeover). make test-long runs the rest.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

# Packages to test with the race detector.
concurrent='/internal/(engine|dispatch|dispatch/.*|membership|pubsub|sandbox|store|store/.*|webhook)$'

require_go
require_cc
require_node
require_chromium
require_postgres

packages >"$scratch/packages"
grep '/stepmill/test/' "$scratch/packages" >"$scratch/blackbox"
grep -v '/stepmill/test/' "$scratch/packages" | grep -E "$concurrent" >"$scratch/concurrent"
grep -v '/stepmill/test/' "$scratch/packages" | grep -vE "$concurrent" >"$scratch/plain"

step "gofmt"
check_format
step "go vet"
xargs go vet <"$scratch/packages"
step "npm packages for the tests"
npm ci --prefix test/receivers --ignore-scripts --no-audit --no-fund

# The journeys wait more than they compute.
try_beside "dashboard" sh scripts/web.sh main
try "packages" xargs go test -timeout 15m <"$scratch/plain"
# More parallel tests than cores: the PostgreSQL tests mostly wait.
race_packages() { test_race -parallel 4 -timeout 15m $(cat "$scratch/concurrent"); }
try "packages under the race detector" race_packages
# Under the race detector, scripts that use up all their memory take too long.
try "script memory limits" go test -timeout 10m -run '^TestMemory$' ./internal/sandbox

# -count=1 bypasses the test cache, which does not track the binary under test.
STEPMILL_TEST_BIN=$scratch/bin
export STEPMILL_TEST_BIN
try "black-box tests" xargs go test -timeout 15m -count=1 -p 4 <"$scratch/blackbox"
on_postgres() { STEPMILL_TEST_DATABASE=postgres go test -timeout 15m -count=1 -p 4 ./test/crash ./test/scripts ./test/receivers; }
try "black-box tests on PostgreSQL" on_postgres
await_beside
verdict
