package listfile_test

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/test/lane"
)

// write returns a list file with items and its description.
func write(t rapid.TB, items ...string) (string, *expr.FileList) {
	t.Helper()
	var out bytes.Buffer
	list := &expr.FileList{}
	w := listfile.NewWriter(&out, list)
	for _, item := range items {
		if err := w.Add([]byte(item)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String(), list
}

// read returns all items of a list file.
func read(r io.Reader) ([]string, error) {
	var items []string
	reader := listfile.NewReader(r)
	for {
		item, err := reader.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return items, err
		}
		items = append(items, string(item))
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			size := rapid.SampledFrom([]int{0, 1, 100, 65_535, 65_536, 65_537, 200_000}).Draw(t, "size")
			return `"` + strings.Repeat("x", size) + `"`
		}), 0, 120).Draw(t, "items")
		text, list := write(t, items...)
		got, err := read(iotest.HalfReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(items, got); diff != "" && len(items)+len(got) > 0 {
			t.Fatal("the items differ")
		}
		if list.Count != len(items) || strings.Count(text, "\n") != len(items) {
			t.Fatalf("count %d of %d", list.Count, len(items))
		}
	})
}

func TestFirstItems(t *testing.T) {
	t.Parallel()
	small := make([]string, 150)
	for i := range small {
		small[i] = strconv.Itoa(i)
	}
	large := []string{`1`, `"` + strings.Repeat("x", 20<<10) + `"`, `"` + strings.Repeat("y", 20<<10) + `"`, `2`}
	for _, tc := range []struct {
		items []string
		want  int
	}{{nil, 0}, {small[:7], 7}, {small, 100}, {large, 2}, {large[1:], 1}, {[]string{`"` + strings.Repeat("x", 40<<10) + `"`, `1`}, 0}} {
		_, list := write(t, tc.items...)
		if len(list.First) != tc.want || list.First == nil || list.Count != len(tc.items) {
			t.Errorf("%d items have %d first ones, want %d", list.Count, len(list.First), tc.want)
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	if items, err := read(strings.NewReader("1\n2")); !errors.Is(err, io.ErrUnexpectedEOF) || len(items) != 1 {
		t.Errorf("an incomplete last line: %v, %v", items, err)
	}
	if _, err := read(io.MultiReader(strings.NewReader("1\n"), iotest.ErrReader(io.ErrClosedPipe))); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := read(strings.NewReader(strings.Repeat("x", 5<<20) + "\n")); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	if err := listfile.NewWriter(io.Discard, &expr.FileList{}).Add(make([]byte, 5<<20)); err == nil {
		t.Error("an item of 5 MiB was written")
	}
}

// Reading any bytes gives exactly their complete lines.
func FuzzReader(f *testing.F) {
	f.Add("1\n2\n")
	f.Add("\n\n{}")
	f.Add(strings.Repeat("x", 70_000) + "\ny\n")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := read(strings.NewReader(text))
		want := strings.Split(text, "\n")
		if complete := strings.HasSuffix(text, "\n") || text == ""; complete != (err == nil) {
			t.Fatalf("complete: %v, error: %v", complete, err)
		}
		if want = want[:len(want)-1]; !cmp.Equal(want, items, cmpopts.EquateEmpty()) {
			t.Fatalf("%q has the items %q", text, items)
		}
	})
}
