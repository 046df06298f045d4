#!/bin/sh
# Checks that the modules are tidy. That may need the network, which is tried again; a
# module that is not tidy fails at once.
set -eu
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for module in . tools; do
	for pause in 5 30 0; do
		go -C "$module" mod tidy -diff >"$scratch/diff" 2>"$scratch/errors" && continue 2
		if [ -s "$scratch/diff" ]; then
			cat "$scratch/diff"
			echo "tidy.sh: run go mod tidy in $module" >&2
			exit 1
		fi
		[ "$pause" -eq 0 ] || sleep "$pause"
	done
	cat "$scratch/errors" >&2
	exit 1
done
