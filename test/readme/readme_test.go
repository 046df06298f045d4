package readme_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4)
	harness.Main(m)
}

const (
	root = "../.."
	// printed is the URL of the server in the documentation.
	printed = "http://127.0.0.1:8080"
)

var (
	testedBlock   = regexp.MustCompile("(?s)<!-- tested -->\n```sh\n(.*?\n)```\n")
	greetingBlock = regexp.MustCompile("(?s)```\n([^`]*/welcome#token=.*?\n)```\n")
	workflowBlock = regexp.MustCompile("(?s)<!-- workflow -->\n```json\n(.*?\n)```\n")
	link          = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	keyValue      = regexp.MustCompile(`(?m)^smk_\w+$`)
)

// The commands of the README work in the order in which they appear.
func TestReadme(t *testing.T) {
	t.Parallel()
	server, out := runExamples(t, "README.md")

	runs := bodies[runBody](out, "run_")
	if len(runs) != 2 || runs[0].Status != "succeeded" || len(runs[0].Steps) != 1 || runs[1].Status != "cancelled" {
		t.Fatalf("want a run that succeeded and one that was cancelled, got %+v", runs)
	}
	if got := runs[0].Steps[0].Output["text"]; got != "Hello Ada" {
		t.Errorf("output of the first run is %q, want Hello Ada", got)
	}

	key := keyValue.FindString(out)
	if key == "" {
		t.Fatalf("no API key was printed:\n%s", out)
	}
	limited := server.With(key)
	var list struct{ Data []runBody }
	limited.Expect(t, http.StatusOK, http.MethodGet, "/v1/workflows/"+runs[0].WorkflowID+"/runs", nil).Decode(t, &list)
	if len(list.Data) != 2 {
		t.Errorf("the workflow has %d runs, want 2", len(list.Data))
	}
	limited.Expect(t, http.StatusForbidden, http.MethodPost, "/v1/workflows", map[string]string{"name": "No"})

	backup := filepath.Join(filepath.Dir(server.Dir), "..", "stepmill-backup.tar")
	if info, err := os.Stat(backup); err != nil || info.Size() == 0 {
		t.Errorf("the backup is missing: %v", err)
	}
}

// The output of a first start in the documentation is what the program prints.
func TestGreeting(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, t.TempDir())
	for _, document := range []string{"README.md", "docs/accounts.md"} {
		block := greetingBlock.FindStringSubmatch(read(t, document))
		if block == nil {
			t.Fatalf("%s does not show the output of a first start", document)
		}
		shown := strings.ReplaceAll(block[1], printed, server.URL)
		shown = strings.Replace(shown, "Stepmill dev", "Stepmill …", 1)
		server.AwaitOutput(t, strings.ReplaceAll(regexp.QuoteMeta(shown), "…", `\S+`))
	}
}

// The examples in the API documentation work. Two of them return an error on purpose.
func TestAPIExamples(t *testing.T) {
	t.Parallel()
	// One example reads a stream for two seconds, too short for a busy machine.
	out := ""
	for _, length := range []string{"2", "10", "60"} {
		_, out = runExamples(t, "docs/api.md", "--max-time 2 ", "--max-time "+length+" ")
		if strings.Contains(out, "\nevent: run.succeeded\n") {
			break
		}
		t.Logf("%s s were not enough to receive the events", length)
	}

	var codes []string
	for line := range strings.Lines(out) {
		var body struct{ Error struct{ Code string } }
		if json.Unmarshal([]byte(line), &body) == nil && body.Error.Code != "" {
			codes = append(codes, body.Error.Code)
		}
	}
	if want := []string{"workflow_invalid", "version_conflict"}; !slices.Equal(codes, want) {
		t.Errorf("the examples return the errors %v, want %v\n%s", codes, want, out)
	}
	for _, line := range []string{"event: step", "event: end", "id: end", "event: run.succeeded"} {
		if !strings.Contains(out, "\n"+line+"\n") {
			t.Errorf("the streams do not contain %q\n%s", line, out)
		}
	}
	// A start, a start that waits, and a start with its replay.
	if runs := bodies[runBody](out, "run_"); len(runs) != 4 || runs[2].ID != runs[3].ID {
		t.Errorf("want four responses with runs, the last two with the same run, got %+v", runs)
	}
}

// The examples of connections work.
func TestConnectionExamples(t *testing.T) {
	t.Parallel()
	server, out := runExamples(t, "docs/connections.md")
	var list struct{ Data []struct{ Name string } }
	server.Expect(t, http.StatusOK, http.MethodGet, "/v1/connections", nil).Decode(t, &list)
	var names []string
	for _, c := range list.Data {
		names = append(names, c.Name)
	}
	if want := []string{"erp", "git", "queue", "shop", "warehouse"}; !slices.Equal(names, want) || strings.Contains(out, `"error":{`) {
		t.Errorf("got %v, want %v\n%s", names, want, out)
	}
}

// The examples of tables and keys work.
func TestTableExamples(t *testing.T) {
	t.Parallel()
	server, out := runExamples(t, "docs/tables.md")
	var tables struct {
		Data []struct {
			ID   string
			Rows int
		}
	}
	server.Expect(t, http.StatusOK, http.MethodGet, "/v1/tables", nil).Decode(t, &tables)
	if len(tables.Data) != 1 || tables.Data[0].Rows != 2 || strings.Contains(out, `"error":{`) {
		t.Errorf("got %+v\n%s", tables, out)
	}
	if !strings.Contains(out, `"data":[{"id":"row_`) || !strings.Contains(out, "\nada@example.com,Bern,5\nbob@example.com,,\n") || !strings.Contains(out, `"data":[{"key":"alert:disk-full","value":true`) {
		t.Errorf("the row or the key is not found\n%s", out)
	}
}

