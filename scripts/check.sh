#!/bin/sh
# The quick lane, to run before a commit: format, vet, lint of changed packages,
# short tests, and the dashboard's type checks and unit tests if it changed.
# "Changed" means uncommitted, or committed since the branch diverged from its
# upstream; set CHECK_BASE to compare with another commit.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh

# Lists the files that differ from the base, including untracked files.
changed() {
	base=${CHECK_BASE:-$(git merge-base HEAD '@{upstream}' 2>/dev/null || git merge-base HEAD origin/main 2>/dev/null || echo HEAD)}
	git diff --name-only "$base" --
	git ls-files --others --exclude-standard
}

# Lists the packages of the changed Go files, without deleted packages.
changed_packages() {
	sed -n 's|^\(.*\.go\)$|./\1|p' "$scratch/changed" | sed 's|/[^/]*$||' | sort -u |
		while read -r dir; do ls "$dir"/*.go >/dev/null 2>&1 && echo "$dir"; done || :
}

lint_changed() {
	changed_packages | grep -v '^./tools' >"$scratch/lint" || :
	[ -s "$scratch/lint" ] || { echo "no Go file changed"; return 0; }
	make --no-print-directory lint PKG="$(tr '\n' ' ' <"$scratch/lint")"
}

check_web() {
	if ! grep -qE '^(web/|openapi/openapi\.yaml$)' "$scratch/changed"; then
		echo "nothing in web/ changed"
		return 0
	fi
	sh scripts/web.sh check
}

require_go
require_node
changed >"$scratch/changed" || fail "git could not list the changed files; run make test instead"

try "gofmt" check_format
packages >"$scratch/packages"
try "go vet" xargs go vet <"$scratch/packages"
try "lint changed packages" lint_changed
try "short tests" xargs go test -short -timeout 5m <"$scratch/packages"
try "dashboard" check_web
verdict
