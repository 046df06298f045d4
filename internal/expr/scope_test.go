package expr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/expr"
)

func testScope() *expr.Scope {
	return expr.NewScope(map[string][]string{"connection": {"shop", "region"}, "secret": {}, "test": nil})
}

func TestScopeEvaluates(t *testing.T) {
	t.Parallel()
	env := &expr.Env{Values: map[string]any{
		"connection": map[string]any{"shop": "acme/eu"},
		"test":       map[string]any{"users": []any{map[string]any{"email": "a@b.c"}}},
	}}
	for source, want := range map[string]string{
		"https://${{ connection.shop }}/x":                `"https://acme%2Feu/x"`,
		"${{ connection['shop'] }}":                       `"acme/eu"`,
		"${{ connection.region }}":                        `null`,
		"${{ test.users[0].email }}":                      `"a@b.c"`,
		"${{ let x = test.users; len(x) }}":               `1`,
		"${{ find(test.users, .email != nil)['email'] }}": `"a@b.c"`,
	} {
		template, err := testScope().CompileTemplate(source, expr.EscapeURL)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		got, err := template.Eval(env, expr.Budget{})
		if err != nil || asJSON(t, got) != want {
			t.Errorf("%s is %s, %v; want %s", source, asJSON(t, got), err, want)
		}
	}
	program, err := testScope().Compile("len(test.users) == 1")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := program.EvalBool(env, expr.Budget{}); !ok || err != nil {
		t.Errorf("the condition is %t, %v", ok, err)
	}
	value, err := testScope().CompileValue(map[string]any{"shop": "${{ connection.shop }}"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := value.Eval(env, expr.Budget{}); err != nil || asJSON(t, got) != `{"shop":"acme/eu"}` {
		t.Errorf("the value is %s, %v", asJSON(t, got), err)
	}
}

func TestScopeRejectsOtherNames(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"steps.get.output":        "unknown name steps; an expression can use connection, secret, test",
		"vars.region":             "unknown name vars",
		"connection.store":        "connection has no store; it has shop, region",
		"secret.token":            "secret has no token: it has no fields",
		"connection":              "connection needs the literal name of a field",
		"connection[test.name]":   "connection needs the literal name of a field",
		"let connection = 1; 2":   "the name connection is already in use",
		"conection.shop":          `did you mean "connection"`,
		"filter(test, secrets.x)": "unknown name secrets",
	} {
		_, err := testScope().Compile(source)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", source, err, want)
		}
	}
	if _, err := expr.Compile("connection.shop"); err == nil {
		t.Error("a workflow can use a name of a scope")
	}
}

func TestTemplateNames(t *testing.T) {
	t.Parallel()
	template, err := testScope().CompileTemplate("${{ connection.shop }} ${{ test.a ?? connection.shop }}", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := template.Names(); !slices.Equal(got, []string{"connection.shop", "test"}) {
		t.Errorf("the names are %q", got)
	}
}
