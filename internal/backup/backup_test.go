package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/backup"
	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/test/lane"
)

var made = time.Date(2026, 11, 17, 8, 0, 0, 5, time.UTC)

// content is what a backup contains: the database first, under an empty id.
type content struct {
	ids   []blob.ID
	bytes [][]byte
}

func write(t require, c content) []byte {
	t.Helper()
	var file bytes.Buffer
	w := backup.NewWriter(&file, made)
	for i, id := range c.ids {
		var err error
		if id == "" {
			err = w.Database(int64(len(c.bytes[i])), func(to io.Writer) error { _, err := to.Write(c.bytes[i]); return err })
		} else {
			err = w.Blob(id, int64(len(c.bytes[i])), bytes.NewReader(c.bytes[i]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

type require interface {
	Helper()
	Fatal(args ...any)
}

func read(from io.Reader) (c content, err error) {
	r := backup.NewReader(from)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return c, err
		}
		if int64(len(data)) != e.Size {
			return c, errors.New("an entry has another size than announced")
		}
		c.ids, c.bytes = append(c.ids, e.Blob), append(c.bytes, data)
	}
}

func example() content {
	return content{[]blob.ID{"", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbb"}, [][]byte{bytes.Repeat([]byte("page"), 1000), []byte("a blob"), {}}}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	lane.Check(t, func(t *rapid.T) {
		ids := []blob.ID{""}
		for range rapid.IntRange(0, 20).Draw(t, "blobs") {
			ids = append(ids, blob.NewID())
		}
		slices.Sort(ids)
		c := content{ids: ids}
		for range ids {
			c.bytes = append(c.bytes, rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "bytes"))
		}
		file := write(t, c)
		if !backup.Detect(file) {
			t.Fatal("it is not recognized")
		}
		got, err := read(bytes.NewReader(file))
		if err != nil || !cmp.Equal(got.ids, c.ids) || !slices.EqualFunc(got.bytes, c.bytes, bytes.Equal) {
			t.Fatalf("read %v, %v", got.ids, err)
		}
	})
}

func TestNextSkipsWhatWasNotRead(t *testing.T) {
	t.Parallel()
	if err := backup.Verify(bytes.NewReader(write(t, example()))); err != nil {
		t.Fatal(err)
	}
}

func TestRejectsTruncatedFiles(t *testing.T) {
	t.Parallel()
	file := write(t, example())
	end := bytes.LastIndex(file, []byte("stepmill.sha256")) + 512 + 64 // the last byte of the checksum
	for n := range end {
		if err := backup.Verify(bytes.NewReader(file[:n])); !errors.Is(err, backup.ErrDamaged) {
			t.Fatalf("the first %d bytes: %v", n, err)
		}
	}
}

func TestRejectsModifiedFiles(t *testing.T) {
	t.Parallel()
	file := write(t, example())
	for i := range file {
		changed := bytes.Clone(file)
		changed[i] ^= 1
		got, err := read(bytes.NewReader(changed))
		// What is not content, such as modes, may change; the content may not.
		if err == nil && (!cmp.Equal(got.ids, example().ids) || !slices.EqualFunc(got.bytes, example().bytes, bytes.Equal)) {
			t.Fatalf("byte %d: the content changed unnoticed", i)
		}
	}
}

func TestReadErrorsAreNotReportedAsDamage(t *testing.T) {
	t.Parallel()
	failed := errors.New("the disk failed")
	file := write(t, example())
	for _, n := range []int{0, 600, 5000} {
		err := backup.Verify(io.MultiReader(bytes.NewReader(file[:n]), failing{failed}))
		if !errors.Is(err, failed) || errors.Is(err, backup.ErrDamaged) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// hostile makes a tar file with the database and other entries.
func hostile(t *testing.T, entries ...*tar.Header) []byte {
	t.Helper()
	var file bytes.Buffer
	w := tar.NewWriter(&file)
	for _, h := range slices.Concat([]*tar.Header{{Typeflag: tar.TypeReg, Name: "stepmill.db", Size: 3}}, entries) {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", 100)), h.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestRejectsHostileEntries(t *testing.T) {
	t.Parallel()
	const good = "files/aa/aaaaaaaaaaaaaaaaaaaaaaaaaa"
	file := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: 3} }
	for name, entries := range map[string][]*tar.Header{
		"a path outside":         {file("../../etc/passwd")},
		"an absolute path":       {file("/" + good)},
		"a path with dots":       {file("files/../" + good)},
		"another folder":         {file("files/bb/aaaaaaaaaaaaaaaaaaaaaaaaaa")},
		"another name":           {file("files/aa/master.key")},
		"the master key":         {file("master.key")},
		"a second database":      {file("stepmill.db")},
		"an entry twice":         {file(good), file(good)},
		"the wrong order":        {file("files/bb/bbbbbbbbbbbbbbbbbbbbbbbbbb"), file(good)},
		"a symbolic link":        {{Typeflag: tar.TypeSymlink, Name: good, Linkname: "/etc/passwd"}},
		"a hard link":            {{Typeflag: tar.TypeLink, Name: good, Linkname: "stepmill.db"}},
		"a directory":            {{Typeflag: tar.TypeDir, Name: "files/"}},
		"a device":               {{Typeflag: tar.TypeBlock, Name: good}},
		"a wrong checksum":       {{Typeflag: tar.TypeReg, Name: "stepmill.sha256", Size: 65}},
		"a long checksum":        {{Typeflag: tar.TypeReg, Name: "stepmill.sha256", Size: 90}},
		"no checksum":            {file(good)},
		"another format":         {{Typeflag: tar.TypeReg, Name: good, Size: 3, Format: tar.FormatGNU}},
		"an entry of a new kind": {file("stepmill.json")},
	} {
		if err := backup.Verify(bytes.NewReader(hostile(t, entries...))); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := backup.Verify(bytes.NewReader(hostile(t)[1024:])); err == nil {
		t.Error("a file without a database is accepted")
	}
}

func TestRejectsDataAfterTheEnd(t *testing.T) {
	t.Parallel()
	file := write(t, example())
	whole := bytes.LastIndex(file, []byte("stepmill.sha256")) + 1024
	more := slices.Concat(file[:whole], hostile(t))
	if err := backup.Verify(bytes.NewReader(more)); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestWriterRejectsMisuse(t *testing.T) {
	t.Parallel()
	const first, second = blob.ID("aaaaaaaaaaaaaaaaaaaaaaaaaa"), blob.ID("bbbbbbbbbbbbbbbbbbbbbbbbbb")
	for name, misuse := range map[string]func(w *backup.Writer) error{
		"a blob that is too short": func(w *backup.Writer) error { return w.Blob(first, 5, strings.NewReader("1234")) },
		"a blob that is too long":  func(w *backup.Writer) error { return w.Blob(first, 5, strings.NewReader("123456")) },
		"an invalid id":            func(w *backup.Writer) error { return w.Blob("../x", 1, strings.NewReader("1")) },
		"an id twice": func(w *backup.Writer) error {
			return errors.Join(w.Blob(second, 1, strings.NewReader("1")), w.Blob(first, 1, strings.NewReader("1")))
		},
		"a short database": func(w *backup.Writer) error { return w.Database(5, func(io.Writer) error { return nil }) },
	} {
		if err := misuse(backup.NewWriter(io.Discard, made)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Whatever a file contains, the reader ends, and what it accepts is what the writer
// writes.
func FuzzReader(f *testing.F) {
	file := write(f, example())
	f.Add(file)
	f.Add(file[:700])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := read(bytes.NewReader(data))
		if err != nil {
			return
		}
		again, err := read(bytes.NewReader(write(t, c)))
		if err != nil || !cmp.Equal(again.ids, c.ids) || !slices.EqualFunc(again.bytes, c.bytes, bytes.Equal) {
			t.Fatalf("accepted a file that the writer does not write: %v", err)
		}
	})
}
