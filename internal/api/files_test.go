package api_test

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func setupFile(w *testWorkspace) {
	w.t.Helper()
	w.names["file"] = w.call("POST", "/v1/files?name=hello.txt", "hello", "Content-Type", "text/plain").wantStatus(http.StatusCreated).str("id")
}

func setupUpload(w *testWorkspace) {
	w.t.Helper()
	at := w.call("POST", "/v1/files/uploads", "").wantStatus(http.StatusCreated).header.Get("Location")
	w.names["upload"] = at[strings.LastIndexByte(at, '/')+1:]
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	a := w.call("POST", "/v1/files", "hello", "Content-Type", "Text/HTML; charset=utf-8", "Content-Disposition", `attachment; filename*=UTF-8''..%2F%C3%A4%20b.html`).wantStatus(http.StatusCreated)
	sum := sha256.Sum256([]byte("hello"))
	wantContains(t, a.json(), fmt.Sprintf(`{"name": "ä b.html", "type": "text/html; charset=utf-8", "size": 5, "sha256": "%x"}`, sum))
	w.names["file"] = a.str("id")
	if at := a.header.Get("Location"); at != "/v1/files/"+a.str("id") {
		t.Errorf("Location: %s", at)
	}
	w.call("GET", "/v1/files/$file", "", "Accept", "application/json").wantStatus(http.StatusOK)
	wantContains(t, w.call("GET", "/v1/usage", "").json(), `{"current": {"files": 1, "stored_file_bytes": 5}}`)
	if listed := w.call("GET", "/v1/files", "").wantStatus(http.StatusOK); !strings.Contains(string(listed.body), a.str("id")) {
		t.Errorf("the list: %s", listed.body)
	}
	w.call("POST", "/v1/files", "x", "Idempotency-Key", "k").wantStatus(http.StatusBadRequest, "invalid_request")
	w.call("POST", "/v1/files", "x", "Content-Encoding", "gzip").wantStatus(http.StatusUnsupportedMediaType, "unsupported_media_type")
	w.call("DELETE", "/v1/files/$file", "").wantStatus(http.StatusNoContent)
	w.call("GET", "/v1/files/$file", "").wantStatus(http.StatusNotFound, "file_not_found")
}

