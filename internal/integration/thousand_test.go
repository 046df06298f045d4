package integration_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
)

// countedFS counts the files of a folder that are opened.
type countedFS struct {
	fs.FS

	mu     sync.Mutex
	opened []string
}

func (c *countedFS) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = append(c.opened, name)
	return c.FS.Open(name)
}

// copies returns a folder with copies of the manifest of Telegram, with other ids, that have
// at least so many operations in all.
func copies(t *testing.T, operations int) fs.FS {
	t.Helper()
	text, err := fs.ReadFile(integrations.Files, "telegram/integration.yaml")
	if err != nil {
		t.Fatal(err)
	}
	original, err := integration.Parse(text, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := fstest.MapFS{}
	for n := 0; operations > 0; n++ {
		id := fmt.Sprintf("copy_%03d", n)
		text := strings.Replace(string(text), "\nid: telegram\n", "\nid: "+id+"\n", 1)
		if strings.HasPrefix(text, "id: telegram\n") {
			text = strings.Replace(text, "id: telegram\n", "id: "+id+"\n", 1)
		}
		out[id+"/integration.yaml"] = &fstest.MapFile{Data: []byte(text)}
		out[id+"/icon.svg"] = &fstest.MapFile{Data: []byte(svg(`<path d="M0 0h4"/>`))}
		operations -= len(original.Operations())
	}
	return out
}

// A thousand more operations cost nothing at the start but their outlines: no manifest is
// read before one of its operations is needed, and then only that one; no icon before a
// browser shows it.
func TestLargeCatalog(t *testing.T) {
	t.Parallel()
	all := copies(t, 1000)
	index, err := integration.Index(all)
	if err != nil {
		t.Fatal(err)
	}
	folder := &countedFS{FS: all}
	catalog, err := integration.LoadIndexed(folder, index)
	if err != nil {
		t.Fatal(err)
	}
	operations := 0
	for _, one := range catalog.List() {
		operations += len(one.OperationOutlines())
	}
	if operations < 1000 || len(folder.opened) > 0 {
		t.Fatalf("%d operations are known, and %q were read", operations, folder.opened)
	}
	if perOperation := len(index) / operations; perOperation > 2<<10 {
		t.Errorf("the index has %d bytes for each operation", perOperation)
	}
	one, _ := catalog.Find("copy_007")
	for range 2 {
		if len(one.Operations()) == 0 || len(one.Triggers()) == 0 {
			t.Error("the manifest has no operations or no triggers")
		}
	}
	if len(one.Icon()) == 0 || strings.Join(folder.opened, " ") != "copy_007/integration.yaml copy_007/icon.svg" {
		t.Errorf("%q were read for one operation and one icon", folder.opened)
	}
}

// The index has the outlines of operations and triggers only, whatever else a manifest says
// about them.
func TestIndexIsSmall(t *testing.T) {
	t.Parallel()
	for _, unwanted := range []string{`"input":`, `"request":`, `"register":`} {
		if bytes.Contains(integrations.Index, []byte(unwanted)) {
			t.Errorf("the index has %s", unwanted)
		}
	}
}
