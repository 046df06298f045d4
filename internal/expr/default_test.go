package expr_test

import (
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestUnclearDefault(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		`a ?? b`:                                "",
		`a ?? b ?? c`:                           "",
		`a == (b ?? c)`:                         "",
		`(a == b) ?? c`:                         "",
		`f(a == b, c ?? d)`:                     "",
		`[a + b, c ?? d]`:                       "",
		`{x: a + b, y: c ?? d}`:                 "",
		`a == b ? c ?? d : e ?? f`:              "",
		`a > 1 | filter(# ?? b)`:                "",
		`let x = a + 1; b ?? x`:                 "",
		`"a == b ?? c"`:                         "",
		`a == b ?? c`:                           "==",
		`a + b ?? 0`:                            "+",
		`not a ?? true`:                         "not",
		`!a ?? true`:                            "!",
		`-a ?? 0`:                               "-",
		`a in b ?? []`:                          "in",
		`a && f(b, c) ?? d`:                     "&&",
		`f(any(a, # == b ?? c))`:                "==",
		`a ?? b == c`:                           "", // an error
		`(`:                                     "",
		`}) a == b ?? c`:                        "==",
		"a == b.c[d ?? e]":                      "",
		"a == b.c[d].e ?? f":                    "==",
		`filter(a, {# == 1 and .b ?? false})`:   "and",
		`map(a, {let row = # ; row.x ?? true})`: "",
	} {
		if got := expr.UnclearDefault(source); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
}
