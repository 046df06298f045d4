package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/archive"
)

func TestMapping(t *testing.T) {
	t.Parallel()
	type item struct {
		id, note string
		size     int
		tags     []string
	}
	m := mapTable("items", "id", func(i *item) []any {
		return []any{"id", &i.id, "note", nullable(&i.note), "size", &i.size, "tags", jsonText(&i.tags), "secret", unbound(archive.Bytes), "here", local}
	})
	if want := (Table{Name: "items", Key: "id", Text: "id note tags", Int: "size", Bytes: "secret", NotExported: "here"}); m.Table != want {
		t.Errorf("the table is %+v, want %+v", m.Table, want)
	}
	if want := `INSERT INTO items (id, note, size, tags) VALUES ($1, $2, $3, $4)`; m.insert != want {
		t.Errorf("insert: %s", m.insert)
	}
	if want := `i.id, i.note, i.size, i.tags`; m.columns("i.") != want {
		t.Errorf("columns: %s", m.columns("i."))
	}
	one := item{id: "a", size: 2, tags: []string{"x"}}
	args, err := m.args(one)
	if diff := cmp.Diff([]any{"a", nil, 2, `["x"]`}, args); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	args, err = m.values(one, "size", "id")
	if diff := cmp.Diff([]any{2, "a"}, args); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := m.values(one, "missing"); err == nil {
		t.Error("a column that is missing has a value")
	}
}
