package archive_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/archive"
	"github.com/stepmill/stepmill/test/lane"
)

// content is the content of an archive.
type content struct {
	Header   archive.Header
	Sections []archive.Section
	Rows     map[string][][]any
}

func header(tables ...archive.Table) archive.Header {
	return archive.Header{
		Format: archive.Format, Version: archive.Version, Schema: 7, CreatedAt: time.Date(2026, 11, 15, 8, 0, 0, 123000, time.UTC),
		Stepmill: "1.2.3", KeyCheck: []byte("check"), Tables: tables,
	}
}

// example returns content with every kind of value.
func example() content {
	h := header(
		archive.Table{Name: "things", Columns: []archive.Column{
			{Name: "id", Kind: archive.Text}, {Name: "n", Kind: archive.Int}, {Name: "on", Kind: archive.Bool}, {Name: "body", Kind: archive.Bytes},
		}},
		archive.Table{Name: "empty", Columns: []archive.Column{{Name: "id", Kind: archive.Text}}},
		archive.Table{Name: "last", Columns: []archive.Column{{Name: "id", Kind: archive.Text}}},
	)
	return content{h, []archive.Section{{Table: "things", Last: math.MaxInt64}, {Table: "empty"}, {Table: "last"}}, map[string][][]any{
		"things": {
			{"a", int64(0), true, []byte{}},
			{"", int64(math.MaxInt64), false, []byte{0, 1, 255}},
			{"<&>\u2028 \x00 \" 😀", int64(math.MinInt64), nil, nil},
			{"not UTF-8: \xff\xc3", int64(1<<53 + 1), nil, bytes.Repeat([]byte("x"), 100_000)},
			{nil, nil, nil, nil},
		},
		"empty": nil,
		"last":  {{"z"}},
	}}
}

func write(t require, c content) []byte {
	var file bytes.Buffer
	w, err := archive.NewWriter(&file, c.Header)
	for _, s := range c.Sections {
		err = errors.Join(err, w.Begin(s))
		for _, row := range c.Rows[s.Table] {
			err = errors.Join(err, w.Row(row))
		}
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// require is implemented by testing.TB and rapid.T.
type require interface{ Fatal(args ...any) }

// read returns the content of an archive, if it is complete.
func read(from io.Reader) (c content, err error) {
	r, err := archive.NewReader(from)
	if err != nil {
		return c, err
	}
	c.Header, c.Rows = r.Header(), map[string][][]any{}
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		c.Sections, c.Rows[s.Table] = append(c.Sections, s), nil
		for {
			row, err := r.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return c, err
			}
			c.Rows[s.Table] = append(c.Rows[s.Table], row)
		}
	}
}

func unpacked(t testing.TB, file []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func packed(text []byte) []byte {
	var file bytes.Buffer
	w, _ := gzip.NewWriterLevel(&file, gzip.NoCompression) // for speed
	_, _ = w.Write(text)
	_ = w.Close()
	return file.Bytes()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	want := example()
	file := write(t, want)
	got, err := read(bytes.NewReader(file))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-written +read):\n%s", err, diff)
	}
	// A file that was decompressed and compressed again is still valid.
	if got, err := read(bytes.NewReader(packed(unpacked(t, file)))); err != nil || !cmp.Equal(want, got) {
		t.Errorf("compressed again: %v", err)
	}
	if strings.Contains(string(unpacked(t, file)), `\u003c`) {
		t.Error("HTML characters are escaped")
	}
}

