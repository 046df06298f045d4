#!/bin/sh
# The quick lane, to run before a commit: format, lint of changed packages, short tests
# of the packages that a change affects, and the dashboard's type checks and unit tests
# if it changed.
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

# Lists the directories of the packages that the changed files belong to. A file
# without a package in its directory, such as a migration or a file in testdata,
# belongs to the package above it.
changed_packages() {
	grep -vE '^(web/(src|e2e|node_modules)|test/oracles/google|tools|docs|scripts)/' "$scratch/changed" |
		while read -r file; do
			dir=$(dirname "$file")
			while ! ls "$dir"/*.go >/dev/null 2>&1 && [ "$dir" != . ]; do dir=$(dirname "$dir"); done
			echo "./${dir#.}"
		done | sort -u
}

# Lists the packages that import a changed package, or whose tests do.
affected_packages() {
	if grep -qxE 'go\.(mod|sum)' "$scratch/changed"; then
		packages
		return
	fi
	[ -s "$scratch/changed-packages" ] || return 0
	xargs go list <"$scratch/changed-packages" >"$scratch/changed-paths"
	packages | xargs go list -test -f '{{.ImportPath}} {{.ImportPath}} {{join .Deps " "}}' | awk '
		NR == FNR { changed[$1]; next }
		{ sub(/(\.|_)test$/, "", $1); for (i = 2; i <= NF; i++) if ($i in changed) print $1 }
	' "$scratch/changed-paths" - | sort -u
}

lint_changed() {
	[ -s "$scratch/changed-packages" ] || { echo "no Go package changed"; return 0; }
	make --no-print-directory lint PKG="$(tr '\n' ' ' <"$scratch/changed-packages")"
}

test_affected() {
	affected=$(wc -l <"$scratch/affected")
	echo "$((affected)) of $(($(packages | wc -l))) packages are affected by the change"
	[ "$affected" -eq 0 ] || xargs go test -short -timeout "$package_timeout" <"$scratch/affected"
}

check_web() {
	if ! grep -qE '^(web/|openapi/openapi\.yaml$)' "$scratch/changed"; then
		echo "nothing in web/ changed"
		return 0
	fi
	sh scripts/web.sh check
}

require node
changed >"$scratch/changed" || fail "git could not list the changed files; run make test instead"
changed_packages >"$scratch/changed-packages"
affected_packages >"$scratch/affected"

try "gofmt" check_format
try "lint changed packages" lint_changed
try "short tests of affected packages" test_affected
try "dashboard" check_web
verdict
