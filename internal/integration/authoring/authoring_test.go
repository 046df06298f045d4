package authoring_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/stepmill/stepmill/internal/integration/authoring"
)

// folder writes the files of an archive to a folder, which becomes the current one.
func folder(t *testing.T, archive string) {
	t.Helper()
	dir := t.TempDir()
	if err := txtar.Write(txtar.Parse([]byte(archive)), dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
}

func open(t *testing.T, paths ...string) *authoring.Set {
	t.Helper()
	out, err := authoring.Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const acme = `id: acme
name: Acme
category: support
docs: https://acme.example/api
base_url: https://acme.example
connection:
  fields: {services: {title: Services, format: services}}
  auth: [{kind: bearer, label: Token}]
  hosts: [acme.example]
  test: {path: /me}
  learn: {label: "${{ test.email }}"}
`

// archive has an integration with tests, one that shares its connections, one that shares
// those of Google, and one without operations.
const archive = `
-- all/acme/integration.yaml --
` + acme + `operations:
  add:
    title: Add
    input: {name: {type: string, required: true}}
    request: {method: POST, path: /things, json: {name: "${{ input.name }}"}}
  remove:
    title: Remove
    input: {id: {type: integer, required: true}}
    request: {method: DELETE, path: "/things/${{ input.id }}", response: none}
-- all/acme/tests.yaml --
operations:
  add:
    - name: a box
      input: {name: Box}
      exchanges: [{request: {method: POST, url: "https://acme.example/things", json: {name: Box}}, answer: {json: {id: 1}}}]
      output: {id: 1}
    - name: a bag
      input: {name: Bag}
      exchanges: [{request: {method: POST, url: "https://acme.example/things", json: {name: Bag}}, answer: {json: {id: 2}}}]
      output: {id: 2}
  remove:
    - name: a box
      input: {id: 1}
      exchanges: [{request: {method: DELETE, url: "https://acme.example/things/1"}}]
      output: {}
-- all/acme_mail/integration.yaml --
id: acme_mail
name: Acme Mail
category: communication
docs: https://acme.example/mail
base_url: https://acme.example/mail
connection: {of: acme, scopes: [mail]}
-- all/sheets/integration.yaml --
id: sheets
name: Sheets
category: data
docs: https://acme.example/sheets
base_url: https://www.googleapis.com/sheets
connection: {of: google, scopes: [sheets]}
-- elsewhere/draft.yaml --
` + acme

func lint(t *testing.T, paths ...string) (text string, count int) {
	t.Helper()
	problems, count := open(t, paths...).Lint()
	return problems.Error(), count
}

func TestLint(t *testing.T) {
	folder(t, archive)
	for _, tc := range []struct {
		paths []string
		count int
	}{
		{[]string{"all"}, 3},
		{[]string{"all/acme"}, 1},
		{[]string{"all/acme_mail"}, 1}, // with its provider beside it
		{[]string{"all/acme_mail/integration.yaml", "all/sheets"}, 2},
		{[]string{"all", "all/acme", "./all/acme/integration.yaml"}, 3},
		{[]string{"elsewhere/draft.yaml"}, 1},
	} {
		if text, count := lint(t, tc.paths...); text != "" || count != tc.count {
			t.Errorf("%q: %d manifests, want %d: %s", tc.paths, count, tc.count, text)
		}
	}
	t.Chdir("all/acme")
	if text, count := lint(t, "."); text != "" || count != 1 {
		t.Errorf("%d manifests: %s", count, text)
	}
}

func TestLintReports(t *testing.T) {
	for _, tc := range []struct{ name, old, changed, want string }{
		{
			"an operation without a test", "  remove:\n    - name: a box", "  add2:\n    - name: a box",
			"all/acme/integration.yaml:17:3: /operations/remove: has no test: add one to all/acme/tests.yaml\n" +
				`all/acme/tests.yaml:11:3: /operations/add2: acme has no operation "add2" (did you mean "add"?)`,
		},
		{"no tests", "all/acme/tests.yaml --", "all/other/tests.yaml --", "all/acme/integration.yaml:12:1: /operations: have no tests: add the file all/acme/tests.yaml"},
		{"tests that cannot be read", "name: a bag", "nam: a bag", `all/acme/tests.yaml:7:7: /operations/add/1/nam: unknown field "nam" (did you mean "name"?)`},
		{
			"several files", "category: communication", "category: comunication",
			`all/acme_mail/integration.yaml:3:11: /category: "comunication" is unknown (did you mean "communication"?): use one of ai, commerce, communication, crm, data, development, files, finance, marketing, productivity, social, support`,
		},
		{"a provider that does not exist", "of: acme", "of: acne", `all/acme_mail/integration.yaml:6:18: /connection/of: there is no integration "acne" with connections of its own`},
		{"a folder with another name", "-- all/sheets/", "-- all/tables/", `all/tables/integration.yaml:1:5: /id: is "sheets", but the folder is tables: they must be equal`},
		{"recordings that cannot be read", "-- all/sheets/", "-- all/acme/recordings.json --\n{\"client\": 1}\n-- all/sheets/", "all/acme/recordings.json:1:12: /client: must be a string, not a number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder(t, strings.ReplaceAll(archive, tc.old, tc.changed))
			if text, _ := lint(t, "all"); text != filepath.FromSlash(tc.want) {
				t.Errorf("(-want +got)\n%s", cmp.Diff(tc.want, text))
			}
		})
	}
}

// An integration can only be checked with that whose connections it uses.
func TestLintBlocked(t *testing.T) {
	folder(t, strings.Replace(archive, "name: Acme\n", "", 1))
	if text, _ := lint(t, "all"); text != "all/acme/integration.yaml:1:1: /name: is required" {
		t.Errorf("the problems are %s", text)
	}
	text, _ := lint(t, "all/acme_mail")
	if want := "all/acme_mail/integration.yaml:6:18: /connection/of: its connections cannot be used before the problems of "; !strings.HasPrefix(text, want) {
		t.Errorf("the problems are %s", text)
	}
	folder(t, strings.Replace(archive, "{of: acme,", "{of: acme_mail,", 1))
	if text, _ := lint(t, "all"); !strings.Contains(text, `there is no integration "acme_mail" with connections of its own`) {
		t.Errorf("the problems are %s", text)
	}
}

func TestOpenRejects(t *testing.T) {
	folder(t, archive)
	for path, want := range map[string]string{
		"none":      "there is no file or folder none",
		"elsewhere": "elsewhere has no manifests: it needs an integration.yaml, or folders with one",
	} {
		if _, err := authoring.Open([]string{path}); err == nil || err.Error() != want {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
	if err := os.WriteFile("broken.yaml", []byte("id: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := lint(t, "broken.yaml"); !strings.HasPrefix(text, "broken.yaml:1:5: /id: the bracket") {
		t.Errorf("the problem is %s", text)
	}
}

// outcomes returns a line for each test and each problem.
func outcomes(t *testing.T, set *authoring.Set, filter string) []string {
	t.Helper()
	report, err := set.Test(t.Context(), filter)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for _, o := range report.Outcomes {
		out = append(out, strings.TrimSpace(o.Of+"/"+o.Test+" "+o.Problem))
	}
	for _, problem := range report.Problems {
		out = append(out, problem.Error())
	}
	return out
}

func TestTest(t *testing.T) {
	for _, tc := range []struct {
		name, old, changed, filter string
		want                       []string
	}{
		{"all", "", "", "", []string{"add/a box", "add/a bag", "remove/a box"}},
		{"an operation", "", "", "add", []string{"add/a box", "add/a bag"}},
		{"an operation of an integration", "", "", "acme.remove", []string{"remove/a box"}},
		{"a test", "", "", "add/bag", []string{"add/a bag"}},
		{"nothing", "", "", "removes", []string{`there is no test "removes" (did you mean "remove"?)`}},
		{"a test that fails", "json: {name: Bag}", "json: {name: bag}", "", []string{"add/a box", "add/a bag request 1: the body is not as expected:\n  /name: is \"Bag\", want \"bag\"", "remove/a box"}},
		{
			"a manifest that is not valid", "path: /things,", "path: things,", "",
			[]string{"all/acme/integration.yaml:16:35: /operations/add/request/path: must start with a slash"},
		},
		{"tests that are not valid", "name: a bag", "nam: a bag", "", []string{`all/acme/tests.yaml:7:7: /operations/add/1/nam: unknown field "nam" (did you mean "name"?)`}},
		{"recordings", "-- all/sheets/", "-- all/acme/recordings.json --\n{\"client\": \"x\", \"without\": {\"add\": \"it cannot\"}}\n-- all/sheets/", "", []string{
			"add/a box", "add/a bag", "remove/a box",
			"all/acme/recordings.json: remove has no recording; record one, or say why there is none in without",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			folder(t, strings.Replace(archive, tc.old, tc.changed, 1))
			if diff := cmp.Diff(tc.want, outcomes(t, open(t, "all"), tc.filter)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTestWithoutTests(t *testing.T) {
	folder(t, archive)
	for _, path := range []string{"all/sheets", "elsewhere/draft.yaml"} {
		if _, err := open(t, path).Test(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "there are no tests") {
			t.Errorf("%s: the error is %v", path, err)
		}
	}
}

// The tests of the product pass, and its manifests have no problems.
func TestBuiltin(t *testing.T) {
	t.Parallel()
	set, err := authoring.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	if problems, count := set.Lint(); len(problems) > 0 || count < 30 {
		t.Errorf("%d manifests: %v", count, problems)
	}
	report, err := set.Test(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if passed, failed := report.Passed(); passed < 100 || failed > 0 || len(report.Problems) > 0 {
		t.Errorf("%d tests have passed, %d failed; %v", passed, failed, report.Problems)
	}
}

// An integration of one's own needs no icon; one that is not allowed is a problem.
func TestIconsAreChecked(t *testing.T) {
	folder(t, archive)
	before, _ := open(t, "all").Lint()
	if err := os.WriteFile(filepath.Join("all", "acme", "icon.svg"), []byte("<svg>\n</svg>"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, _ := open(t, "all").Lint()
	if len(after) <= len(before) || !strings.Contains(after.Error(), "all/acme/icon.svg:1:1: the element svg needs xmlns=") {
		t.Errorf("before the icon: %v\nwith the icon: %v", before, after)
	}
}
