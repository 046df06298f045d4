package transport

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/stepmill/stepmill/internal/etag"
)

// dashboardPolicy allows the dashboard its own files and requests, and nothing
// else. One Trusted Types policy may be created, once: the page that shows PDFs starts a
// worker, and the only URL that this policy returns is that of the worker's script.
//
// Previews of files are why images and media may come from the page itself: blob: for
// images, audio and video, data: for SVG images. As an image, SVG executes nothing, but a
// blob: URL of it could be opened as a document of this origin; a data: URL cannot. Frames
// are not allowed. PDFs are drawn by a script; it needs no eval and no WebAssembly.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; " +
	"img-src 'self' blob: data:; media-src blob:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types pdf-worker"

const mediaHTML = "text/html"

// programPath matches paths that programs request rather than people: API
// versions, misspelled ones included, and files, hidden ones included.
var programPath = regexp.MustCompile(`(?i)^/+(v[0-9]+|ui|metrics|healthz|readyz)(/|$)|/\.|\.[a-z0-9]+$`)

// The names of files below assetPath contain a hash of their content.
const assetPath = "/assets/"

// dashboard serves the files of the dashboard. Its page is served at every path
// that no route uses, to every client that accepts HTML; the page does its own
// routing.
type dashboard struct {
	files map[string]*asset // by path
	page  *asset            // nil: there is no dashboard
	// reserved lists the first path elements that belong to routes.
	reserved []string
	requests *requestStats
}

// asset is one file. Its bytes stay in the binary: a copy of all files in memory would be a
// third of what an idle server has on its heap, and multiplied by the target of the garbage
// collector. Browsers request the compressed form, which is kept.
type asset struct {
	mediaType    string
	plain        func() []byte // reads the file
	gzipped      func() []byte // nil: already compressed
	etag         string
	cacheControl string
}

// newDashboard reads the files of a built dashboard. With nil there is no dashboard.
func newDashboard(built fs.FS, routes []PublicRoute) *dashboard {
	d := &dashboard{files: map[string]*asset{}, reserved: []string{"v1", "ui"}, requests: newRequestStats()}
	for _, route := range routes {
		d.reserved = append(d.reserved, strings.Trim(route.Prefix, "/"))
	}
	if built == nil {
		return d
	}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		d.files["/"+name] = newAsset("/"+name, func() []byte { return mustRead(built, name) })
		return nil
	})
	if err != nil {
		panic(err) // the files are embedded in the binary
	}
	d.page = d.files["/index.html"]
	return d
}

func mustRead(built fs.FS, name string) []byte {
	body, err := fs.ReadFile(built, name)
	if err != nil {
		panic(err) // the files are embedded in the binary
	}
	return body
}

// mediaTypes lists the media types of built files. The table of the operating
// system is not used: a wrong entry there would leave the page blank.
var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

func newAsset(name string, read func() []byte) *asset {
	sum := sha256.Sum256(read())
	a := &asset{plain: read, mediaType: mediaTypes[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:16]) + `"`, cacheControl: "no-cache"}
	if a.mediaType == "" {
		a.mediaType = "application/octet-stream"
	}
	if strings.HasPrefix(name, assetPath) {
		a.cacheControl = "public, max-age=31536000, immutable"
	}
	if path.Ext(name) != ".woff2" {
		a.gzipped = sync.OnceValue(func() []byte { return gzipBytes(read()) })
	}
	return a
}

func gzipBytes(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = w.Write(body) // writing to memory cannot fail
	_ = w.Close()
	return out.Bytes()
}

// find returns the file for a request that matches no route, or nil.
func (d *dashboard) find(r *http.Request) *asset {
	if d.page == nil || !reads(r) {
		return nil
	}
	if found := d.files[r.URL.Path]; found != nil {
		return found
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if slices.Contains(d.reserved, first) || strings.HasPrefix(r.URL.Path, assetPath) {
		return nil
	}
	accept := strings.Join(r.Header.Values("Accept"), ",")
	if accept != "" && quality(accept, mediaHTML) == 0 {
		return nil
	}
	// A program that accepts anything gets a JSON error instead of the page.
	if !strings.Contains(strings.ToLower(accept), mediaHTML) && (hasBearer(r) || programPath.MatchString(r.URL.Path)) {
		return nil
	}
	return d.page
}

// hasBearer reports whether the request has a bearer token, which browsers do not send.
func hasBearer(r *http.Request) bool {
	scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

func (d *dashboard) serve(w http.ResponseWriter, r *http.Request, a *asset) {
	h := w.Header()
	h.Set("Content-Security-Policy", dashboardPolicy)
	h.Set("Cache-Control", a.cacheControl)
	h.Set("ETag", "W/"+a.etag) // weak: the same for both encodings
	h.Set("Vary", "Accept, Accept-Encoding")
	if etag.NoneMatches(r.Header.Get("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.mediaType)
	read := a.plain
	if a.gzipped != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		read = a.gzipped
	}
	writeBytes(w, http.StatusOK, read())
}

func acceptsGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
