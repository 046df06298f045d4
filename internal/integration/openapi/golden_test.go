package openapi_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/integration/openapi"
)

var update = flag.Bool("update", false, "write the manifests in testdata")

// documents are the documents in testdata by their name without its end.
func documents(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, file := range []string{"pets.yaml", "crm.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(file, filepath.Ext(file))] = text
	}
	return out
}

// The manifest of each document, with its notes as comments.
func TestManifests(t *testing.T) {
	t.Parallel()
	for name, document := range documents(t) {
		result, err := openapi.Convert(document, openapi.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got bytes.Buffer
		for _, note := range result.Notes {
			got.WriteString("# " + note.String() + "\n")
		}
		got.Write(result.Manifest)
		file := filepath.Join("testdata", name+".manifest.yaml")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s differs; -update writes it (-want +got)\n%s", file, diff)
		}
	}
}