func TestDownload(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	a := w.call("POST", "/v1/files?name="+"%C3%A4%22.html", "0123456789", "Content-Type", "text/html").wantStatus(http.StatusCreated)
	w.names["file"] = a.str("id")
	sum := sha256.Sum256([]byte("0123456789"))
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	whole := w.call("GET", "/v1/files/$file", "").wantStatus(http.StatusOK)
	for name, want := range map[string]string{
		"Content-Type": "text/html", "Content-Length": "10", "ETag": etag, "Accept-Ranges": "bytes", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'", "Content-Disposition": `attachment; filename="__.html"; filename*=UTF-8''%C3%A4%22.html`,
	} {
		if got := whole.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if _, params, err := mime.ParseMediaType(whole.header.Get("Content-Disposition")); err != nil || params["filename"] == "" {
		t.Errorf("the disposition: %v, %v", params, err)
	}
	for _, test := range []struct {
		headers []string
		status  int
		body    string
	}{
		{nil, 200, "0123456789"},
		{[]string{"Range", "bytes=3-5"}, 206, "345"},
		{[]string{"Range", "bytes=-2"}, 206, "89"},
		{[]string{"Range", "bytes=8-"}, 206, "89"},
		{[]string{"Range", "bytes=3-5", "If-Range", etag}, 206, "345"},
		{[]string{"Range", "bytes=3-5", "If-Range", `"other"`}, 200, "0123456789"},
		{[]string{"Range", "bytes=0-1,7-8"}, 200, "0123456789"}, // only one range at a time
		{[]string{"If-None-Match", etag}, 304, ""},
	} {
		got := w.call("GET", "/v1/files/$file", "", test.headers...).wantStatus(test.status)
		if string(got.body) != test.body {
			t.Errorf("%v: %q, want %q", test.headers, got.body, test.body)
		}
	}
	outside := w.call("GET", "/v1/files/$file", "", "Range", "bytes=20-30").wantStatus(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable")
	if name := outside.header.Get("Content-Disposition"); name != "" || outside.header.Get("Content-Range") != "bytes */10" {
		t.Errorf("outside of the file: %v", outside.header)
	}
	if head := w.call("HEAD", "/v1/files/$file", "").wantStatus(http.StatusOK); head.header.Get("Content-Length") != "10" || len(head.body) > 0 {
		t.Errorf("HEAD: %v", head.header)
	}
}

func TestUploadForm(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	form := func(names ...string) (string, string) {
		var body bytes.Buffer
		out := multipart.NewWriter(&body)
		for _, name := range names {
			part, err := out.CreateFormFile("f", name)
			if name == "" {
				part, err = out.CreateFormField("f")
			}
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(part, "content of ", name)
		}
		_ = out.Close()
		return body.String(), out.FormDataContentType()
	}
	body, media := form("a.txt", "b/c.txt")
	a := w.call("POST", "/v1/files", body, "Content-Type", media).wantStatus(http.StatusCreated)
	wantContains(t, a.json(), `{"data": [{"name": "a.txt", "size": 16}, {"name": "c.txt"}]}`)
	w.call("POST", "/v1/files", body[:len(body)-20], "Content-Type", media).wantStatus(http.StatusBadRequest, "invalid_request")
	body, media = form("a.txt", "")
	w.call("POST", "/v1/files", body, "Content-Type", media).wantStatus(http.StatusBadRequest, "invalid_request")
	body, media = form()
	w.call("POST", "/v1/files", body, "Content-Type", media).wantStatus(http.StatusBadRequest, "invalid_request")
	wantContains(t, w.call("GET", "/v1/usage", "").json(), `{"current": {"files": 2}}`)
}

func TestUploadLimits(t *testing.T) {
	t.Parallel()
	w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
	big := strings.Repeat("x", 25<<20+1)
	w.call("POST", "/v1/files", big).wantStatus(http.StatusRequestEntityTooLarge, "file_too_large")
	w.call("POST", "/v1/files", big[:25<<20]).wantStatus(http.StatusCreated)
	w.call("POST", "/v1/files/uploads", "", "Upload-Length", "26214401").wantStatus(http.StatusRequestEntityTooLarge, "file_too_large")
	for range 39 {
		w.call("POST", "/v1/files/uploads", "", "Upload-Length", "26214400").wantStatus(http.StatusCreated)
	}
	w.call("POST", "/v1/files/uploads", "", "Upload-Length", "26214400").wantStatus(http.StatusForbidden, "file_storage_exceeded")
}

func TestResumableUpload(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	metadata := "filename " + b64("video ä.mp4") + ",filetype " + b64("video/mp4") + ",x"
	a := w.call("POST", "/v1/files/uploads", "012", "Upload-Metadata", metadata).wantStatus(http.StatusCreated)
	if a.header.Get("Upload-Offset") != "3" || a.header.Get("Upload-Expires") == "" || a.header.Get("Tus-Resumable") != "1.0.0" {
		t.Errorf("headers: %v", a.header)
	}
	at := a.header.Get("Location")
	id := at[strings.LastIndexByte(at, '/')+1:]
	wantContains(t, w.call("GET", at, "").wantStatus(http.StatusOK).json(), `{"name": "video ä.mp4", "type": "video/mp4", "size": 10, "received": 3}`)
	head := w.call("HEAD", at, "").wantStatus(http.StatusOK)
	if head.header.Get("Upload-Offset") != "3" || head.header.Get("Upload-Length") != "10" || head.header.Get("Upload-Metadata") != metadata || head.header.Get("Cache-Control") != "no-store" {
		t.Errorf("HEAD: %v", head.header)
	}
	w.call("GET", "/v1/files/"+id, "").wantStatus(http.StatusNotFound, "file_not_found")
	w.call("PATCH", at, "345").wantStatus(http.StatusConflict, "upload_conflict")
	w.call("PATCH", at, "345", "Upload-Offset", "3", "Content-Type", "text/plain").wantStatus(http.StatusUnsupportedMediaType, "unsupported_media_type")
	w.call("PATCH", at, "345", "Upload-Offset", "3", "Tus-Resumable", "0.2.2").wantStatus(http.StatusPreconditionFailed, "tus_version_unsupported")
	w.call("PATCH", at, "34567890123", "Upload-Offset", "3").wantStatus(http.StatusRequestEntityTooLarge, "file_too_large")
	w.call("PATCH", at, "345", "Upload-Offset", "3", "Upload-Checksum", "sha1 "+b64("wrong")).wantStatus(460, "checksum_mismatch")
	w.call("PATCH", at, "345", "Upload-Offset", "3", "Upload-Checksum", "crc32 AAAA").wantStatus(http.StatusBadRequest, "invalid_request")
	right := sha1.Sum([]byte("345"))
	if got := w.call("PATCH", at, "345", "Upload-Offset", "3", "Upload-Checksum", "sha1 "+b64(string(right[:]))).wantStatus(http.StatusNoContent).header.Get("Upload-Offset"); got != "6" {
		t.Errorf("offset %s", got)
	}
	w.call("PATCH", at, "6789", "Upload-Offset", "6").wantStatus(http.StatusNoContent)
	if got := w.call("GET", "/v1/files/"+id, "").wantStatus(http.StatusOK); string(got.body) != "0123456789" {
		t.Errorf("got %q", got.body)
	}
	wantContains(t, w.call("GET", at, "").wantStatus(http.StatusOK).json(), `{"received": 10, "expires_at": null}`)
	wantContains(t, w.call("GET", "/v1/usage", "").json(), `{"current": {"files": 1, "stored_file_bytes": 10}}`)

	other := w.call("POST", "/v1/files/uploads", "").wantStatus(http.StatusCreated).header.Get("Location")
	w.call("DELETE", other, "").wantStatus(http.StatusNoContent)
	w.call("GET", other, "").wantStatus(http.StatusNotFound, "upload_not_found")
	w.call("POST", "/v1/files/uploads", "", "Upload-Length", "-1").wantStatus(http.StatusBadRequest, "invalid_request")
	w.call("POST", "/v1/files/uploads", "", "Upload-Metadata", "filename ?").wantStatus(http.StatusBadRequest, "invalid_request")
	empty := w.call("POST", "/v1/files/uploads", "", "Upload-Length", "0").wantStatus(http.StatusCreated).header.Get("Location")
	wantContains(t, w.call("GET", strings.Replace(empty, "/uploads", "", 1), "", "Accept", "application/json").wantStatus(http.StatusOK).json(), `{"size": 0}`)
	options := w.call("OPTIONS", "/v1/files/uploads", "").wantStatus(http.StatusNoContent)
	if !strings.Contains(options.header.Get("Tus-Extension"), "termination") || options.header.Get("Tus-Version") != "1.0.0" {
		t.Errorf("OPTIONS: %v", options.header)
	}
}

// While a request sends bytes, another one is told to wait.
func TestResumableUploadIsLocked(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	const part = 8 << 20
	at := w.call("POST", "/v1/files/uploads", "", "Upload-Length", strconv.Itoa(part+1)).wantStatus(http.StatusCreated).header.Get("Location")
	body, rest := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, w.server.url+at, io.MultiReader(bytes.NewReader(make([]byte, part)), body))
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = part + 1
	for name, value := range map[string]string{
		"Authorization": "Bearer " + w.key, "Content-Type": "application/offset+octet-stream", "Tus-Resumable": "1.0.0", "Upload-Offset": "0",
	} {
		request.Header.Set(name, value)
	}
	sent := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		sent <- err
	}()
	eventually(t, "the first part is received", func() bool {
		return w.call("HEAD", at, "").wantStatus(http.StatusOK).header.Get("Upload-Offset") == strconv.Itoa(part)
	})
	locked := w.call("PATCH", at, "x", "Upload-Offset", strconv.Itoa(part)).wantStatus(http.StatusLocked, "upload_locked")
	if got := locked.header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q", got)
	}
	if _, err := rest.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	_ = rest.Close()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	wantContains(t, w.call("GET", at, "").wantStatus(http.StatusOK).json(), `{"received": 8388609, "expires_at": null}`)
}

