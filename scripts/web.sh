#!/bin/sh
# Runs the dashboard's checks:
#   check     types, lint and unit tests
#   main      check, whether web/dist is up to date, and the main journeys in a
#             browser against the real binary
#   journeys  every journey
set -eu
cd "$(dirname "$0")/../web"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step() { printf '\n-- %s\n' "$*"; }

fail() {
	printf 'web.sh: %s\n' "$*" >&2
	exit 1
}

# Installs the pinned packages unless they are up to date.
packages() {
	if [ -f node_modules/.package-lock.json ] && ! [ package-lock.json -nt node_modules/.package-lock.json ]; then return 0; fi
	[ "${STEPMILL_TEST_INSTALL:-1}" != 0 ] ||
		fail "the npm packages of the dashboard are missing or out of date, and STEPMILL_TEST_INSTALL is 0; run npm ci --prefix web --ignore-scripts"
	step "npm packages: npm ci in web writes web/node_modules; set STEPMILL_TEST_INSTALL=0 to install them yourself"
	npm ci --ignore-scripts --no-audit --no-fund
}

# Runs Vitest. Test files that fail are repeated once, alone: if they pass then, they
# are added to the list of flaky tests.
run_vitest() {
	npx vitest run "$@" --reporter=default --reporter=json --outputFile.json="$scratch/report.json" && return 0
	node -e '
		const { testResults } = JSON.parse(require("node:fs").readFileSync(process.argv[1], "utf8"));
		const failed = testResults.filter((file) => file.status === "failed");
		for (const file of failed) console.log(require("node:path").relative(".", file.name));
	' "$scratch/report.json" >"$scratch/failed" || return 1
	count=$(wc -l <"$scratch/failed")
	[ "$count" -ge 1 ] && [ "$count" -le 3 ] || return 1
	step "repeating $(tr '\n' ' ' <"$scratch/failed")"
	xargs npx vitest run "$@" <"$scratch/failed" || return 1
	sed 's|^|flaky: web/|' "$scratch/failed" >>"${FLAKY:-/dev/stderr}"
}

check() {
	step "API types"
	npx openapi-typescript ../openapi/openapi.yaml -o "$scratch/schema.d.ts" --default-non-nullable=false >/dev/null
	cmp -s "$scratch/schema.d.ts" src/api/schema.d.ts || fail "src/api/schema.d.ts is out of date with openapi.yaml; run make web"
	node generate-values.mjs "$scratch/values.ts"
	cmp -s "$scratch/values.ts" src/api/values.ts || fail "src/api/values.ts is out of date with openapi.yaml; run make web"
	step "tsc, biome and dependency-cruiser"
	npm run --silent check
	step "vitest"
	run_vitest
}

dist() {
	step "build"
	npx vite build --outDir "$scratch/dist" --emptyOutDir --logLevel warn
	diff -rq "$scratch/dist" dist || fail "web/dist is out of date; run make web and commit it"
}

journeys() {
	step "browser journeys"
	run_vitest -c vitest.e2e.config.ts
}

packages
case ${1:-main} in
check) check ;;
main)
	check
	dist
	journeys
	;;
journeys) journeys ;;
*) fail "unknown command $1; use check, main or journeys" ;;
esac
