# Functions shared by the test lanes: progress, the final result, and the tools
# that tests need. Missing software is installed or reported as an error; no test
# is skipped because something is missing.
# shellcheck shell=sh

started=$(date +%s)
scratch=$(mktemp -d)
failed=
beside_pid=
# The last advice of a lane that failed.
hint=
# web.sh appends to the same list of tests that passed only when they were repeated.
FLAKY=$scratch/flaky
export FLAKY
: >"$scratch/parts"
: >"$FLAKY"

finish() {
	status=$?
	[ -z "$beside_pid" ] || kill "$beside_pid" 2>/dev/null || :
	if [ "$status" -eq 0 ]; then outcome=passed; else outcome=FAILED; fi
	seconds=$(($(date +%s) - started))
	cpu_seconds
	print_parts
	printf '\n== %s %s in %dm %02ds (%ds of processor time)\n' "$(basename "$0" .sh)" "$outcome" $((seconds / 60)) $((seconds % 60)) "$cpu"
	[ -z "$hint" ] || printf '%s\n' "$hint"
	cat "$FLAKY"
	rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Sets cpu to the processor time of all child processes that have ended, in seconds.
cpu_seconds() {
	cpu=$(mktemp "$scratch/times.XXXXXX")
	times >"$cpu" # not in a subshell, which would have its own times
	cpu=$(awk 'NR == 2 { gsub(/[ms]/, " "); printf "%d", $1 * 60 + $2 + $3 * 60 + $4 }' "$cpu")
}

print_parts() {
	[ -s "$scratch/parts" ] || return 0
	printf '\n%-36s %8s %8s\n' part wall CPU
	while IFS='|' read -r name wall used result; do
		printf '%-36s %7ss %7ss  %s\n' "$name" "$wall" "$used" "$result"
	done <"$scratch/parts"
}

step() { printf '\n== %s (%ds)\n' "$*" $(($(date +%s) - started)); }

fail() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# Runs a named part and remembers whether it failed; later parts still run.
try() {
	name=$1
	shift
	step "$name"
	measure "$name" "$@" || failed="${failed:+$failed, }$name"
}

# Runs a named part and adds its times to the table, in a subshell: its processor time
# then does not include that of a part beside it.
measure() (
	name=$1
	shift
	begun=$(date +%s)
	result=ok
	"$@" || result=FAILED
	cpu_seconds
	printf '%s|%d|%d|%s\n' "$name" $(($(date +%s) - begun)) "$cpu" "$result" >>"$scratch/parts"
	[ "$result" = ok ]
)

# Starts a named part in the background. await_beside waits for it and prints what it
# printed.
try_beside() {
	beside=$1
	shift
	step "$beside, beside the following parts"
	measure "$beside" "$@" >"$scratch/beside" 2>&1 &
	beside_pid=$!
}

await_beside() {
	step "waiting for: $beside"
	wait "$beside_pid" || failed="${failed:+$failed, }$beside"
	beside_pid=
	cat "$scratch/beside"
}

# Ends the script, with an error if any part failed.
verdict() { [ -z "$failed" ] || fail "failed: $failed"; }

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

# Installs distribution packages if possible. Prints the output of the package manager
# only if it fails. Another process may hold its lock for minutes.
install_packages() {
	command -v apt-get >/dev/null 2>&1 || return 1
	{
		as_root apt-get -o DPkg::Lock::Timeout=900 update -q &&
			as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=900 install -q -y --no-install-recommends "$@"
	} >"$scratch/install" 2>&1 || {
		cat "$scratch/install"
		return 1
	}
}

require_go() {
	if ! command -v go >/dev/null 2>&1 && [ -x /usr/local/go/bin/go ]; then
		PATH=$PATH:/usr/local/go/bin
		export PATH
	fi
	command -v go >/dev/null 2>&1 || fail "Go is not installed; Stepmill needs Go 1.26 or newer: https://go.dev/dl/"
	version=$(go version) || fail "\`go version\` failed; Stepmill needs Go 1.26 or newer: https://go.dev/dl/"
	numbers=$(printf '%s\n' "$version" | sed -n 's/.*go\([0-9][0-9]*\)\.\([0-9][0-9]*\).*/\1 \2/p')
	major=${numbers% *}
	minor=${numbers#* }
	if [ -z "$numbers" ] || [ "$major" -lt 1 ] || { [ "$major" -eq 1 ] && [ "$minor" -lt 26 ]; }; then
		fail "found \"$version\"; Stepmill needs Go 1.26 or newer: https://go.dev/dl/"
	fi
	# The tests build the real binary. If the checkout belongs to another user, git
	# reports no version, and the build would fail to stamp it.
	GOFLAGS="${GOFLAGS:-} -buildvcs=false"
	export GOFLAGS
}

# Checks Go and the given software: cc, node, chromium, postgres, pgbouncer, faketime, web_packages,
# receivers_packages or oracles_packages. Lists all that is missing and what installing it changes on the
# machine, and then installs it. STEPMILL_TEST_INSTALL=0 stops instead.
require() {
	require_go
	missing=
	for item in "$@"; do
		"has_$item" || missing="$missing $item"
	done
	[ -n "$missing" ] || return 0
	step "missing"
	for item in $missing; do printf '%s\n' "- $(advice "$item")"; done
	[ "${STEPMILL_TEST_INSTALL:-1}" != 0 ] || fail "STEPMILL_TEST_INSTALL is 0, so nothing was installed; install what is listed above"
	step "installing it; set STEPMILL_TEST_INSTALL=0 to install it yourself"
	for item in $missing; do printf '%s\n' "- $(changes "$item")"; done
	for item in $missing; do
		"install_$item" || :
		"has_$item" || fail "could not install: $(advice "$item")"
	done
}

# Says what an item is needed for and how to install it.
advice() {
	case $1 in
	cc) echo "a C compiler with the C library's headers, for the race detector ($(go env CC) did not work):" \
		"install gcc and libc6-dev (Debian, Ubuntu), gcc and glibc-devel (Fedora) or gcc and musl-dev (Alpine)" ;;
	node) echo "Node 20 or newer with npm (found: $(node --version 2>/dev/null || echo none)), for the dashboard and the delivery tests: install nodejs and npm, or see https://nodejs.org" ;;
	chromium) echo "Chromium, for the browser journeys: install chromium (Debian, Fedora, Alpine), or set CHROMIUM to its path" ;;
	postgres) echo "PostgreSQL 14 or newer, for the tests of the PostgreSQL store: install postgresql (Debian, Ubuntu, Alpine)," \
		"postgresql-server (Fedora) or postgresql@17 (Homebrew), or set STEPMILL_TEST_PG_BIN to the folder that contains initdb" ;;
	pgbouncer) echo "PgBouncer, for the tests of the PostgreSQL store: install pgbouncer" ;;
	faketime) echo "libfaketime, for the tests of a database whose clock jumps: install libfaketime (Debian, Ubuntu, Alpine), or set STEPMILL_TEST_FAKETIME to the path of libfaketime.so.1" ;;
	web_packages) echo "the npm packages of the dashboard: run npm ci --prefix web --ignore-scripts" ;;
	receivers_packages) echo "the npm packages of the delivery tests: run npm ci --prefix test/receivers --ignore-scripts" ;;
	oracles_packages) echo "the clients of services that integrations are compared with: run npm ci --prefix test/oracles --ignore-scripts" ;;
	esac
}

