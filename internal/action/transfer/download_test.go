package transfer_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
)

func serve(t *testing.T, handler http.HandlerFunc) (transfer.Client, egress.Request) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := egress.New(egress.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}, Limits: egress.Limits{Stall: time.Minute}})
	t.Cleanup(client.Close)
	return client, egress.Request{Workspace: "ws_a", URL: server.URL + "/report.csv"}
}

func TestDownloadNamesTheFile(t *testing.T) {
	t.Parallel()
	client, call := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/csv")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("a,b"))
	})
	files := actiontest.NewFiles()
	for given, want := range map[string]string{"": "report.csv", "mine.csv": "mine.csv"} {
		f, resp, err := transfer.Download(t.Context(), client, call, files, given)
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != want || f.Type != "text/csv" || string(files.Content[f.ID]) != "a,b" || resp.Status != http.StatusCreated || resp.Header.Get("Content-Type") != "text/csv" {
			t.Errorf("%q: got %+v and %+v", given, f, resp)
		}
	}
}

func TestDownloadOfAnotherStatus(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for _, size := range []int{0, limit, limit + 1} {
		client, call := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(strings.Repeat("x", size)))
		})
		files := actiontest.NewFiles()
		f, resp, err := transfer.Download(t.Context(), client, call, files, "")
		if err != nil {
			t.Fatal(err)
		}
		if f != nil || len(files.Content) > 0 || resp.Status != http.StatusNotFound || resp.URL != call.URL || len(resp.Body) != min(size, limit) || resp.Truncated != (size > limit) {
			t.Errorf("%d bytes: got %v and %d with %d bytes, truncated %t", size, f, resp.Status, len(resp.Body), resp.Truncated)
		}
	}
}

// A request without headers can be continued.
func TestInterruptedDownloadWithoutHeaders(t *testing.T) {
	t.Parallel()
	client, call := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("Range") == "bytes=3-" {
			w.Header().Set("Content-Range", "bytes 3-5/6")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("def"))
			return
		}
		w.Header().Set("Content-Length", "6")
		_, _ = w.Write([]byte("abc"))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	files := actiontest.NewFiles()
	f, _, err := transfer.Download(t.Context(), client, call, files, "")
	if err != nil || string(files.Content[f.ID]) != "abcdef" {
		t.Errorf("got %v, %v", f, err)
	}
}

func TestDownloadFailures(t *testing.T) {
	t.Parallel()
	client, call := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("too long")) })
	files := actiontest.NewFiles()
	files.Limit = 3
	_, _, err := transfer.Download(t.Context(), client, call, files, "")
	if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != "file_too_large" || files.Aborted != 1 {
		t.Errorf("a file that is too large: %v, aborted %d times", err, files.Aborted)
	}
	call.URL = "http://10.0.0.1/"
	_, _, err = transfer.Download(t.Context(), client, call, files, "")
	if failure, ok := errors.AsType[*action.Failure](err); !ok || failure.Code != string(egress.Denied) {
		t.Errorf("an address that is not allowed: %v", err)
	}
}
