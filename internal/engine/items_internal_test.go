package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/test/lane"
)

// listFile is a list file in memory that fails at some reads.
type listFile struct {
	content []byte
	list    expr.FileList
	open    int // readers
	fails   func() bool
}

var errRead = errors.New("cannot read")

func newListFile(t rapid.TB, items []string) *listFile {
	t.Helper()
	var content bytes.Buffer
	f := &listFile{fails: func() bool { return false }}
	w := listfile.NewWriter(&content, &f.list)
	for _, item := range items {
		if err := w.Add([]byte(item)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	f.content = content.Bytes()
	return f
}

func (f *listFile) openAt(_ context.Context, _ *expr.File, offset int64) (io.ReadCloser, error) {
	if f.fails() {
		return nil, errRead
	}
	f.open++
	return &listReader{f, bytes.NewReader(f.content[offset:])}, nil
}

type listReader struct {
	of *listFile
	io.Reader
}

func (r *listReader) Close() error {
	r.of.open--
	return nil
}

// Whatever the order in which items are read, and whichever reads fail, each item is the
// right one, and at most a window is held in memory.
func TestItemsOfAListFile(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		var items []string
		for i := range rapid.IntRange(1, 12).Draw(t, "items") {
			items = append(items, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 30_000, windowBytes - 10, windowBytes + 10}).Draw(t, "size"))))
		}
		f := newListFile(t, items)
		l := &fileItems{file: expr.NewFile(expr.File{List: &f.list})}
		if rapid.Bool().Draw(t, "fails") {
			f.fails = func() bool { return rapid.IntRange(0, 3).Draw(t, "fail") == 0 }
		}
		n := 0
		for range rapid.IntRange(1, 20).Draw(t, "reads") {
			if n++; rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
				n = rapid.IntRange(0, len(items)-1).Draw(t, "to")
			}
			if n >= len(items) {
				break
			}
			got, err := l.at(t.Context(), f.openAt, n)
			if errors.Is(err, errRead) {
				n--
				continue
			}
			if want := strings.Trim(items[n], `"`); err != nil || got != want {
				t.Fatalf("item %d is %.20v, want %.20s: %v", n, got, want, err)
			}
			held := 0
			for _, item := range l.window {
				held += len(item)
			}
			if last := len(l.window[len(l.window)-1]); held-last > windowBytes || f.open != 0 {
				t.Fatalf("%d bytes are in memory, %d readers are open", held, f.open)
			}
		}
	})
}

// A file that has fewer items than its reference says is an error.
func TestTruncatedListFile(t *testing.T) {
	t.Parallel()
	f := newListFile(t, []string{"1", "2"})
	l := &fileItems{file: expr.NewFile(expr.File{List: &f.list})}
	if _, err := l.at(t.Context(), f.openAt, 2); err == nil {
		t.Error("an item after the last one was read")
	}
	f.content = f.content[:3]
	l = &fileItems{file: l.file}
	if _, err := l.at(t.Context(), f.openAt, 1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
