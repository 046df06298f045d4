package egress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/egress"
)

// Each of these responses is too large or never ends. None may use more than 8
// MiB.
func TestLimitsOversizedAndEndlessResponses(t *testing.T) {
	compressed := bytes.Repeat(gzipped(1<<20), 64)
	empty := bytes.Repeat(gzipped(0), 1000)
	forever := func(conn net.Conn, head string, part []byte) {
		fmt.Fprint(conn, head)
		for {
			if _, err := conn.Write(part); err != nil {
				return
			}
		}
	}
	kilobyte := bytes.Repeat([]byte("a"), 1<<10)
	chunk := fmt.Appendf(nil, "400\r\n%s\r\n", kilobyte)
	for _, tc := range []struct {
		name  string
		write func(net.Conn)
		code  egress.Code
	}{
		{"endless body", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\n\r\n", kilobyte) }, egress.ResponseTooLarge},
		{"10 GB body", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n", kilobyte) }, egress.ResponseTooLarge},
		{"endless chunks", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk) }, egress.ResponseTooLarge},
		{"gzip 1000:1", func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(compressed), compressed)
		}, egress.ResponseTooLarge},
		{"gzip of nothing", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", empty) }, egress.ResponseTooLarge},
		{"endless headers", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\n", []byte("X-Header: value\r\n")) }, egress.ResponseTooLarge},
		{"endless header", func(c net.Conn) { forever(c, "HTTP/1.1 200 OK\r\nX-Header: ", kilobyte) }, egress.ResponseTooLarge},
		{"endless status", func(c net.Conn) { forever(c, "HTTP/1.1 200 ", kilobyte) }, egress.ResponseTooLarge},
		{"1xx flood", func(c net.Conn) { forever(c, "", []byte("HTTP/1.1 103 Early Hints\r\nX-Y: z\r\n\r\n")) }, egress.ResponseTooLarge},
		{"endless trailers", func(c net.Conn) {
			forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n0\r\n", []byte("X-T: value\r\n"))
		}, egress.InvalidResponse},
		{"endless chunk extension", func(c net.Conn) {
			forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a=", kilobyte)
		}, egress.InvalidResponse},
		{"endless chunk extensions", func(c net.Conn) {
			forever(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Appendf(nil, "1;%s\r\na\r\n", kilobyte))
		}, egress.InvalidResponse},
		{"body byte by byte", func(c net.Conn) { writeSlowly(c, "HTTP/1.1 200 OK\r\n\r\n", "a") }, egress.TimedOut},
		{"header byte by byte", func(c net.Conn) { writeSlowly(c, "HTTP/1.1 200 OK\r\nX-H: ", "a") }, egress.TimedOut},
		{"1xx one by one", func(c net.Conn) { writeSlowly(c, "", "HTTP/1.1 100 Continue\r\n\r\n") }, egress.TimedOut},
		{"gzip byte by byte", func(c net.Conn) {
			writeSlowly(c, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"+string(compressed[:20]), "\x00")
		}, egress.TimedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			url := rawServer(t, tc.write)
			client := newClient(t, egress.Config{Policy: internet})
			timeout := 5 * time.Minute
			if tc.code == egress.TimedOut {
				timeout = 200 * time.Millisecond
			}
			// Other goroutines only add to a measurement.
			for attempt := 1; ; attempt++ {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				_, err := client.Do(t.Context(), egress.Request{URL: url, Timeout: timeout})
				runtime.ReadMemStats(&after)
				wantError(t, err, tc.code)
				used := after.TotalAlloc - before.TotalAlloc
				if used <= 8<<20 {
					return
				}
				if attempt == 5 {
					t.Fatalf("it took %d KiB of memory", used>>10)
				}
			}
		})
	}
}

func writeSlowly(conn net.Conn, head, part string) {
	fmt.Fprint(conn, head)
	for {
		if _, err := io.WriteString(conn, part); err != nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func gzipped(zeros int) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.CopyN(w, zeroes{}, int64(zeros))
	w.Close()
	return out.Bytes()
}

type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestMaxBody(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		var size int
		fmt.Sscanf(r.URL.Path, "/%d", &size)
		body := bytes.Repeat([]byte("x"), size)
		if r.URL.RawQuery == "gzip" {
			w.Header().Set("Content-Encoding", "gzip")
			zip, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			zip.Write(body)
			zip.Close()
			return
		}
		w.Write(body)
	})
	client := newClient(t, egress.Config{Policy: internet})
	for _, query := range []string{"", "?gzip"} {
		for _, tc := range []struct {
			size, limit, length int
			truncate            bool
			code                egress.Code
		}{
			{0, 0, 0, false, ""},
			{1 << 20, 0, 1 << 20, false, ""},
			{1<<20 + 1, 0, 0, false, egress.ResponseTooLarge},
			{1<<20 + 1, 0, 1 << 20, true, ""},
			{100, 100, 100, false, ""},
			{101, 100, 0, false, egress.ResponseTooLarge},
			{101, 100, 100, true, ""},
			{1 << 20, 4096, 4096, true, ""},
			{2 << 20, 4 << 20, 2 << 20, false, ""},
		} {
			resp, err := client.Do(t.Context(), egress.Request{
				URL: fmt.Sprintf("%s/%d%s", server.URL, tc.size, query), MaxBody: int64(tc.limit), Truncate: tc.truncate,
			})
			if tc.code != "" {
				wantError(t, err, tc.code)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(resp.Body) != strings.Repeat("x", tc.length) || resp.Truncated != (tc.length < tc.size) {
				t.Errorf("%+v: %d bytes, truncated %t", tc, len(resp.Body), resp.Truncated)
			}
			if resp.Header.Get("Content-Encoding") != "" || resp.Duration <= 0 {
				t.Errorf("%+v: %v, %s", tc, resp.Header, resp.Duration)
			}
		}
	}
}

func TestCompressedResponsesWithoutABody(t *testing.T) {
	t.Parallel()
	server := serve(t, outside, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		switch {
		case r.Header.Get("Range") != "":
			w.WriteHeader(http.StatusPartialContent)
			fmt.Fprint(w, "part")
		case r.Method != http.MethodHead:
			w.WriteHeader(http.StatusNoContent)
		}
	})
	client := newClient(t, egress.Config{Policy: internet})
	for _, r := range []egress.Request{
		{Method: "HEAD"},
		{Method: "DELETE"},
		{Header: http.Header{"Range": {"bytes=0-3"}}},
	} {
		r.URL = server.URL
		if _, err := client.Do(t.Context(), r); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}
