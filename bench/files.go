package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"time"
)

// maxFileMemory is the resident memory, in MiB, that a server may have while a file of
// any size passes through it.
const maxFileMemory = 100

// files measures how long a file of this many MiB takes from one server through two
// steps to another one, and the most memory that Stepmill has in the meantime.
func files(ctx context.Context, dir string, mib int) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn", "--egress-allow", "127.0.0.0/8")
	if err != nil {
		return err
	}
	size, received := int64(mib)<<20, make(chan string, 1)
	depot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
			_, _ = io.CopyN(w, &pattern{}, size)
			return
		}
		hash := sha256.New()
		n, err := io.Copy(hash, r.Body)
		received <- fmt.Sprintf("%d %x %v", n, hash.Sum(nil), err)
	}))
	defer depot.Close()
	api := &client{server: server}
	workspaces, err := api.workspaces(1)
	if err != nil {
		return err
	}
	key := workspaces[0].key
	steps := fmt.Sprintf(`[{"id": "get", "uses": "http.request", "timeout": "15m", "with": {"url": "%[1]s/a.bin", "response": "file"}},
		{"id": "put", "uses": "http.request", "timeout": "15m", "with": {"url": %[1]q, "method": "PUT", "body": "${{ steps.get.output.body }}"}}]`, depot.URL)
	id, err := api.workflow(key, `{"state": "active", "steps": `+steps+`}`)
	if err != nil {
		return err
	}
	idle, begun := server.memory(), time.Now()
	if err := api.call("POST", "/v1/workflows/"+id+"/runs", key, `{}`, &struct{}{}); err != nil {
		return err
	}
	var arrived string
	select {
	case arrived = <-received:
	case <-time.After(30 * time.Minute):
		return fmt.Errorf("the file did not arrive within 30 minutes")
	}
	took, most := time.Since(begun), server.peakMemory()
	hash := sha256.New()
	_, _ = io.CopyN(hash, &pattern{}, size)
	if want := fmt.Sprintf("%d %x <nil>", size, hash.Sum(nil)); arrived != want {
		return fmt.Errorf("the file arrived as %s, want %s", arrived, want)
	}
	fmt.Printf("%-58s %9.1f s %9.0f MiB/s\n", fmt.Sprintf("a file of %d MiB through two steps", mib), took.Seconds(), float64(mib)/took.Seconds())
	fmt.Printf("%-58s %9.0f MiB, %.0f MiB when idle\n", "resident memory at its peak", most, idle)
	if most > maxFileMemory {
		return fmt.Errorf("the server had %.0f MiB in memory, more than %d", most, maxFileMemory)
	}
	return server.stop()
}

// pattern is an endless file whose content depends on the position.
type pattern struct{ at int64 }

func (p *pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(p.at>>12*31 ^ p.at)
		p.at++
	}
	return len(b), nil
}
