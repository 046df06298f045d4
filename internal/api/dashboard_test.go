package api_test

import (
	"compress/gzip"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stepmill/stepmill/internal/api"
	"github.com/stepmill/stepmill/internal/transport"
)

// serveDashboard serves a small dashboard and an API without services.
func serveDashboard(t *testing.T, files fstest.MapFS) func(method, path string, headers ...string) *http.Response {
	t.Helper()
	options := api.Options{Options: transport.Options{PreauthPerMinute: 1000, Log: slog.New(slog.DiscardHandler)}}
	if files != nil {
		options.Dashboard = files
	}
	handler := api.New(api.Services{}, options).Handler()
	return func(method, path string, headers ...string) *http.Response {
		r := httptest.NewRequest(method, path, http.NoBody)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
}

func dashboardFiles() fstest.MapFS {
	return fstest.MapFS{
		"index.html":           {Data: []byte("<!doctype html><title>Stepmill</title>")},
		"theme.js":             {Data: []byte("// the theme")},
		"assets/main-abc12.js": {Data: []byte(strings.Repeat("the dashboard ", 100))},
		"assets/inter.woff2":   {Data: []byte("a font")},
	}
}

// browser is the Accept header of a browser that opens a page.
var browser = []string{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}

// curl is the Accept header of curl and many other programs.
var curl = []string{"Accept", "*/*"}

func TestDashboardPaths(t *testing.T) {
	t.Parallel()
	ask := serveDashboard(t, dashboardFiles())
	for _, tc := range []struct {
		method, path string
		headers      []string
		status       int
		mediaType    string
	}{
		{"GET", "/", browser, 200, "text/html; charset=utf-8"},
		{"HEAD", "/", browser, 200, "text/html; charset=utf-8"},
		{"GET", "/runs/run_01m7f9hb3mevr88y42wdngtn4v?tab=logs", browser, 200, "text/html; charset=utf-8"},
		{"GET", "/v2", browser, 200, "text/html; charset=utf-8"},
		{"GET", "/theme.js", nil, 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/main-abc12.js", nil, 200, "text/javascript; charset=utf-8"},
		{"GET", "/assets/inter.woff2", nil, 200, "font/woff2"},

		{"GET", "/assets/gone-abc12.js", browser, 404, "application/json"},
		{"GET", "/assets/", browser, 404, "application/json"},
		{"POST", "/runs", browser, 404, "application/json"},
		{"GET", "/v1/nothing", browser, 401, "application/json"},
		{"GET", "/ui/nothing", browser, 404, "application/json"},
		{"GET", "/hooks", browser, 404, "application/json"},
		{"GET", "/approve", browser, 404, "application/json"},
		{"POST", "/healthz", browser, 405, "application/json"},
		{"GET", "/v1/nothing", curl, 401, "application/json"},
		{"GET", "/v1", curl, 401, "application/json"},
		{"GET", "/ui/v1/nothing", curl, 401, "application/json"},
		{"GET", "/ui/nothing", curl, 404, "application/json"},
		{"GET", "/hooks/", curl, 404, "application/json"},
		{"GET", "/healthz/nothing", curl, 404, "application/json"},
		{"GET", "/metrics", curl, 404, "application/json"},
		{"GET", "/.well-known/openid-configuration", curl, 404, "application/json"},
		{"GET", "/favicon.ico", curl, 404, "application/json"},
		{"GET", "/favicon.ico", []string{"Accept", "image/avif,image/*,*/*;q=0.8"}, 404, "application/json"},
		{"GET", "/.env", curl, 404, "application/json"},
		{"GET", "/v2/workflows", curl, 404, "application/json"},
		{"GET", "/V1/workflows", curl, 404, "application/json"},
		{"GET", "//v1/workflows", curl, 404, "application/json"},
		{"GET", "/nothing", []string{"Accept", "*/*", "Authorization", "Bearer smk_x"}, 404, "application/json"},
		{"GET", "/nothing", append([]string{"Authorization", "Basic eDp5"}, curl...), 200, "text/html; charset=utf-8"},
		{"GET", "/nothing", append([]string{"Authorization", "Bearer smk_x"}, browser...), 200, "text/html; charset=utf-8"},
		{"POST", "/", curl, 404, "application/json"},
	} {
		res := ask(tc.method, tc.path, tc.headers...)
		if got := res.Header.Get("Content-Type"); res.StatusCode != tc.status || got != tc.mediaType {
			t.Errorf("%s %s: %d %s, want %d %s", tc.method, tc.path, res.StatusCode, got, tc.status, tc.mediaType)
		}
	}
}

// The page is served to every client that accepts HTML, explicitly or not.
func TestDashboardContentNegotiation(t *testing.T) {
	t.Parallel()
	ask := serveDashboard(t, dashboardFiles())
	for accept, page := range map[string]bool{
		"": true, "*/*": true, "text/*": true, "text/html": true, "TEXT/HTML": true, "text/html;level=1": true,
		"text/plain, text/*;q=0.1": true, "application/json, */*;q=0.1": true, "image/png, text/html; q=0.001": true,
		"text/html;q=0, */*": false, "text/*;q=0, */*": false, "*/*;q=0": false, "text/html;q=0.0": false,
		"application/json": false, "text/plain": false, "image/*": false, "text/htmlx": false, "nonsense": false,
		"text/event-stream": false, "text/html;q=0, text/*": false, "text/*;q=0, text/html": true,
	} {
		for _, path := range []string{"/", "/runs"} {
			var headers []string
			if accept != "" {
				headers = []string{"Accept", accept}
			}
			res := ask("GET", path, headers...)
			if got := res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") == "text/html; charset=utf-8"; got != page {
				t.Errorf("%s with Accept %q: %d %s, want the page: %t", path, accept, res.StatusCode, res.Header.Get("Content-Type"), page)
			}
			if res.Header.Get("Vary") == "" && page {
				t.Errorf("%s with Accept %q: the response depends on Accept but has no Vary header", path, accept)
			}
		}
	}
}

func TestDashboardHeaders(t *testing.T) {
	t.Parallel()
	ask := serveDashboard(t, dashboardFiles())
	page, file := ask("GET", "/workflows", browser...), ask("GET", "/assets/main-abc12.js")
	for name, res := range map[string]*http.Response{"page": page, "file": file} {
		policy := res.Header.Get("Content-Security-Policy")
		for _, part := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
			"require-trusted-types-for 'script'", "img-src 'self' blob: data:;", "media-src blob:;", "trusted-types pdf-worker",
		} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %s", name, policy, part)
			}
		}
		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := res.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "frame-src") || strings.Contains(policy, "object-src") {
			t.Errorf("%s: the policy %q allows something unsafe", name, policy)
		}
	}
	if got := page.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("the page is cached as %q", got)
	}
	if got := file.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("a file with a hash is cached as %q", got)
	}
	if again := ask("GET", "/", append(browser, "If-None-Match", page.Header.Get("ETag"))...); again.StatusCode != http.StatusNotModified {
		t.Errorf("the same page again: %d, want 304", again.StatusCode)
	}
	if other := ask("GET", "/", append(browser, "If-None-Match", file.Header.Get("ETag"))...); other.StatusCode != http.StatusOK {
		t.Errorf("the page with the tag of another file: %d, want 200", other.StatusCode)
	}
}

