package paging_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

func newCodec(t testing.TB) *paging.Codec {
	t.Helper()
	codec, err := paging.NewCodec(paging.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return codec
}

func TestCursorIsBoundToItsScope(t *testing.T) {
	t.Parallel()
	codec := newCodec(t)
	cursor := codec.Seal("run_1", "ws_a|runs|status=failed")
	position, err := codec.Open(cursor, "ws_a|runs|status=failed")
	if err != nil || position != "run_1" {
		t.Fatalf("got %q, %v", position, err)
	}
	for _, scope := range []string{"ws_b|runs|status=failed", "ws_a|runs|status=", "ws_a|workflows|", ""} {
		if _, err := codec.Open(cursor, scope); !fault.Is(err, fault.InvalidCursor) {
			t.Errorf("scope %q: got %v", scope, err)
		}
	}
	if _, err := newCodec(t).Open(cursor, "ws_a|runs|status=failed"); !fault.Is(err, fault.InvalidCursor) {
		t.Errorf("another key: got %v", err)
	}
}

func TestCursorIsEncrypted(t *testing.T) {
	t.Parallel()
	cursor := newCodec(t).Seal("run_secret", "s")
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || strings.Contains(string(raw), "secret") {
		t.Fatalf("%q, %v", raw, err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	self := func(s string) string { return s }
	rows := []string{"c", "b", "a"}
	if page := paging.Cut(rows, 3, self); len(page.Items) != 3 || page.Next != "" {
		t.Errorf("a full last page: %+v", page)
	}
	if page := paging.Cut(rows, 2, self); len(page.Items) != 2 || page.Next != "b" {
		t.Errorf("another page follows: %+v", page)
	}
}

func FuzzOpen(f *testing.F) {
	codec := newCodec(f)
	f.Add(codec.Seal("run_1", "scope"), "scope")
	f.Add("", "")
	f.Add("!!!", "scope")
	f.Add(strings.Repeat("A", 4096), "scope")
	f.Fuzz(func(t *testing.T, cursor, scope string) {
		position, err := codec.Open(cursor, scope)
		if err != nil {
			if !fault.Is(err, fault.InvalidCursor) {
				t.Fatalf("got %v", err)
			}
			return
		}
		if again, err := codec.Open(codec.Seal(position, scope), scope); err != nil || again != position {
			t.Fatalf("position does not survive Seal and Open: %q, %v", again, err)
		}
	})
}