# Says what installing an item changes.
changes() {
	case $1 in
	cc) echo "apt-get install gcc libc6-dev, as root" ;;
	node) echo "apt-get install nodejs npm, as root" ;;
	chromium) echo "apt-get install chromium, as root" ;;
	postgres) echo "apt-get install postgresql-common postgresql, as root;" \
		"create_main_cluster = false in /etc/postgresql-common/createcluster.conf, so that no server starts" ;;
	pgbouncer) echo "apt-get install pgbouncer, as root" ;;
	faketime) echo "apt-get install libfaketime, as root" ;;
	web_packages) echo "npm ci in web: writes web/node_modules" ;;
	receivers_packages) echo "npm ci in test/receivers: writes test/receivers/node_modules" ;;
	oracles_packages) echo "npm ci in test/oracles: writes test/oracles/node_modules" ;;
	esac
}

# cgo needs a C compiler and the C library's headers, and the race detector needs cgo
# (except on macOS).
has_cc() {
	[ "$(uname -s)" != Darwin ] || return 0
	# shellcheck disable=SC2046 # CC may carry arguments
	printf '#include <stdlib.h>\n' | $(go env CC) -fsyntax-only -x c - >/dev/null 2>&1
}

install_cc() { install_packages gcc libc6-dev; }

has_node() {
	command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || return 1
	version=$(node --version)
	major=${version#v}
	[ "${major%%.*}" -ge 20 ]
}

install_node() { install_packages nodejs npm; }

has_chromium() {
	[ -n "${CHROMIUM:-}" ] || CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || return 1
	export CHROMIUM
}

install_chromium() { install_packages chromium; }

has_postgres() {
	[ -n "${STEPMILL_TEST_PG_BIN:-}" ] || command -v initdb >/dev/null 2>&1 ||
		ls /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb /usr/libexec/postgresql*/initdb \
			/opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb 2>/dev/null | grep -q .
}

# The tests start their own PostgreSQL servers. Debian's package would also start
# a system-wide one, which create_main_cluster = false prevents.
install_postgres() {
	install_packages postgresql-common &&
		as_root sed -i 's/^#create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
		install_packages postgresql
}

has_pgbouncer() { command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; }

install_pgbouncer() { install_packages pgbouncer; }

has_faketime() {
	[ -n "${STEPMILL_TEST_FAKETIME:-}" ] || ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1
}

install_faketime() { install_packages libfaketime; }

# Reports whether the npm packages in a directory are those of its lock file.
has_npm_packages() {
	[ -f "$1/node_modules/.package-lock.json" ] && ! [ "$1/package-lock.json" -nt "$1/node_modules/.package-lock.json" ]
}

install_npm_packages() { npm ci --prefix "$1" --ignore-scripts --no-audit --no-fund; }

has_web_packages() { has_npm_packages web; }

install_web_packages() { install_npm_packages web; }

# The tests that verify signatures and files use other people's libraries.
has_receivers_packages() { has_npm_packages test/receivers; }

install_receivers_packages() { install_npm_packages test/receivers; }

has_oracles_packages() { has_npm_packages test/oracles; }

install_oracles_packages() { install_npm_packages test/oracles; }

check_format() {
	find . \( -name .git -o -name node_modules -o -name testdata -o -path ./bin \) -prune -o \
		-type f -name '*.go' -exec gofmt -l {} + >"$scratch/unformatted"
	[ -s "$scratch/unformatted" ] || return 0
	echo "run gofmt -w on: $(tr '\n' ' ' <"$scratch/unformatted")"
	return 1
}

# Lists the packages of the module, without Go files inside npm packages.
packages() { go list ./... | grep -v /node_modules/; }

# Writes the lists of the packages that start the real binary, and of the others.
list_packages() {
	packages >"$scratch/packages"
	grep '/stepmill/test/' "$scratch/packages" >"$scratch/blackbox"
	grep -v '/stepmill/test/' "$scratch/packages" >"$scratch/unit"
}

# The timeout of the tests of a package only ends tests that hang: on a busy machine
# they take many times as long as on an idle one.
package_timeout=40m

# Runs go test on packages, a list separated by spaces; the other arguments are its
# flags. A test function that fails is repeated once, alone: if it passes then, the
# part passes and the lane ends with "flaky: <test>". Compile errors, panics, data
# races, timeouts, more than three failures and violated invariants are final.
go_test() {
	tested=$1
	shift
	make --silent bin/gotestsum
	: >"$scratch/repeated"
	outcome=0
	# make lint runs vet.
	bin/gotestsum --format standard-quiet --hide-summary skipped --jsonfile "$scratch/events" --packages "$tested" \
		--rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race \
		--rerun-fails-report "$scratch/repeated" -- -vet=off -timeout "$package_timeout" "$@" || outcome=$?
	if grep -q INVARIANT "$scratch/events"; then
		echo "an invariant was violated: repeating the test does not count"
		return 1
	fi
	[ "$outcome" -ne 0 ] || sed -n 's/^\(.*\): [0-9]* runs, .*/flaky: \1/p' "$scratch/repeated" >>"$FLAKY"
	return "$outcome"
}

# Runs go_test with the race detector, without instrumenting the SQLite engine, which
# is C code translated to Go. Tests that use it run several times faster, and our own
# code is still instrumented.
go_test_race() { CGO_ENABLED=1 go_test "$@" -race -gcflags='modernc.org/...=-race=false'; }
