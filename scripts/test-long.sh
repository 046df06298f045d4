#!/bin/sh
# What make test leaves out, in parts: the race detector, the black-box tests at full
# size with soak, load and fairness on several nodes, every browser journey, and
# fuzzing. A part that fails does not stop the others.
#   test-long.sh         runs all parts
#   test-long.sh PART…   runs some of them
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

STEPMILL_TEST_LONG=1
STEPMILL_TEST_BIN=$scratch/bin
export STEPMILL_TEST_LONG STEPMILL_TEST_BIN

all="race crash black-box postgres journeys fuzz fuzz-api"

# Every package under the race detector. More parallel tests than cores: the
# PostgreSQL tests mostly wait.
race() { go_test_race "$(cat "$scratch/unit")" -parallel 4; }

# The race detector aborts a process that runs for as long as this test.
crash() { go_test ./internal/engine -run '^TestCrashAtEveryWrite$'; }

# The tests of the real binary at full size, built with the race detector. -count=1
# bypasses the test cache, which does not track the binary under test.
black_box() { go_test_race "$(cat "$scratch/blackbox")" -count=1 -p 2; }

# Those that depend on the database, on PostgreSQL.
postgres() { STEPMILL_TEST_DATABASE=postgres go_test ./test/crash -count=1; }

journeys() { sh scripts/web.sh journeys; }

fuzz() { make --no-print-directory fuzz FUZZTIME="${FUZZTIME:-10s}"; }

# A fixed seed: whether the lane passes must not depend on luck. make fuzz-api uses a
# new one each time.
fuzz_api() { make --no-print-directory fuzz-api FUZZTIME="${FUZZTIME:-1m}" FUZZ_SEED="${FUZZ_SEED:-1}"; }

# shellcheck disable=SC2086 # a list
[ $# -gt 0 ] || set -- $all
for part; do
	case " $all " in
	*" $part "*) ;;
	*) fail "unknown part \"$part\"; the parts are: $all" ;;
	esac
done

require cc node chromium postgres pgbouncer faketime web_packages receivers_packages oracles_packages
list_packages

for part; do
	try "$part" "$(echo "$part" | tr - _)"
done
[ -z "$failed" ] || hint="repeat with: make test-long PART=\"$(echo "$failed" | tr -d ,)\""
verdict