// Rows that were skipped are still counted and verified.
func TestNextSkipsUnreadRows(t *testing.T) {
	t.Parallel()
	r, err := archive.NewReader(bytes.NewReader(write(t, example())))
	for n := 0; err == nil; n++ {
		if _, err = r.Next(); errors.Is(err, io.EOF) && n != 3 {
			t.Errorf("%d tables", n)
		}
	}
	if !errors.Is(err, io.EOF) || r.Rows() != 6 {
		t.Errorf("%v after %d rows", err, r.Rows())
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

func TestRoundTripOfRandomRows(t *testing.T) {
	t.Parallel()
	kinds := rapid.SampledFrom([]archive.Kind{archive.Text, archive.Int, archive.Bool, archive.Bytes})
	lane.Check(t, func(t *rapid.T) {
		want := content{Header: header(), Rows: map[string][][]any{}}
		names := rapid.SliceOfDistinct(rapid.String(), func(name string) string { return name }).Draw(t, "tables")
		for _, name := range names {
			table := archive.Table{Name: name}
			for _, kind := range rapid.SliceOfN(kinds, 1, 5).Draw(t, "columns") {
				table.Columns = append(table.Columns, archive.Column{Name: string(kind), Kind: kind})
			}
			want.Header.Tables = append(want.Header.Tables, table)
			want.Sections = append(want.Sections, archive.Section{Table: name, Last: rapid.Int64().Draw(t, "last")})
			want.Rows[name] = nil
			for range rapid.IntRange(0, 5).Draw(t, "rows") {
				want.Rows[name] = append(want.Rows[name], drawRow(t, table))
			}
		}
		got, err := read(bytes.NewReader(write(t, want)))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v (-written +read):\n%s", err, diff)
		}
	})
}

func drawRow(t *rapid.T, table archive.Table) []any {
	var row []any
	for _, column := range table.Columns {
		var value any
		switch {
		case rapid.IntRange(0, 4).Draw(t, "null") == 0:
		case column.Kind == archive.Text:
			value = string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		case column.Kind == archive.Int:
			value = rapid.Int64().Draw(t, "int")
		case column.Kind == archive.Bool:
			value = rapid.Bool().Draw(t, "bool")
		default:
			value = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")...)
		}
		row = append(row, value)
	}
	return row
}

// A file that is truncated anywhere is rejected, whether the gzip stream or the
// lines inside it are cut.
func TestRejectsTruncatedFiles(t *testing.T) {
	t.Parallel()
	whole := example()
	whole.Rows["things"] = whole.Rows["things"][:3]
	file := write(t, whole)
	text := unpacked(t, file)
	for n := range file {
		if got, err := read(bytes.NewReader(file[:n])); err == nil {
			t.Fatalf("%d of %d bytes were accepted: %+v", n, len(file), got)
		}
	}
	for n := range text {
		if got, err := read(bytes.NewReader(packed(text[:n]))); err == nil {
			t.Fatalf("%d of %d characters were accepted: %+v", n, len(text), got)
		}
	}
}

// A file with any bit changed, or any line removed, repeated or moved, is rejected.
func TestRejectsModifiedFiles(t *testing.T) {
	t.Parallel()
	whole := example()
	whole.Rows["things"] = whole.Rows["things"][:3]
	file := write(t, whole)
	text := unpacked(t, file)
	for n := range text {
		changed := bytes.Clone(text)
		changed[n] ^= 1 << (n % 8)
		if got, err := read(bytes.NewReader(packed(changed))); err == nil {
			t.Fatalf("character %d was changed to %q: %+v", n, changed[n], got)
		}
	}
	// A change of the gzip stream that leaves its content unchanged is fine.
	for n := range file {
		changed := bytes.Clone(file)
		changed[n] ^= 1 << (n % 8)
		if got, err := read(bytes.NewReader(changed)); err == nil && !cmp.Equal(got, whole) {
			t.Fatalf("byte %d was changed: %+v", n, got)
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines {
		for what, changed := range map[string][][]byte{
			"left out": append(append([][]byte{}, lines[:i]...), lines[i+1:]...),
			"repeated": append(append([][]byte{}, lines[:i+1]...), lines[i:]...),
			"moved":    append(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), lines[i]),
		} {
			if what == "moved" && i == len(lines)-1 {
				continue
			}
			if _, err := read(bytes.NewReader(packed(bytes.Join(changed, nil)))); err == nil {
				t.Errorf("line %d was %s", i, what)
			}
		}
	}
	for _, more := range []string{"\n", " ", "x", string(lines[len(lines)-1])} {
		if _, err := read(bytes.NewReader(packed(append(bytes.Clone(text), more...)))); err == nil {
			t.Errorf("%q was added", more)
		}
	}
	if _, err := read(bytes.NewReader(append(bytes.Clone(file), file...))); err == nil {
		t.Error("a file that was appended to itself was accepted")
	}
}

func TestRejectsInvalidHeaders(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ file, want string }{
		"nothing":         {"", "not a Stepmill export"},
		"text":            {"hello", "not a Stepmill export"},
		"a database":      {"SQLite format 3\x00", "not a Stepmill export"},
		"other gzip data": {string(packed([]byte("hello\n"))), "not a Stepmill export"},
		"other JSON":      {string(packed([]byte("{}\n"))), "not a Stepmill export"},
		"a newer one":     {string(packed([]byte(`{"format":"stepmill-export","version":2,"stepmill":"9.9","new":[]}` + "\n"))), "written by Stepmill 9.9"},
		"no version":      {string(packed([]byte(`{"format":"stepmill-export"}` + "\n"))), "version 0 does not exist"},
		"an unknown kind": {string(packed([]byte(`{"format":"stepmill-export","version":1,"tables":[{"name":"a","columns":[{"name":"b","kind":"c"}]}]}` + "\n"))), "unknown kind"},
	} {
		if _, err := archive.NewReader(strings.NewReader(test.file)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}

// An I/O error is not reported as damage.
func TestReadErrorsAreNotReportedAsDamage(t *testing.T) {
	t.Parallel()
	file, failed := write(t, example()), errors.New("disk error")
	for _, n := range []int{0, 5, 100, len(file) - 1} {
		_, err := read(io.MultiReader(bytes.NewReader(file[:n]), failing{failed}))
		if !errors.Is(err, failed) || errors.Is(err, archive.ErrDamaged) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestWriterRejectsMisuse(t *testing.T) {
	t.Parallel()
	w, err := archive.NewWriter(io.Discard, example().Header)
	if err != nil {
		t.Fatal(err)
	}
	mustFail := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s was written", what)
		}
	}
	mustFail("a row of no table", w.Row([]any{"z"}))
	mustFail("a later table", w.Begin(archive.Section{Table: "last"}))
	mustFail("nothing", w.Close())
	if err := w.Begin(archive.Section{Table: "things"}); err != nil {
		t.Fatal(err)
	}
	mustFail("a short row", w.Row([]any{"a"}))
	for i, wrong := range [][]any{
		{int64(1), int64(1), true, []byte{}}, {"a", "1", true, []byte{}}, {"a", int64(1), int64(1), []byte{}}, {"a", int64(1), true, "x"},
		{"a", 1, true, []byte{}}, {"a", int64(1), true, []byte(nil)}, {"a", 1.5, true, []byte{}},
	} {
		mustFail("row "+string(rune('0'+i)), w.Row(wrong))
	}
	mustFail("a table twice", w.Begin(archive.Section{Table: "things"}))
}

// A reader never panics, and accepts only files that round-trip.
func FuzzReader(f *testing.F) {
	small := example()
	small.Rows["things"] = small.Rows["things"][:3]
	text := unpacked(f, write(f, small))
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte(`{"format":"stepmill-export","version":1,"tables":[{"name":"a","columns":[{"name":"b","kind":"text"}]}]}` + "\n" + `{"table":"a"}` + "\n" + `["x"]` + "\n"))
	f.Add([]byte(`{"format":"stepmill-export","version":1,"tables":[]}` + "\n" + `{"rows":{},"sha256":""}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = read(bytes.NewReader(text))
		c, err := read(bytes.NewReader(packed(text)))
		if err != nil {
			return
		}
		// A valid checksum makes it an archive, which must round-trip.
		again, err := read(bytes.NewReader(write(t, c)))
		if diff := cmp.Diff(c, again); err != nil || diff != "" {
			t.Errorf("%v (-read +read again):\n%s", err, diff)
		}
	})
}
