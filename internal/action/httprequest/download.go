package httprequest

import (
	"context"
	"errors"
	"fmt"
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
)

const (
	// maxDownload does not limit the body: the file does.
	maxDownload = 1 << 62
	// maxErrorBody limits the body of a response that is not a file.
	maxErrorBody = 1 << 20
	// maxResumes limits how often an interrupted response is continued.
	maxResumes = 10
	// resumePause is the time before an interrupted response is continued.
	resumePause = 200 * time.Millisecond
)

// download sends a request and stores the body of its response as a file. The body of a
// response whose status is not one of success remains a value.
func download(ctx context.Context, client Client, call egress.Request, req action.Request) (action.Result, error) {
	if req.Files == nil {
		return action.Result{}, &action.Failure{Code: action.InvalidInput, Message: "with/response: files can only be created by steps of a workflow"}
	}
	call.MaxBody = maxDownload
	stream, err := client.Stream(ctx, call)
	if err != nil {
		return action.Result{}, requestFailure(err)
	}
	defer stream.Close()
	if stream.Status < 200 || stream.Status > 299 {
		return readError(stream, call, req)
	}
	to, err := req.Files.Create(ctx, action.NewFile{Name: fileName(stream), Type: stream.Header.Get("Content-Type")})
	if err != nil {
		return action.Result{}, err
	}
	defer to.Abort()
	d := transfer{client: client, call: call, to: to, buffer: make([]byte, 64<<10)}
	if err := d.copyAll(ctx, stream); err != nil {
		return action.Result{}, requestFailure(err)
	}
	file, err := to.Finish()
	if err != nil {
		return action.Result{}, err
	}
	return action.Result{Output: map[string]any{"status": stream.Status, "headers": headers(stream.Header), "body": file}}, nil
}

// readError reads the body of a response that is not stored as a file.
func readError(stream *egress.Stream, call egress.Request, req action.Request) (action.Result, error) {
	body, err := io.ReadAll(io.LimitReader(stream, maxErrorBody+1))
	if err != nil {
		return action.Result{}, requestFailure(err)
	}
	isTooLong := len(body) > maxErrorBody
	body = body[:min(len(body), maxErrorBody)]
	resp := &egress.Response{Status: stream.Status, Header: stream.Header, Body: body, URL: stream.URL}
	if err := checkStatus(resp, call, req); err != nil {
		return action.Result{}, err
	}
	if isTooLong {
		return action.Result{}, &action.Failure{Code: string(egress.ResponseTooLarge), Message: fmt.Sprintf("the response has the status %d, so it is not stored as a file, and is longer than %d bytes", stream.Status, maxErrorBody)}
	}
	return action.Result{Output: output(resp)}, nil
}

// transfer copies a response to a file. If the response is interrupted, it is continued
// where it stopped, provided that the server can tell whether it is still the same.
type transfer struct {
	client Client
	call   egress.Request
	to     io.Writer
	buffer []byte
	copied int64
}

// copyAll copies the body of a response to its end.
func (t *transfer) copyAll(ctx context.Context, stream *egress.Stream) error {
	defer func() { stream.Close() }()
	tag := resumeTag(t.call, stream)
	for resumes := 0; ; resumes++ {
		before := t.copied
		err := t.copy(stream)
		failure, interrupted := errors.AsType[*egress.Error](err)
		switch {
		case err == nil:
			return nil
		case !interrupted || !failure.Retryable || tag == "" || ctx.Err() != nil:
			return err
		case resumes == maxResumes || resumes > 0 && t.copied == before:
			return err
		}
		stream.Close()
		next, resumeErr := t.resume(ctx, tag)
		if resumeErr != nil {
			return err // of the interruption: the whole request may be repeated
		}
		stream = next
	}
}

// copy copies the rest of a response. Errors of the response are *egress.Errors.
func (t *transfer) copy(from io.Reader) error {
	for {
		n, err := from.Read(t.buffer)
		if n > 0 {
			if _, err := t.to.Write(t.buffer[:n]); err != nil {
				return err
			}
			t.copied += int64(n)
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

// resume requests the rest of a response.
func (t *transfer) resume(ctx context.Context, tag string) (*egress.Stream, error) {
	timer := time.NewTimer(resumePause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	call := t.call
	call.Header = call.Header.Clone()
	call.Header.Set("Range", "bytes="+strconv.FormatInt(t.copied, 10)+"-")
	call.Header.Set("If-Range", tag)
	stream, err := t.client.Stream(ctx, call)
	if err != nil {
		return nil, err
	}
	from := "bytes " + strconv.FormatInt(t.copied, 10) + "-"
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
		return fmt.Sprintf("download.%s", subtype)
	}
	return "download"
}