// The workflows that use keys do what their text says when they run a second time.
func TestKeyExamples(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, t.TempDir())
	examples := workflowBlock.FindAllStringSubmatch(read(t, "docs/tables.md"), -1)
	if len(examples) != 3 {
		t.Fatalf("docs/tables.md has %d examples, want 3", len(examples))
	}
	want := [][2]string{
		{"once=succeeded alert=succeeded", "once=succeeded alert=skipped"},
		{"count=succeeded gift=skipped", "count=succeeded gift=skipped"},
		{"first=succeeded again=skipped ship=succeeded", "first=succeeded again=succeeded"},
	}
	for i, example := range examples {
		var made struct{ ID string }
		server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows", map[string]string{"name": "Example"}).Decode(t, &made)
		server.Expect(t, http.StatusOK, http.MethodPatch, "/v1/workflows/"+made.ID, json.RawMessage(example[1]))
		for n, steps := range want[i] {
			var run struct {
				Status string
				Steps  []struct {
					StepID string `json:"step_id"`
					Status string
				}
			}
			server.Expect(t, http.StatusOK, http.MethodPost, "/v1/workflows/"+made.ID+"/runs", json.RawMessage(`{"payload": {"id": 7}}`), "Prefer", "wait=30").Decode(t, &run)
			var got []string
			for _, step := range run.Steps {
				got = append(got, step.StepID+"="+step.Status)
			}
			if run.Status != "succeeded" || strings.Join(got, " ") != steps {
				t.Errorf("run %d of example %d is %s: %v, want %s", n+1, i+1, run.Status, got, steps)
			}
		}
	}
}

// Every workflow in the documentation can be saved and started.
func TestWorkflowExamples(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, t.TempDir())
	var examples [][]string
	for _, document := range []string{"docs/workflows.md", "docs/approvals.md", "docs/connections.md", "docs/triggers.md"} {
		found := workflowBlock.FindAllStringSubmatch(read(t, document), -1)
		if len(found) == 0 {
			t.Fatalf("%s has no examples", document)
		}
		examples = append(examples, found...)
	}
	server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/connections", map[string]any{
		"name": "shop", "auth": "bearer", "fields": map[string]string{"token": "of the examples"}, "definition": map[string]any{"hosts": []string{"api.shop.example"}},
	})
	server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/connections", map[string]any{
		"name": "code", "integration": "github", "auth": "bearer", "fields": map[string]string{"token": "of the examples"},
	})
	server.Expect(t, http.StatusCreated, http.MethodPut, "/v1/secrets/example", map[string]string{"value": "of the examples"})
	for _, example := range examples {
		var made struct{ ID string }
		server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows", map[string]string{"name": "Example"}).Decode(t, &made)
		server.Expect(t, http.StatusOK, http.MethodPatch, "/v1/workflows/"+made.ID, json.RawMessage(example[1]))
		server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows/"+made.ID+"/runs", nil)
	}
}

// The links in the documentation lead to existing files.
func TestLinks(t *testing.T) {
	t.Parallel()
	var documents []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), target[1])); err != nil {
				t.Errorf("%s: the target of the link %s does not exist", document, target[1])
			}
		}
	}
}

// runBody has the members of a run that the tests check.
type runBody struct {
	ID         string
	WorkflowID string `json:"workflow_id"`
	Status     string
	Steps      []struct{ Output map[string]any }
}

// runExamples runs the tested blocks of a document in one shell, in a directory like that
// of a reader: the program in bin, the data beside it. Pairs of old and new text are
// replaced. It returns the server and the output of the shell.
func runExamples(t *testing.T, document string, replace ...string) (*harness.Server, string) {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "stepmill")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	// bin/stepmill does not exist until the document says to build it; `make build`
	// then provides the binary under test.
	build := "build:\n\tmkdir -p bin\n\tln -s '" + binary + "' bin/stepmill\n"
	if err := os.WriteFile(filepath.Join(folder, "Makefile"), []byte(build), 0o600); err != nil {
		t.Fatal(err)
	}
	server := harness.Start(t, filepath.Join(folder, "stepmill-data"))

	var script strings.Builder
	for _, block := range testedBlock.FindAllStringSubmatch(read(t, document), -1) {
		script.WriteString(strings.ReplaceAll(block[1], printed, server.URL))
	}
	if script.Len() == 0 {
		t.Fatalf("%s has no tested blocks", document)
	}
	shell := exec.CommandContext(t.Context(), "sh", "-eu")
	shell.Dir, shell.Env = folder, harness.Environ("STEPMILL_KEY="+server.Key)
	shell.Stdin = strings.NewReader(strings.NewReplacer(replace...).Replace(script.String()))
	shell.Stderr = t.Output()
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", document, err, out)
	}
	return server, string(out)
}

// bodies decodes the responses in the output whose id has the prefix.
func bodies[T any](out, prefix string) []T {
	var found []T
	for line := range strings.Lines(out) {
		var body T
		at := strings.Index(line, `{"id":"`+prefix)
		if at == 0 && json.Unmarshal([]byte(line), &body) == nil {
			found = append(found, body)
		}
	}
	return found
}

func read(t *testing.T, document string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
