package transfer_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

// upload returns what a request sends that the body is attached to, and its length.
func upload(t *testing.T, files action.Files, body transfer.Body, wrap func(io.Reader) io.Reader) (string, int64) {
	t.Helper()
	var call egress.Request
	body.Attach(t.Context(), files, &call)
	if call.Upload == nil {
		return "", call.UploadLength
	}
	from, err := call.Upload()
	if err != nil {
		t.Fatal(err)
	}
	sent, err := io.ReadAll(wrap(from))
	if err := errors.Join(err, from.Close()); err != nil {
		t.Fatal(err)
	}
	return string(sent), call.UploadLength
}

func unchanged(r io.Reader) io.Reader { return r }

func TestRangesOfFiles(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	f := files.Add("digits", "text/plain", "0123456789")
	for name, test := range map[string]struct {
		body transfer.Body
		want string
	}{
		"the whole file":        {transfer.Body{{File: f}}, "0123456789"},
		"from an offset":        {transfer.Body{{File: f, Offset: 7}}, "789"},
		"the beginning":         {transfer.Body{{File: f, Length: 4}}, "0123"},
		"the middle":            {transfer.Body{{File: f, Offset: 3, Length: 4}}, "3456"},
		"up to the last byte":   {transfer.Body{{File: f, Offset: 6, Length: 4}}, "6789"},
		"beyond the last byte":  {transfer.Body{{File: f, Offset: 8, Length: 4}}, "89"},
		"from the end":          {transfer.Body{{File: f, Offset: 10}}, ""},
		"among other segments":  {transfer.Body{{Data: []byte("<")}, {File: f, Offset: 1, Length: 2}, {Data: []byte("|")}, {File: f, Length: 1}, {Data: []byte(">")}}, "<12|0>"},
		"a range as base64":     {transfer.Body{{File: f, Offset: 1, Length: 4, Encoding: transfer.Base64}}, "MTIzNA=="},
		"inside of a JSON text": {transfer.Body{{Data: []byte(`{"a":"`)}, {File: f, Encoding: transfer.Base64}, {Data: []byte(`"}`)}}, `{"a":"MDEyMzQ1Njc4OQ=="}`},
		"bytes as base64":       {transfer.Body{{Data: []byte("0123"), Encoding: transfer.Base64}}, "MDEyMw=="},
		"nothing":               {nil, ""},
	} {
		for range 2 { // a body is sent again after a redirect
			if got, length := upload(t, files, test.body, unchanged); got != test.want || length != int64(len(test.want)) {
				t.Errorf("%s: %q with the length %d, want %q", name, got, length, test.want)
			}
		}
	}
	if files.Unclosed != 0 {
		t.Errorf("%d files are still open", files.Unclosed)
	}
}

// irregular returns fewer bytes than it is asked for: 1, 2, up to 7, and then 1 again.
type irregular struct {
	io.ReadCloser
	last int
}

func (r *irregular) Read(p []byte) (int, error) {
	r.last = r.last%7 + 1
	return r.ReadCloser.Read(p[:min(len(p), r.last)])
}

// wrapped wraps the readers of files.
type wrapped struct {
	action.Files
	wrap func(io.ReadCloser) io.ReadCloser
}

func (w wrapped) Open(ctx context.Context, f *expr.File, offset int64) (io.ReadCloser, error) {
	r, err := w.Files.Open(ctx, f, offset)
	if err != nil {
		return nil, err
	}
	return w.wrap(r), nil
}

func TestBase64(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	readers := map[string]func(io.ReadCloser) io.ReadCloser{
		"as usual":     func(r io.ReadCloser) io.ReadCloser { return r },
		"irregularly":  func(r io.ReadCloser) io.ReadCloser { return &irregular{ReadCloser: r} },
		"with the end": func(r io.ReadCloser) io.ReadCloser { return readCloser{iotest.DataErrReader(r), r} },
	}
	for _, size := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100<<10 - 1, 100 << 10, 100<<10 + 1} {
		content := strings.Repeat("\x00\xffabcdefg", size/9+1)[:size]
		body := transfer.Body{{File: files.Add("a", "b", content), Encoding: transfer.Base64}}
		want := base64.StdEncoding.EncodeToString([]byte(content))
		if body.Length() != int64(len(want)) {
			t.Errorf("%d bytes: the length is %d, want %d", size, body.Length(), len(want))
		}
		for name, reader := range readers {
			for sink, wrap := range map[string]func(io.Reader) io.Reader{"large": unchanged, "one byte": iotest.OneByteReader, "half": iotest.HalfReader} {
				if got, _ := upload(t, wrapped{files, reader}, body, wrap); got != want {
					t.Errorf("%d bytes read %s into %s buffers: %d bytes, not those of encoding/base64", size, name, sink, len(got))
				}
			}
		}
	}
	if files.Unclosed != 0 {
		t.Errorf("%d files are still open", files.Unclosed)
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// A file that cannot be read to its end is an error, not a shorter file.
func TestBase64OfABrokenFile(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	f := files.Add("a", "b", "0123456789")
	for _, broken := range []error{io.ErrUnexpectedEOF, errors.New("the disk is gone")} {
		var call egress.Request
		transfer.Body{{File: f, Encoding: transfer.Base64}}.Attach(t.Context(), wrapped{files, func(r io.ReadCloser) io.ReadCloser {
			return readCloser{io.MultiReader(io.LimitReader(r, 5), iotest.ErrReader(broken)), r}
		}}, &call)
		from, err := call.Upload()
		if err != nil {
			t.Fatal(err)
		}
		if sent, err := io.ReadAll(from); !errors.Is(err, broken) || string(sent) != "MDEy" {
			t.Errorf("%q, %v", sent, err)
		}
		from.Close()
	}
}