// An upload that is cut off leaves nothing behind, neither rows nor bytes.
func TestUploadIsCutOff(t *testing.T) {
	t.Parallel()
	w := newServer(t).newTestWorkspace(t)
	part := "--B\r\nContent-Disposition: form-data; name=f; filename=a.bin\r\n\r\n"
	whole := part + "complete\r\n" // is discarded with the part after it
	for name, test := range map[string]struct{ media, begin string }{
		"plain":                          {"application/octet-stream", ""},
		"a form":                         {"multipart/form-data; boundary=B", part},
		"a form that has a file already": {"multipart/form-data; boundary=B", whole + part},
	} {
		body, feed := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.url+"/v1/files", body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = 1 << 20
		request.Header.Set("Authorization", "Bearer "+w.key)
		request.Header.Set("Content-Type", test.media)
		ended := make(chan error, 1)
		go func() {
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			ended <- err
		}()
		// More than is sealed at a time, so that some of it is on the disk.
		if _, err := io.WriteString(feed, test.begin+strings.Repeat("x", 200_000)); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+": bytes are stored", func() bool { return len(w.server.storedBytes(t)) > 0 })
		_ = feed.CloseWithError(io.ErrUnexpectedEOF)
		if err := <-ended; err == nil {
			t.Errorf("%s: the request has succeeded", name)
		}
		eventually(t, name+": nothing is left", func() bool { return len(w.server.storedBytes(t)) == 0 })
		if got := w.server.storedFiles(t); got != "[[0 0]]" {
			t.Errorf("%s: recorded: %s", name, got)
		}
	}
}

// storedBytes returns the paths of the bytes of files, complete or not.
func (s *server) storedBytes(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(s.dir, "files"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted meanwhile
			return nil
		case err == nil && !entry.IsDir() && entry.Name() != "stepmillinstallationmarker":
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