func TestDashboardGzip(t *testing.T) {
	t.Parallel()
	ask := serveDashboard(t, dashboardFiles())
	want := string(dashboardFiles()["assets/main-abc12.js"].Data)
	for header, packed := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "deflate, GZIP": true, "gzip;q=0": false, "gzip; q=0.0": false, "br": false,
	} {
		res := ask("GET", "/assets/main-abc12.js", "Accept-Encoding", header)
		var body io.Reader = res.Body
		if got := res.Header.Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("Accept-Encoding %q: packed is %t, want %t", header, got, packed)
			continue
		}
		if packed {
			var err error
			if body, err = gzip.NewReader(res.Body); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != want {
			t.Errorf("Accept-Encoding %q: got %d bytes and %v, want %d bytes", header, len(got), err, len(want))
		}
	}
	if res := ask("GET", "/assets/inter.woff2", "Accept-Encoding", "gzip"); res.Header.Get("Content-Encoding") != "" {
		t.Error("a font is packed twice")
	}
}

func TestNoDashboard(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fstest.MapFS{"none": nil, "not built": {"robots.txt": {Data: []byte("User-agent: *")}}} {
		ask := serveDashboard(t, files)
		if res := ask("GET", "/", browser...); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", name, res.StatusCode)
		}
	}
}
