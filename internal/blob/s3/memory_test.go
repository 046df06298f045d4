package s3_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/blob/s3"
	"github.com/stepmill/stepmill/test/lane"
)

// oneFile is a bucket with one object, which it keeps in a file, because the
// server of the other tests keeps objects in memory. It only knows the requests of
// a multipart upload and of a download.
type oneFile struct{ file *os.File }

func (o oneFile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch query := r.URL.Query(); {
	case r.Method == http.MethodGet:
		http.ServeFile(w, r, o.file.Name())
	case r.Method == http.MethodPut:
		w.Header().Set("ETag", `"part"`)
		if _, err := io.Copy(o.file, r.Body); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	case query.Has("uploads"):
		_, _ = io.WriteString(w, "<InitiateMultipartUploadResult><UploadId>1</UploadId></InitiateMultipartUploadResult>")
	case query.Has("uploadId"):
		_, _ = io.WriteString(w, "<CompleteMultipartUploadResult><ETag>whole</ETag></CompleteMultipartUploadResult>")
	}
}

// It is not parallel, because it measures the heap of the process. The limit has
// room for two parts, because the collector lets the heap double, and for the
// garbage of the server.
func TestMemory(t *testing.T) {
	lane.NotShort(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "object"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server := httptest.NewServer(oneFile{file})
	defer server.Close()
	config, err := s3.ParseURL("s3://files?endpoint="+server.URL, environment)
	if err != nil {
		t.Fatal(err)
	}
	blobtest.CheckMemory(t, s3.New(config, quick), lane.Pick[int64](64<<20, 256<<20), 20<<20)
}
