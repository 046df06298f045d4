package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
)

const (
	// maxDownload does not limit the body: the file does.
	maxDownload = 1 << 62
	// maxOtherBody limits the body of a response that is not a file.
	maxOtherBody = 1 << 20
	// maxResumes limits how often an interrupted response is continued.
	maxResumes = 10
	// resumePause is the time before an interrupted response is continued.
	resumePause = 200 * time.Millisecond
)

// Download sends a request and stores the body of its response as a file, if the status is
// one of success (2xx). The file gets the given name, or if that is empty, the one that the
// server gives it. Any other response is not stored: the file is nil, and the body of the
// response has up to 1 MiB, and is marked as truncated if there is more.
func Download(ctx context.Context, client Client, call egress.Request, files action.Files, name string) (*expr.File, *egress.Response, error) {
	call.MaxBody = maxDownload
	stream, resp, err := openDownload(ctx, client, call)
	if stream == nil {
		return nil, resp, err
	}
	defer stream.Close()
	to, err := files.Create(ctx, action.NewFile{Name: cmp.Or(name, fileName(stream)), Type: stream.Header.Get("Content-Type")})
	if err != nil {
		return nil, nil, err
	}
	defer to.Abort()
	c := copier{client: client, call: call, to: to, buffer: make([]byte, 64<<10)}
	if err := c.copyAll(ctx, stream); err != nil {
		return nil, nil, RequestFailure(err)
	}
	file, err := to.Finish()
	return file, resp, err
}

// openDownload sends a request, and returns the stream of its response with a response that
// has no body yet. Unless the status is one of success, the stream is nil, and the response
// has its body.
func openDownload(ctx context.Context, client Client, call egress.Request) (*egress.Stream, *egress.Response, error) {
	stream, err := client.Stream(ctx, call)
	if err != nil {
		return nil, nil, RequestFailure(err)
	}
	resp := &egress.Response{Status: stream.Status, Header: stream.Header, URL: stream.URL}
	if stream.Status >= 200 && stream.Status <= 299 {
		return stream, resp, nil
	}
	defer stream.Close()
	return nil, resp, readOther(stream, resp)
}

// readOther reads the body of a response that is not stored as a file.
func readOther(stream *egress.Stream, resp *egress.Response) error {
	body, err := io.ReadAll(io.LimitReader(stream, maxOtherBody+1))
	if err != nil {
		return RequestFailure(err)
	}
	resp.Body, resp.Truncated = body[:min(len(body), maxOtherBody)], len(body) > maxOtherBody
	return nil
}

// copier copies a response to a file. If the response is interrupted, it is continued
// where it stopped, provided that the server can tell whether it is still the same.
type copier struct {
	client Client
	call   egress.Request
	to     io.Writer
	buffer []byte
	copied int64
}

// copyAll copies the body of a response to its end.
func (c *copier) copyAll(ctx context.Context, stream *egress.Stream) error {
	defer func() { stream.Close() }()
	tag := resumeTag(c.call, stream)
	for resumes := 0; ; resumes++ {
		before := c.copied
		err := c.copy(stream)
		failure, interrupted := errors.AsType[*egress.Error](err)
		switch {
		case err == nil:
			return nil
		case !interrupted || !failure.Retryable || tag == "" || ctx.Err() != nil:
			return err
		case resumes == maxResumes || resumes > 0 && c.copied == before:
			return err
		}
		stream.Close()
		next, resumeErr := c.resume(ctx, tag)
		if resumeErr != nil {
			return err // of the interruption: the whole request may be repeated
		}
		stream = next
	}
}

// copy copies the rest of a response. Errors of the response are *egress.Errors.
func (c *copier) copy(from io.Reader) error {
	for {
		n, err := from.Read(c.buffer)
		if n > 0 {
			if _, err := c.to.Write(c.buffer[:n]); err != nil {
				return err
			}
			c.copied += int64(n)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// resumeTag returns the entity tag with which a response can be continued, or "". A weak
// tag does not stand for the same bytes, and the bytes of a compressed response are not
// those that are stored.
func resumeTag(call egress.Request, stream *egress.Stream) string {
	tag := stream.Header.Get("ETag")
	isGet := call.Method == "" || call.Method == http.MethodGet
	if !isGet || stream.Status != http.StatusOK || stream.Decoded || strings.HasPrefix(tag, "W/") || stream.Header.Get("Accept-Ranges") == "none" {
		return ""
	}
	return tag
}

func (c *copier) resume(ctx context.Context, tag string) (*egress.Stream, error) {
	timer := time.NewTimer(resumePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	call := c.call
	if call.Header = call.Header.Clone(); call.Header == nil {
		call.Header = http.Header{}
	}
	call.Header.Set("Range", "bytes="+strconv.FormatInt(c.copied, 10)+"-")
	call.Header.Set("If-Range", tag)
	stream, err := c.client.Stream(ctx, call)
	if err != nil {
		return nil, err
	}
	from := "bytes " + strconv.FormatInt(c.copied, 10) + "-"
	if stream.Status != http.StatusPartialContent || !strings.HasPrefix(stream.Header.Get("Content-Range"), from) || stream.Header.Get("ETag") != tag {
		stream.Close()
		return nil, errors.New("the response cannot be continued")
	}
	return stream, nil
}

// fileName returns the name of a downloaded file: as the server names it, otherwise the
// last segment of its URL, otherwise a name made of its type.
func fileName(stream *egress.Stream) string {
	if _, params, err := mime.ParseMediaType(stream.Header.Get("Content-Disposition")); err == nil && params["filename"] != "" {
		return params["filename"]
	}
	if u, err := url.Parse(stream.URL); err == nil {
		if name := path.Base(u.Path); name != "/" && name != "." {
			return name
		}
	}
	media, _, _ := mime.ParseMediaType(stream.Header.Get("Content-Type"))
	if _, subtype, ok := strings.Cut(media, "/"); ok {
		subtype, _, _ = strings.Cut(subtype, "+")
		return "download." + subtype
	}
	return "download"
}
