package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/jsonpath"
)

const (
	// maxBlobs is the most files that a response may contain.
	maxBlobs = 1000
	// maxNesting is how deep the JSON around them may be nested.
	maxNesting = 100
)

// DownloadBlobs sends a request whose response is JSON with files in it, as text in base64.
// The strings at the paths are stored as files with the given name. In the body of the
// response, which may have up to MaxBody bytes besides, the number of the file stands for
// each, as text.
// A response whose status is not one of success (2xx) is not changed.
func DownloadBlobs(ctx context.Context, client Client, call egress.Request, files action.Files, paths []jsonpath.Path, name string) ([]*expr.File, *egress.Response, error) {
	limit := call.MaxBody
	call.MaxBody = maxDownload
	stream, resp, err := openDownload(ctx, client, call)
	if stream == nil {
		return nil, resp, err
	}
	defer stream.Close()
	x := blobReader{from: bufio.NewReader(stream), paths: paths, limit: limit, store: func(from io.Reader) (*expr.File, error) {
		return storeBlob(ctx, files, name, from)
	}}
	if err := x.read(); err != nil {
		return nil, nil, RequestFailure(err)
	}
	resp.Body = x.rest.Bytes()
	return x.files, resp, nil
}

// storeBlob stores decoded bytes as a file. Its type is that of its name or, if that has
// none, what the bytes look like.
func storeBlob(ctx context.Context, files action.Files, name string, from io.Reader) (*expr.File, error) {
	content := bufio.NewReader(from)
	begin, _ := content.Peek(512) // reading on returns the error
	to, err := files.Create(ctx, action.NewFile{
		Name: cmp.Or(name, "download"), Type: cmp.Or(mime.TypeByExtension(path.Ext(name)), http.DetectContentType(begin)),
	})
	if err != nil {
		return nil, err
	}
	defer to.Abort()
	if _, err := content.WriteTo(to); err != nil {
		return nil, err
	}
	return to.Finish()
}

// blobReader copies JSON, and takes the strings at some paths out of it. It finds their
// beginnings and ends only: whoever decodes the copy checks that it is valid.
type blobReader struct {
	from  *bufio.Reader
	paths []jsonpath.Path
	limit int64
	store func(io.Reader) (*expr.File, error)

	rest    bytes.Buffer
	files   []*expr.File
	steps   []string // where the reader is
	isKey   []bool   // for each step, whether the next string is the name of a member
	objects []bool   // for each step, whether it is one of an object
}

func (x *blobReader) read() error {
	for {
		c, err := x.from.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		last := len(x.steps) - 1
		switch {
		case c == '"':
			err = x.text()
		case (c == '{' || c == '[') && last >= maxNesting:
			err = invalid("it is nested too deeply")
		case c == '{':
			x.steps, x.isKey, x.objects = append(x.steps, ""), append(x.isKey, true), append(x.objects, true)
		case c == '[':
			x.steps, x.isKey, x.objects = append(x.steps, jsonpath.EachItem), append(x.isKey, false), append(x.objects, false)
		case (c == '}' || c == ']') && last >= 0:
			x.steps, x.isKey, x.objects = x.steps[:last], x.isKey[:last], x.objects[:last]
		case c == ',' && last >= 0:
			x.isKey[last] = x.objects[last]
		case c == ':' && last >= 0:
			x.isKey[last] = false
		}
		if err == nil && c != '"' {
			err = x.copy(c)
		}
		if err != nil {
			return err
		}
	}
}

func (x *blobReader) copy(p ...byte) error {
	if int64(x.rest.Len()+len(p)) > x.limit {
		return &egress.Error{Code: egress.ResponseTooLarge, Message: fmt.Sprintf("the response is longer than %d bytes, without the files in it", x.limit)}
	}
	x.rest.Write(p)
	return nil
}

// text copies a string whose first quotation mark has been read, or stores it.
func (x *blobReader) text() error {
	last := len(x.steps) - 1
	if (last < 0 || !x.isKey[last]) && x.isSelected() {
		return x.take()
	}
	begin := x.rest.Len()
	if err := x.copy('"'); err != nil {
		return err
	}
	for escaped := false; ; {
		c, err := x.from.ReadByte()
		if err != nil {
			return unexpectedEnd(err)
		}
		if err := x.copy(c); err != nil {
			return err
		}
		if c == '"' && !escaped {
			break
		}
		escaped = c == '\\' && !escaped
	}
	if last >= 0 && x.isKey[last] {
		_ = json.Unmarshal(x.rest.Bytes()[begin:], &x.steps[last]) // an invalid name matches no path
	}
	return nil
}

func (x *blobReader) isSelected() bool {
	return slices.ContainsFunc(x.paths, func(p jsonpath.Path) bool { return slices.Equal(p, x.steps) })
}

// take stores a string whose first quotation mark has been read.
func (x *blobReader) take() error {
	if len(x.files) == maxBlobs {
		return invalid(fmt.Sprintf("it has more than %d files", maxBlobs))
	}
	text := &textReader{from: x.from}
	f, err := x.store(base64.NewDecoder(base64.RawStdEncoding, text))
	if err == nil && !text.ended {
		_, err = io.Copy(io.Discard, text) // the end of the string
	}
	if _, corrupt := errors.AsType[base64.CorruptInputError](err); corrupt {
		return invalid("a file in it is not base64")
	}
	if err != nil {
		return unexpectedEnd(err)
	}
	x.files = append(x.files, f)
	return x.copy([]byte(strconv.Quote(strconv.Itoa(len(x.files) - 1)))...)
}

// textReader reads the base64 in a JSON string up to its last quotation mark, in the standard
// alphabet and without padding.
type textReader struct {
	from  *bufio.Reader
	ended bool
}

// Read implements io.Reader.
func (r *textReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && !r.ended {
		c, err := r.from.ReadByte()
		if c == '\\' && err == nil {
			c, err = r.escaped()
		} else if c == '"' && err == nil {
			r.ended = true
			break
		}
		if err != nil {
			return n, unexpectedEnd(err)
		}
		switch c {
		case '=', '\r', '\n':
			continue
		case '-':
			c = '+'
		case '_':
			c = '/'
		}
		p[n] = c
		n++
	}
	if n == 0 && r.ended {
		return 0, io.EOF
	}
	return n, nil
}

// escaped reads what follows a backslash.
func (r *textReader) escaped() (byte, error) {
	c, err := r.from.ReadByte()
	switch {
	case err != nil:
		return 0, err
	case c == 'n' || c == 'r':
		return '\n', nil
	case c != 'u':
		return c, nil
	}
	var digits [4]byte
	if _, err := io.ReadFull(r.from, digits[:]); err != nil {
		return 0, err
	}
	code, err := strconv.ParseUint(string(digits[:]), 16, 8)
	if err != nil {
		return 0, base64.CorruptInputError(0)
	}
	return byte(code), nil
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return invalid("it ends in the middle")
	}
	return err
}

func invalid(why string) error {
	return &egress.Error{Code: egress.InvalidResponse, Message: "the response is not the JSON that was expected: " + why}
}
