#!/bin/sh
# The checks of the dashboard: its types, its lints, its own tests, whether what is
# committed in web/dist is what its sources make, and the journeys through it in a
# browser, against the real binary.
set -eu
cd "$(dirname "$0")/../web"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

step() { printf '\n-- %s\n' "$*"; }

fail() {
	printf 'web.sh: %s\n' "$*" >&2
	exit 1
}

step "npm packages"
npm ci --ignore-scripts --no-audit --no-fund

step "types of the API"
npx openapi-typescript ../openapi/openapi.yaml -o "$scratch/schema.d.ts" --default-non-nullable=false >/dev/null
cmp -s "$scratch/schema.d.ts" src/api/schema.d.ts || fail "src/api/schema.d.ts is not what openapi.yaml makes; run make web"

step "tsc and biome"
npm run --silent check

step "vitest"
npx vitest run

step "build"
npx vite build --outDir "$scratch/dist" --emptyOutDir --logLevel warn
diff -rq "$scratch/dist" dist || fail "web/dist is not what the sources make; run make web and commit it"

step "journeys in a browser"
npx vitest run -c vitest.e2e.config.ts
