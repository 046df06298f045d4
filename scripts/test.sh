#!/bin/sh
# Every check and every test: gofmt, vet, the dashboard with its journeys in a
# browser, the packages' own tests, then the black-box tests on the real binary,
# all of Go under the race detector.
# A missing tool is installed or named in an error; no step is left out.
set -eu
cd "$(dirname "$0")/.."

started=$(date +%s)
scratch=$(mktemp -d)

finish() {
	status=$?
	rm -rf "$scratch"
	if [ "$status" -eq 0 ]; then outcome=passed; else outcome=FAILED; fi
	seconds=$(($(date +%s) - started))
	printf '\n== %s in %dm %02ds\n' "$outcome" $((seconds / 60)) $((seconds % 60))
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '\n== %s\n' "$*"; }

fail() {
	printf 'test.sh: %s\n' "$*" >&2
	exit 1
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
}

# The C compiler with the C library's headers: cgo needs both.
has_cc() {
	# shellcheck disable=SC2046 # CC may carry arguments
	printf '#include <stdlib.h>\n' | $(go env CC) -fsyntax-only -x c - >/dev/null 2>&1
}

# The race detector needs cgo, and cgo a C compiler (except on macOS).
require_cc() {
	[ "$(uname -s)" != Darwin ] || return 0
	if ! has_cc; then
		step "no working C compiler: installing gcc"
		install_packages gcc libc6-dev || :
		has_cc || fail "the race detector needs a C compiler and the C library's headers ($(go env CC) did not work);" \
			"install gcc and libc6-dev (Debian, Ubuntu), gcc and glibc-devel (Fedora) or gcc and musl-dev (Alpine)"
	fi
	CGO_ENABLED=1
	export CGO_ENABLED
}

# Installs packages of the distribution, where that is possible.
install_packages() {
	command -v apt-get >/dev/null 2>&1 || return 1
	as_root apt-get update -q &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 1
	fi
}

check_format() {
	find . \( -name .git -o -name node_modules -o -name testdata -o -path ./bin \) -prune -o \
		-type f -name '*.go' -exec gofmt -l {} + >"$scratch/unformatted"
	[ ! -s "$scratch/unformatted" ] || fail "run gofmt -w on: $(tr '\n' ' ' <"$scratch/unformatted")"
}

# The dashboard is built with Node, and the tests of deliveries verify signatures
# with libraries from npm.
require_node() {
	if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
		step "no Node: installing nodejs and npm"
		install_packages nodejs npm || :
	fi
	for tool in node npm; do
		command -v "$tool" >/dev/null 2>&1 || fail "$tool is not installed; the dashboard and the tests of deliveries need Node 20 or newer: https://nodejs.org"
	done
	version=$(node --version)
	major=${version#v}
	[ "${major%%.*}" -ge 20 ] || fail "found Node $version; the dashboard and the tests of deliveries need Node 20 or newer: https://nodejs.org"
}

# The journeys through the dashboard need a browser.
require_chromium() {
	if [ -z "${CHROMIUM:-}" ]; then
		if ! CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome); then
			step "no Chromium: installing chromium"
			install_packages chromium || :
			CHROMIUM=$(command -v chromium) ||
				fail "the tests of the dashboard need Chromium: install chromium (Debian, Fedora, Alpine), or name the program in CHROMIUM"
		fi
		export CHROMIUM
	fi
}

# The tests of the PostgreSQL store make clusters of their own. The package of
# Debian would start one too, for the whole system: it is told not to.
require_postgres() {
	if [ -z "${STEPMILL_TEST_PG_BIN:-}" ] && ! has_postgres; then
		step "no PostgreSQL: installing postgresql"
		install_packages postgresql-common &&
			as_root sed -i 's/^#create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
			install_packages postgresql || :
		has_postgres || fail "the tests of the PostgreSQL store need PostgreSQL 14 or newer: install postgresql (Debian, Ubuntu, Alpine)," \
			"postgresql-server (Fedora) or postgresql@17 (Homebrew), or name the folder of initdb in STEPMILL_TEST_PG_BIN"
	fi
	if ! has_pgbouncer; then
		step "no PgBouncer: installing pgbouncer"
		install_packages pgbouncer || :
		has_pgbouncer || fail "the tests of the PostgreSQL store need PgBouncer: install pgbouncer"
	fi
}

has_postgres() {
	command -v initdb >/dev/null 2>&1 ||
		ls /usr/lib/postgresql/*/bin/initdb /usr/pgsql-*/bin/initdb /usr/libexec/postgresql*/initdb \
			/opt/homebrew/opt/postgresql*/bin/initdb /usr/local/opt/postgresql*/bin/initdb 2>/dev/null | grep -q .
}

has_pgbouncer() { command -v pgbouncer >/dev/null 2>&1 || [ -x /usr/sbin/pgbouncer ]; }

require_go
require_cc
require_node
require_chromium
require_postgres

# The tests build the real binary; where the checkout belongs to another user
# git refuses to describe it and the build would fail over the version stamp.
GOFLAGS="${GOFLAGS:-} -buildvcs=false"
export GOFLAGS

# npm packages may carry Go files of their own.
go list ./... >"$scratch/all"
grep -v /node_modules/ "$scratch/all" >"$scratch/packages"
# Lists packages, the named ones first: those take long, and at the end nobody
# should wait for one alone.
long_first() {
	list=$1
	shift
	for name; do grep "/$name\$" "$list" || :; done
	printf '/%s$\n' "$@" >"$scratch/long"
	grep -v -f "$scratch/long" "$list" || :
}
grep -v '/stepmill/test/' "$scratch/packages" >"$scratch/unsorted" || :
long_first "$scratch/unsorted" internal/engine internal/store/sqlite internal/api internal/store/postgres internal/trigger >"$scratch/unit"
grep '/stepmill/test/' "$scratch/packages" >"$scratch/unsorted" || :
long_first "$scratch/unsorted" test/crash test/clusterload test/cluster >"$scratch/blackbox"

step "gofmt"
check_format

step "go vet"
xargs go vet <"$scratch/packages"

step "npm packages of the tests"
npm ci --prefix test/receivers --ignore-scripts --no-audit --no-fund

failed=
step "the dashboard"
sh scripts/web.sh || failed="the dashboard"

if [ -s "$scratch/unit" ]; then
	step "tests of the packages"
	xargs go test -race -timeout 20m <"$scratch/unit" ||
		failed="${failed:+$failed, }tests of the packages"
fi

# Some scripts that take memory would take too long under the race detector.
step "scripts that take memory, without the race detector"
go test -timeout 10m -run '^TestMemory$' ./internal/sandbox || failed="${failed:+$failed, }scripts that take memory"

# Two packages at a time, since they wait a lot, and no more, so that they do
# not disturb each other's timing. Never from the test cache, which does not know
# the binary they start.
if [ -s "$scratch/blackbox" ]; then
	step "black-box tests"
	xargs go test -race -timeout 25m -count=1 -p 2 -v <"$scratch/blackbox" ||
		failed="${failed:+$failed, }black-box tests"
fi

# The same on nodes that share a PostgreSQL, as far as it is not about files.
# What races in the code was found above; without the detector it takes a third.
step "black-box tests on PostgreSQL"
STEPMILL_TEST_DATABASE=postgres go test -timeout 20m -count=1 -p 2 -v ./test/crash ./test/scripts ./test/receivers ||
	failed="${failed:+$failed, }black-box tests on PostgreSQL"

[ -z "$failed" ] || fail "failed: $failed"
