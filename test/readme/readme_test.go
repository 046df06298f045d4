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

func TestMain(m *testing.M) { harness.Main(m) }

const (
	root = "../.."
	// printed is the address of the server in the documentation.
	printed = "http://127.0.0.1:8080"
)

var (
	testedBlock   = regexp.MustCompile("(?s)<!-- tested -->\n```sh\n(.*?\n)```\n")
	greetingBlock = regexp.MustCompile("(?s)```\n([^`]*/welcome#token=.*?\n)```\n")
	workflowBlock = regexp.MustCompile("(?s)<!-- workflow -->\n```json\n(.*?\n)```\n")
	link          = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	keyValue      = regexp.MustCompile(`(?m)^smk_\w+$`)
)

// The README is a newcomer's first five minutes: what it says to paste works,
// in the order it stands there.
func TestReadme(t *testing.T) {
	t.Parallel()
	server, out := paste(t, "README.md")

	runs := bodies[runBody](out, "run_")
	if len(runs) != 2 || runs[0].Status != "succeeded" || len(runs[0].Steps) != 1 || runs[1].Status != "cancelled" {
		t.Fatalf("want a run that succeeded and one that was cancelled, got %+v", runs)
	}
	if got := runs[0].Steps[0].Output["text"]; got != "Hello Ada" {
		t.Errorf("the first run says %q, want Hello Ada", got)
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

	backup := filepath.Join(filepath.Dir(server.Dir), "..", "stepmill-backup.db")
	if info, err := os.Stat(backup); err != nil || info.Size() == 0 {
		t.Errorf("there is no backup: %v", err)
	}
}

// What the documentation shows of a first start is what the program prints.
func TestGreeting(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, t.TempDir())
	for _, document := range []string{"README.md", "docs/accounts.md"} {
		block := greetingBlock.FindStringSubmatch(read(t, document))
		if block == nil {
			t.Fatalf("%s does not show what a first start prints", document)
		}
		shown := strings.ReplaceAll(block[1], printed, server.URL)
		shown = strings.Replace(shown, "Stepmill dev", "Stepmill …", 1)
		server.AwaitPrinted(t, strings.ReplaceAll(regexp.QuoteMeta(shown), "…", `\S+`))
	}
}

// The examples of the API can be pasted too. Two of them are meant to fail.
func TestAPIExamples(t *testing.T) {
	t.Parallel()
	_, out := paste(t, "docs/api.md")

	var codes []string
	for line := range strings.Lines(out) {
		var body struct{ Error struct{ Code string } }
		if json.Unmarshal([]byte(line), &body) == nil && body.Error.Code != "" {
			codes = append(codes, body.Error.Code)
		}
	}
	if want := []string{"workflow_invalid", "version_conflict"}; !slices.Equal(codes, want) {
		t.Errorf("the examples are answered with the errors %v, want %v\n%s", codes, want, out)
	}
	for _, line := range []string{"event: step", "event: end", "id: end", "event: run.succeeded"} {
		if !strings.Contains(out, "\n"+line+"\n") {
			t.Errorf("the streams do not tell %q\n%s", line, out)
		}
	}
	// Started, started and awaited, started once and repeated.
	if runs := bodies[runBody](out, "run_"); len(runs) != 4 || runs[2].ID != runs[3].ID {
		t.Errorf("want four answers with runs, the last two with the same, got %+v", runs)
	}
}

// Every workflow that the documentation shows can be saved and started.
func TestWorkflowExamples(t *testing.T) {
	t.Parallel()
	server := harness.Start(t, t.TempDir())
	var examples [][]string
	for _, document := range []string{"docs/workflows.md", "docs/approvals.md", "docs/triggers.md"} {
		found := workflowBlock.FindAllStringSubmatch(read(t, document), -1)
		if len(found) == 0 {
			t.Fatalf("there are no examples in %s", document)
		}
		examples = append(examples, found...)
	}
	server.Expect(t, http.StatusCreated, http.MethodPut, "/v1/secrets/example", map[string]string{"value": "of the examples"})
	for _, example := range examples {
		var made struct{ ID string }
		server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows", map[string]string{"name": "Example"}).Decode(t, &made)
		server.Expect(t, http.StatusOK, http.MethodPatch, "/v1/workflows/"+made.ID, json.RawMessage(example[1]))
		server.Expect(t, http.StatusCreated, http.MethodPost, "/v1/workflows/"+made.ID+"/runs", nil)
	}
}

// Links between documents, and from them to the code, lead somewhere.
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
				t.Errorf("%s: the link to %s leads nowhere", document, target[1])
			}
		}
	}
}

// runBody is what the tests look at in a run.
type runBody struct {
	ID         string
	WorkflowID string `json:"workflow_id"`
	Status     string
	Steps      []struct{ Output map[string]any }
}

// paste gives the tested blocks of a document to one shell, in a folder that
// looks like the one its reader is in: the program in bin, the data beside it.
// It returns the server and what the shell printed.
func paste(t *testing.T, document string) (*harness.Server, string) {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "stepmill")
	if err := os.MkdirAll(filepath.Join(folder, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(folder, "bin", "stepmill")); err != nil {
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
	shell.Dir, shell.Env, shell.Stdin = folder, harness.Environ("STEPMILL_KEY="+server.Key), strings.NewReader(script.String())
	shell.Stderr = t.Output()
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", document, err, out)
	}
	return server, string(out)
}

// bodies decodes the printed answers that are one object with such an id.
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
