#!/bin/sh
# The lane that decides whether the product works: every package on both databases;
# the dashboard with its main browser journeys; and shorter tests of what the real
# binary promises (kill, cancel, resume, takeover). make test-long runs the rest.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

STEPMILL_TEST_BIN=$scratch/bin
export STEPMILL_TEST_BIN

# More parallel tests than cores: tests that use PostgreSQL or the binary mostly wait.
unit() { go_test "$(cat "$scratch/unit")" -parallel 4; }

# -count=1 bypasses the test cache, which does not track the binary under test.
black_box() { go_test "$(cat "$scratch/blackbox")" -count=1 -p 4 -parallel 4; }
on_postgres() { STEPMILL_TEST_DATABASE=postgres go_test ./test/crash -count=1 -parallel 4; }

require node chromium postgres pgbouncer web_packages receivers_packages
list_packages

try "gofmt" check_format
# The journeys wait more than they compute.
try_beside "dashboard" sh scripts/web.sh main
try "packages" unit
try "black-box tests" black_box
try "black-box tests on PostgreSQL" on_postgres
await_beside
verdict
