# Functions shared by the test lanes: progress, the final result, and the tools
# that tests need. A missing tool is installed or reported as an error; no test
# is skipped because a tool is missing.
# shellcheck shell=sh

started=$(date +%s)
scratch=$(mktemp -d)
failed=
beside_pid=

finish() {
	status=$?
	[ -z "$beside_pid" ] || kill "$beside_pid" 2>/dev/null || :
	rm -rf "$scratch"
	if [ "$status" -eq 0 ]; then outcome=passed; else outcome=FAILED; fi
	seconds=$(($(date +%s) - started))
	printf '\n== %s %s in %dm %02ds\n' "$(basename "$0" .sh)" "$outcome" $((seconds / 60)) $((seconds % 60))
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '\n== %s (%ds)\n' "$*" $(($(date +%s) - started)); }

fail() {
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# Runs a named step and remembers whether it failed; later steps still run.
try() {
	name=$1
	shift
	step "$name"
	"$@" || failed="${failed:+$failed, }$name"
}

# Starts a named step in the background. await_beside waits for it and prints what
# it printed.
try_beside() {
	beside=$1
	shift
	step "$beside, beside the following steps"
	"$@" >"$scratch/beside" 2>&1 &
	beside_pid=$!
}

await_beside() {
	step "waiting for: $beside"
	outcome=0
	wait "$beside_pid" || outcome=$?
	beside_pid=
	cat "$scratch/beside"
	[ "$outcome" -eq 0 ] || failed="${failed:+$failed, }$beside"
}

# Ends the script, with an error if any step failed.
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

# Installs distribution packages if possible.
install_packages() {
	command -v apt-get >/dev/null 2>&1 || return 1
	as_root apt-get update -q &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
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

# Reports whether there is a C compiler with the C library's headers: cgo needs both.
has_cc() {
	# shellcheck disable=SC2046 # CC may carry arguments
	printf '#include <stdlib.h>\n' | $(go env CC) -fsyntax-only -x c - >/dev/null 2>&1
}

# The race detector needs cgo, and cgo needs a C compiler (except on macOS).
require_cc() {
	[ "$(uname -s)" != Darwin ] || return 0
	if ! has_cc; then
		step "no working C compiler found: installing gcc"
		install_packages gcc libc6-dev || :
		has_cc || fail "the race detector needs a C compiler and the C library's headers ($(go env CC) did not work);" \
			"install gcc and libc6-dev (Debian, Ubuntu), gcc and glibc-devel (Fedora) or gcc and musl-dev (Alpine)"
	fi
}

# The dashboard is built with Node, and the delivery tests verify signatures with
# libraries from npm.
require_node() {
	if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
		step "Node not found: installing nodejs and npm"
		install_packages nodejs npm || :
	fi
	for tool in node npm; do
		command -v "$tool" >/dev/null 2>&1 || fail "$tool is not installed; the dashboard and the delivery tests need Node 20 or newer: https://nodejs.org"
	done
	version=$(node --version)
	major=${version#v}
	[ "${major%%.*}" -ge 20 ] || fail "found Node $version; the dashboard and the delivery tests need Node 20 or newer: https://nodejs.org"
}

# The browser journeys need Chromium.
require_chromium() {
	if [ -z "${CHROMIUM:-}" ]; then
		if ! CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
			step "Chromium not found: installing chromium"
			install_packages chromium || :
			CHROMIUM=$(command -v chromium) ||
				fail "the browser journeys need Chromium: install chromium (Debian, Fedora, Alpine), or set CHROMIUM to its path"
		fi
		export CHROMIUM
	fi
}

has_postgres() {
	command -v initdb >/dev/null 2>&1 ||
		ls /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb /usr/libexec/postgresql*/initdb \
			/opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb 2>/dev/null | grep -q .
}

has_pgbouncer() { command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; }

# The tests start their own PostgreSQL servers. Debian's package would also start
# a system-wide one, which create_main_cluster = false prevents.
require_postgres() {
	if [ -z "${STEPMILL_TEST_PG_BIN:-}" ] && ! has_postgres; then
		step "PostgreSQL not found: installing postgresql"
		install_packages postgresql-common &&
			as_root sed -i 's/^#create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
			install_packages postgresql || :
		has_postgres || fail "the tests of the PostgreSQL store need PostgreSQL 14 or newer: install postgresql (Debian, Ubuntu, Alpine)," \
			"postgresql-server (Fedora) or postgresql@17 (Homebrew), or set STEPMILL_TEST_PG_BIN to the folder that contains initdb"
	fi
	if ! has_pgbouncer; then
		step "PgBouncer not found: installing pgbouncer"
		install_packages pgbouncer || :
		has_pgbouncer || fail "the tests of the PostgreSQL store need PgBouncer: install pgbouncer"
	fi
}

check_format() {
	find . \( -name .git -o -name node_modules -o -name testdata -o -path ./bin \) -prune -o \
		-type f -name '*.go' -exec gofmt -l {} + >"$scratch/unformatted"
	[ ! -s "$scratch/unformatted" ] || fail "run gofmt -w on: $(tr '\n' ' ' <"$scratch/unformatted")"
}

# Lists the packages of the module, without Go files inside npm packages.
packages() { go list ./... | grep -v /node_modules/; }

# Runs `go test -race` on packages, without instrumenting the SQLite engine, which
# is C code translated to Go. Tests that use it run several times faster, and our
# own code is still instrumented.
test_race() { CGO_ENABLED=1 go test -race -gcflags='modernc.org/...=-race=false' "$@"; }
