package expr_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		source, message string
		column          int
	}{
		{`1 + 2 > > 3`, `unexpected ">"`, 9},
		{`1 2`, `unexpected "2"`, 3},
		{`vars.a vars.b`, `unexpected "vars"`, 8},
		{`1 'two'`, `unexpected text 'two'`, 3},
		{`1 "it's"`, `unexpected text "it's"`, 3},
		{"1 `" + strings.Repeat("x", 100) + "`", "unexpected text `" + strings.Repeat("x", 39) + "…", 3},
		{`(1))`, `unexpected ")"`, 4},
		{`vars.a = 1`, `unexpected "="; to compare, write ==`, 8},
		{`vars.a === 1`, `unexpected "="; to compare, write ==`, 10},
		{`vars.a & vars.b`, `unexpected "&"; write && or and`, 8},
		{`[1, , 2]`, `unexpected ","`, 5},
		{`{"a": 1, , }`, `unexpected ","`, 10},
		{`1 not 2`, `unexpected "2"`, 7},
		{`{a:: 1}`, `unexpected "::"; a map is written as {key: value}`, 3},
		{`vars.a > `, `unexpected end of the expression`, 9},
		{`(1 + 2`, `unexpected end of the expression: "(" is not closed`, 6},
		{`[1, (2), 3`, `unexpected end of the expression: "[" is not closed`, 10},
		{`{`, `unexpected end of the expression: "{" is not closed`, 1},
		{`vars.`, `unexpected end of the expression`, 5},
		{`vars.(a)`, `expected a name after ".", not "("`, 6},
		{`vars?.'a' + 1`, `expected a name after "?.", not text 'a'`, 7},
		{`1 @ 2`, `unexpected character "@"`, 3},
		{`len(“a”)`, `unexpected character "“"; text is quoted with ' or "`, 5},
		{`vars.a ?? 1 || 2`, `"||" and ?? cannot be combined without parentheses around one of them`, 13},
		{`1 + 0xfffffffffffffffff`, `the number 0xfffffffffffffffff is too large`, 5},
		{`0b2 + 1`, `"0b2" is not a number`, 1},
		{`0b`, `"0b" is not a number`, 1},
		{`0o`, `"0o" is not a number`, 1},
		{`0x + 1`, `"0x" is not a number`, 1},
		{`99_999_999_999_999_999_999`, `the number 99_999_999_999_999_999_999 is too large`, 1},
		{`1 + 1e999 + 2`, `the number 1e999 is too large`, 5},
		{`1 + 12abc`, `"12a" is not a number`, 5},
		{`filter()`, `too few arguments: at least 2 are needed`, 8},
		{`vars.a | filter()`, `an argument is missing`, 17},
		{`map([1], 2; 3)`, `several expressions in an argument must be inside { and }`, 11},
		{`{+: 1}`, `a map key is a name, a quoted text, a number or an expression in parentheses, not "+"`, 2},
		{`1 + 'abc`, `the text is not closed: a quote is missing`, 5},
		{"len(`abc)", `the text is not closed: a quote is missing`, 5},
		{`'a\qb'`, `the text has an escape that does not exist; write \\ for a backslash`, 4},
		{`'\xZZ'`, `the text has an escape that does not exist; write \\ for a backslash`, 4},
		{`'\u{110000}'`, `the text has an escape that does not exist; write \\ for a backslash`, 12},
		{`1 /* two`, `the comment is not closed: */ is missing`, 3},
		{`map([1], {id: #, x: ) })`, `unexpected ")"`, 21},
		{`1 + ${{ 2 }}`, `unexpected "{"; ${{ }} goes around the whole expression`, 6},
	} {
		_, err := expr.Compile(tc.source)
		e, ok := errors.AsType[*expr.Error](err)
		if !ok {
			t.Errorf("%.60s: compiles", tc.source)
			continue
		}
		if e.Message != tc.message || tc.column > 0 && e.Column != tc.column {
			t.Errorf("%.60s: %q at column %d, want %q at column %d", tc.source, e.Message, e.Column, tc.message, tc.column)
		}
	}
}

// Every message of the library's parser and lexer begins with one of the prefixes
// in explanations.
func TestExplainsEveryParserMessage(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/expr-lang/expr").Output()
	if err != nil {
		t.Fatal(err)
	}
	verbs := regexp.MustCompile(`%[#+]?[a-zA-Z]`)
	found := 0
	for _, folder := range []string{"parser", "parser/lexer", "parser/utils"} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, format := range formats(t, file) {
				beginning := verbs.Split(format, 2)[0]
				if beginning == "" {
					continue // passes on another message
				}
				if found++; !expr.Explains(format) {
					t.Errorf("%s: the message %q reaches users as the library writes it", filepath.Base(file), format)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d messages were found", found)
	}
}

// formats returns the format strings of errors in a file.
func formats(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		var text ast.Expr
		switch n := n.(type) {
		case *ast.CallExpr:
			name := ""
			if selector, ok := n.Fun.(*ast.SelectorExpr); ok {
				name = selector.Sel.Name
			}
			switch {
			case (name == "error" || name == "Errorf" || name == "New") && len(n.Args) > 0:
				text = n.Args[0]
			case name == "errorAt" && len(n.Args) > 1:
				text = n.Args[1]
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Message" {
				text = n.Value
			}
		}
		if literal, ok := text.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			format, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, format)
		}
		return true
	})
	return out
}
