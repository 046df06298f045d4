package strictyaml_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// The dashboard's tests use the same corpus, so that both parsers agree. Each
// valid document has its JSON beside it; invalid documents must be rejected.
func TestCorpus(t *testing.T) {
	t.Parallel()
	for _, path := range corpus(t, "accepted") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			document, err := strictyaml.Decode(readFile(t, path))
			if err != nil {
				t.Fatal(err)
			}
			got, err := strictjson.DecodeAny(document.JSON)
			if err != nil {
				t.Fatal(err)
			}
			want, err := strictjson.DecodeAny(readFile(t, strings.TrimSuffix(path, ".yaml")+".json"))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %#v, want %#v", got, want)
			}
		})
	}
}

func TestCorpusOfInvalidDocuments(t *testing.T) {
	t.Parallel()
	for _, path := range corpus(t, "refused") {
		if document, err := strictyaml.Decode(readFile(t, path)); err == nil {
			t.Errorf("%s is read as %s", filepath.Base(path), document.JSON)
		}
	}
}

func corpus(t *testing.T, kind string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "corpus", kind, "*.yaml"))
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d documents: %v", len(paths), err)
	}
	return paths
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
