package integration_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

func TestLint(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, folder, text, want string }{
		{"nothing to report", "shop", operation("x: {type: any}", request), ""},
		{"the folder is not known", "", shop, ""},
		{"the name of the folder", "store", shop, `line 2:5: /id: is "shop", but the folder is store: they must be equal`},
		{
			"all problems, in the order of the file", "", operation("x: {type: text}", "{path: things, json: \"${{ inptu.x }}\", items: boddy.x}"),
			`line 38:17: /operations/add/input/x/type: "text" is unknown
line 40:14: /operations/add/request/path: must start with a slash
line 40:28: /operations/add/request/json: unknown name inptu
line 40:53: /operations/add/request/items: unknown name boddy`,
		},
		{"a mistake in the structure", "", strings.Replace(shop, "keywords", "keyword", 1), `line 6:1: /keyword: unknown field "keyword"`},
		{"YAML that is not valid", "", "id: [", "line 1:5: /id: the bracket is not closed"},
		{
			"?? in a bare expression", "", operation("x: {type: any}", "{path: /a, items: body.a == body.b ?? body.c}"),
			`line 40:25: /operations/add/request/items: ?? applies only to what is right after "=="`,
		},
		{
			"?? in a text", "", operation("x: {type: any}", "{path: /a, json: [{a: \"b ${{ 1 + input.x ?? 2 }}\"}]}"),
			`line 40:29: /operations/add/request/json/0/a: ?? applies only to what is right after "+"`,
		},
		{"?? with parentheses", "", operation("x: {type: any}", "{path: /a, json: \"${{ 1 + (input.x ?? 2) }}\"}"), ""},
		{"a hidden operation that is used", "", hidden("options: list_things"), ""},
		{"a hidden operation of an element", "", hidden("items: {type: string, options: list_things}, type: list"), ""},
		{"a hidden operation that is not used", "", hidden("help: Which?"), "line 31:3: /operations/list_things: is hidden, and no poll and no options or fields of an input name it: nothing uses it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			i, problems := integration.Lint([]byte(tc.text), tc.folder, nil)
			if len(problems) == 0 && (i == nil || i.ID != "shop") {
				t.Errorf("the integration is %v", i)
			}
			lines := strings.Split(problems.Error(), "\n")
			for n, want := range strings.Split(tc.want, "\n") {
				if n < len(lines) && strings.HasPrefix(lines[n], want) {
					lines[n] = want
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// hidden returns a manifest with a hidden operation, and another one with an input.
func hidden(input string) string {
	if !strings.Contains(input, "type:") {
		input += ", type: string"
	}
	return strings.Replace(operation("x: {"+input+"}", request), "title: List things", "title: List things\n    hidden: true", 1)
}

// The manifests that are part of the product have nothing to report.
func TestLintManifests(t *testing.T) {
	t.Parallel()
	all, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for file := range shipped(t) {
		text, err := fs.ReadFile(integrations.Files, file)
		if err != nil {
			t.Fatal(err)
		}
		if _, problems := integration.Lint(text, strings.TrimSuffix(file, "/integration.yaml"), all.Find); len(problems) > 0 {
			t.Errorf("%s: %v", file, problems)
		}
	}
}
