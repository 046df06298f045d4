package s3_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/stepmill/stepmill/internal/blob"
	"github.com/stepmill/stepmill/internal/blob/blobtest"
	"github.com/stepmill/stepmill/internal/blob/s3"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
)

const part = 5 << 20

func random(n int) []byte {
	content := make([]byte, n)
	_, _ = rand.Read(content)
	return content
}

// bucket is a server with an empty bucket. A test can intercept its requests.
type bucket struct {
	url string

	mu        sync.Mutex
	intercept func(w http.ResponseWriter, r *http.Request, next http.Handler)
	requests  []string
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("files"); err != nil {
		t.Fatal(err)
	}
	b := &bucket{}
	next := gofakes3.New(backend, gofakes3.WithIntegrityCheck(true)).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		intercept := b.intercept
		b.requests = append(b.requests, r.Method+" "+r.URL.RequestURI())
		b.mu.Unlock()
		if intercept != nil {
			intercept(w, r, next)
		} else {
			next.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// on makes the server handle requests in another way.
func (b *bucket) on(intercept func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.intercept = intercept
}

// environment has credentials and nothing else.
func environment(name string) string {
	return map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret"}[name]
}

// quick makes retries quick.
var quick = s3.Timings{Backoff: 10 * time.Millisecond}

func (b *bucket) open(t *testing.T, prefix string, timings s3.Timings) *s3.Store {
	t.Helper()
	config, err := s3.ParseURL("s3://files/"+prefix+"?endpoint="+b.url, environment)
	if err != nil {
		t.Fatal(err)
	}
	return s3.New(config, timings)
}

func put(t *testing.T, s *s3.Store, content []byte) blob.ID {
	t.Helper()
	id := blob.NewID()
	if err := blobtest.Put(t.Context(), s, id, content, 1<<20); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestConformance(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, blobtest.Backend{
		Open:     func(t *testing.T) blob.Store { return newBucket(t).open(t, "some/prefix", quick) },
		Boundary: part,
	})
}

func TestSmallBlobIsOneRequest(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	id := put(t, b.open(t, "", quick), []byte("small"))
	b.mu.Lock()
	defer b.mu.Unlock()
	if got, want := strings.Join(b.requests, "\n"), "PUT /files/"+string(id)+"?x-id=PutObject"; got != want {
		t.Errorf("requests:\n%s\nwant:\n%s", got, want)
	}
}

func TestPrefixesSeparateStores(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	one, two, all := b.open(t, "one", quick), b.open(t, "two", quick), b.open(t, "", quick)
	id := put(t, one, []byte("one"))
	if _, err := blobtest.Get(t.Context(), two, id, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	u, err := one.Begin(t.Context(), blob.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Write(random(part + 1)); err != nil {
		t.Fatal(err)
	}
	future := clock.Now().Add(time.Hour)
	for name, s := range map[string]*s3.Store{"another prefix": two, "no prefix": all} {
		if page, err := s.List(t.Context(), paging.Request{Limit: 1}); err != nil || len(page.Items) != 0 {
			t.Errorf("%s lists %v, %v", name, page.Items, err)
		}
		if n, err := s.Sweep(t.Context(), future); n != 0 || err != nil {
			t.Errorf("%s swept %d uploads, %v", name, n, err)
		}
	}
	if n, err := one.Sweep(t.Context(), future); n != 1 || err != nil {
		t.Errorf("swept %d uploads, %v", n, err)
	}
}

// Objects that somebody else stored must not end a list early.
func TestListSkipsOtherObjects(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	s := b.open(t, "", quick)
	var want []blob.ID
	for n := range 6 {
		want = append(want, put(t, s, []byte("x")))
		put(t, b.open(t, "a"+strconv.Itoa(n), quick), []byte("x")) // among the ids
	}
	slices.Sort(want)
	var got []blob.ID
	for after := ""; ; {
		page, err := s.List(t.Context(), paging.Request{Limit: 2, After: after})
		if err != nil || len(page.Items) != 2 {
			t.Fatalf("%d blobs on a page, %v", len(page.Items), err)
		}
		for _, info := range page.Items {
			got = append(got, info.ID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTemporaryErrorsAreRetried(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	s, content := b.open(t, "", quick), random(2*part+1)
	var n atomic.Int64
	b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch n.Add(1) % 3 {
		case 0:
			next.ServeHTTP(w, r)
		case 1:
			respond(w, http.StatusServiceUnavailable, "SlowDown")
		case 2:
			panic(http.ErrAbortHandler) // the connection breaks
		}
	})
	id := put(t, s, content)
	if got, err := blobtest.Get(t.Context(), s, id, 3, math.MaxInt64); err != nil || !bytes.Equal(got, content[3:]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if page, err := s.List(t.Context(), paging.Request{Limit: 1}); err != nil || len(page.Items) != 1 {
		t.Errorf("%v, %v", page.Items, err)
	}
	if err := s.Delete(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func respond(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code><Message>no</Message></Error>")
}

func TestErrorsAreTyped(t *testing.T) {
	t.Parallel()
	is := func(code fault.Code) func(error) bool { return func(err error) bool { return fault.Is(err, code) } }
	denied := func(err error) bool { return errors.Is(err, blob.ErrDenied) }
	for _, tc := range []struct {
		status int
		code   string
		want   func(error) bool
	}{
		{http.StatusServiceUnavailable, "SlowDown", is(fault.Unavailable)},
		{http.StatusInternalServerError, "InternalError", is(fault.Unavailable)},
		{http.StatusTooManyRequests, "Throttling", is(fault.Unavailable)},
		{http.StatusForbidden, "AccessDenied", denied},
		{http.StatusForbidden, "InvalidAccessKeyId", denied},
		{http.StatusForbidden, "SignatureDoesNotMatch", denied},
		{http.StatusBadRequest, "AuthorizationHeaderMalformed", denied},
		{http.StatusNotFound, "NoSuchBucket", denied},
		{http.StatusInsufficientStorage, "XMinioStorageFull", is(fault.StorageFull)},
		{http.StatusForbidden, "QuotaExceeded", is(fault.StorageFull)},
	} {
		t.Run(tc.code, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			b.on(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { respond(w, tc.status, tc.code) })
			s, id := b.open(t, "", quick), blob.NewID()
			_, readErr := blobtest.Get(t.Context(), s, id, 0, 1)
			_, listErr := s.List(t.Context(), paging.Request{Limit: 1})
			_, sweepErr := s.Sweep(t.Context(), clock.Now())
			for what, err := range map[string]error{
				"write": blobtest.Put(t.Context(), s, id, []byte("x"), 1), "read": readErr,
				"delete": s.Delete(t.Context(), id), "list": listErr, "sweep": sweepErr,
			} {
				if !tc.want(err) {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}

func TestUnreachableBucketIsUnavailable(t *testing.T) {
	t.Parallel()
	const refusing = "http://127.0.0.1:1" // nothing listens on this port
	config, err := s3.ParseURL("s3://files?endpoint="+refusing, environment)
	if err != nil {
		t.Fatal(err)
	}
	err = blobtest.Put(t.Context(), s3.New(config, quick), blob.NewID(), []byte("x"), 1)
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
}

func TestSilentBucketIsUnavailable(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	b.on(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices the end of a connection only then
		<-r.Context().Done()
	})
	s := b.open(t, "", s3.Timings{Request: 50 * time.Millisecond, Stall: 10 * time.Millisecond, Backoff: time.Millisecond})
	if err := blobtest.Put(t.Context(), s, blob.NewID(), []byte("x"), 1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a write: %v", err)
	}
	if _, err := blobtest.Get(t.Context(), s, blob.NewID(), 0, 1); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a read: %v", err)
	}
}

// cutter passes on a number of bytes, then breaks or stalls.
type cutter struct {
	http.ResponseWriter
	rest  int
	broke func()
}

func (c *cutter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p[:min(len(p), c.rest)])
	if c.rest -= n; c.rest == 0 && err == nil {
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		c.broke()
	}
	return n, err
}

func TestBrokenReadIsResumed(t *testing.T) {
	t.Parallel()
	for name, broke := range map[string]func(r *http.Request) func(){
		"cut off": func(*http.Request) func() { return func() { panic(http.ErrAbortHandler) } },
		"stalled": func(r *http.Request) func() { return func() { <-r.Context().Done(); panic(http.ErrAbortHandler) } },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBucket(t)
			content := random(1 << 20)
			id := put(t, b.open(t, "", quick), content)
			s := b.open(t, "", s3.Timings{Stall: 500 * time.Millisecond, Backoff: time.Millisecond})
			var cut atomic.Int64
			b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				if cut.Add(1) <= 3 {
					w = &cutter{ResponseWriter: w, rest: 200_000, broke: broke(r)}
				}
				next.ServeHTTP(w, r)
			})
			got, err := blobtest.Get(t.Context(), s, id, 100, 900_000)
			if err != nil || !bytes.Equal(got, content[100:900_100]) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if cut.Load() < 4 {
				t.Errorf("%d requests: the read was not cut", cut.Load())
			}
		})
	}
}

func TestReadThatBreaksAgainAndAgainFails(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	s := b.open(t, "", quick)
	content := random(1000)
	id := put(t, s, content)
	var requests atomic.Int64
	b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if requests.Add(1) == 1 {
			w = &cutter{ResponseWriter: w, rest: 500, broke: func() { panic(http.ErrAbortHandler) }}
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Range", "bytes 500-999/1000")
		w.Header().Set("Content-Length", "500")
		w.WriteHeader(http.StatusPartialContent)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	got, err := blobtest.Get(t.Context(), s, id, 0, math.MaxInt64)
	if !fault.Is(err, fault.Unavailable) || !bytes.Equal(got, content[:500]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestFailedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	s, id := b.open(t, "", quick), blob.NewID()
	b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if number, _ := strconv.Atoi(r.URL.Query().Get("partNumber")); number == 2 {
			respond(w, http.StatusServiceUnavailable, "SlowDown")
			return
		}
		next.ServeHTTP(w, r)
	})
	if err := blobtest.Put(t.Context(), s, id, random(3*part), part); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if n, err := s.Sweep(t.Context(), clock.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("the upload left %d, %v", n, err)
	}
	if _, err := blobtest.Get(t.Context(), s, id, 0, 1); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// A server that ignores the header Range must not return bytes of another place.
func TestServerWithoutRangeIsRejected(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	s := b.open(t, "", quick)
	id := put(t, s, []byte("0123456789"))
	b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		r.Header.Del("Range")
		next.ServeHTTP(w, r)
	})
	if got, err := blobtest.Get(t.Context(), s, id, 5, 5); !errors.Is(err, blob.ErrDenied) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := blobtest.Get(t.Context(), s, id, 0, 5); err != nil || string(got) != "01234" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRequestsAreSigned(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	headers := make(chan http.Header, 1)
	b.on(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		headers <- r.Header.Clone()
		next.ServeHTTP(w, r)
	})
	config, err := s3.ParseURL("s3://files?region=eu-central-1&endpoint="+b.url, func(name string) string {
		return map[string]string{
			"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
		}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s3.New(config, quick).Delete(context.Background(), blob.NewID()); err != nil {
		t.Fatal(err)
	}
	header := <-headers
	signed := header.Get("Authorization")
	if !strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(signed, "/eu-central-1/s3/aws4_request") {
		t.Errorf("Authorization: %s", signed)
	}
	if header.Get("X-Amz-Security-Token") != "session" {
		t.Error("the session token is missing")
	}
}
