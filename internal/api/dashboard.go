package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
)

// dashboardPolicy allows the dashboard its own files and calls, and nothing else.
// It makes no policy of Trusted Types, so none may be made.
const dashboardPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'"

// Files below assetPath carry a hash of their content in their names.
const assetPath = "/assets/"

// dashboard serves the files of the dashboard, and its one page at every address
// that is nobody else's: what that shows is decided by the page itself.
type dashboard struct {
	files map[string]*asset // by path
	page  *asset            // nil: there is no dashboard
	// taken are the first elements of paths that belong to others.
	taken  []string
	served *served
}

// asset is one file as it is sent.
type asset struct {
	mediaType string
	plain     []byte
	packed    func() []byte // nil: packing would not make it smaller
	etag      string
	caching   string
}

// newDashboard reads the files of a built dashboard; nil has none.
func newDashboard(built fs.FS, doors []door) *dashboard {
	d := &dashboard{files: map[string]*asset{}, taken: []string{"v1", "ui"}, served: newServed()}
	for _, door := range doors {
		d.taken = append(d.taken, strings.Trim(door.prefix, "/"))
	}
	if built == nil {
		return d
	}
	err := fs.WalkDir(built, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		d.files["/"+name] = newAsset("/"+name, body)
		return nil
	})
	if err != nil {
		panic(err) // the files are a part of the program
	}
	d.page = d.files["/index.html"]
	return d
}

// mediaTypes are those of the files that a build makes. The machine's own table
// is not asked: a wrong line in it would leave the page blank.
var mediaTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

func newAsset(name string, body []byte) *asset {
	sum := sha256.Sum256(body)
	a := &asset{plain: body, mediaType: mediaTypes[path.Ext(name)], etag: `"` + hex.EncodeToString(sum[:16]) + `"`, caching: "no-cache"}
	if a.mediaType == "" {
		a.mediaType = "application/octet-stream"
	}
	if strings.HasPrefix(name, assetPath) {
		a.caching = "public, max-age=31536000, immutable"
	}
	if path.Ext(name) != ".woff2" {
		a.packed = sync.OnceValue(func() []byte { return pack(body) })
	}
	return a
}

func pack(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = w.Write(body) // to memory
	_ = w.Close()
	return out.Bytes()
}

// find is what a request for no route gets from the dashboard; nil for nothing.
func (d *dashboard) find(r *http.Request) *asset {
	if d.page == nil || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	if found := d.files[r.URL.Path]; found != nil {
		return found
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if slices.Contains(d.taken, first) || strings.HasPrefix(r.URL.Path, assetPath) {
		return nil
	}
	// Programs that look for something get an error that they understand.
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return nil
	}
	return d.page
}

// send answers with a file.
func (d *dashboard) send(w http.ResponseWriter, r *http.Request, a *asset) {
	h := w.Header()
	h.Set("Content-Security-Policy", dashboardPolicy)
	h.Set("Cache-Control", a.caching)
	h.Set("ETag", "W/"+a.etag) // weak: packed or not, it is the same
	h.Set("Vary", "Accept, Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", a.mediaType)
	body := a.plain
	if a.packed != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = a.packed()
	}
	writeBytes(w, http.StatusOK, body)
}

// takesGzip reads an Accept-Encoding header.
func takesGzip(header string) bool {
	for coding := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
