package services_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// drive stands for Google Drive with one upload. After it has stored the second part, it does
// not respond before it is released.
type drive struct {
	mu       sync.Mutex
	stored   []byte
	sessions int
	asked    int

	held, released chan struct{}
}

func (d *drive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Host == "oauth2.googleapis.com":
		fmt.Fprint(w, `{"access_token": "ya29.token", "token_type": "Bearer", "expires_in": 3600}`)
	case r.Header.Get("Authorization") != "Bearer ya29.token":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Method == http.MethodPost:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sessions++
		w.Header().Set("Location", "https://www.googleapis.com/upload/drive/v3/files?upload_id=u1")
	case r.Method == http.MethodPut:
		d.put(w, r.Header.Get("Content-Range"), body)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (d *drive) put(w http.ResponseWriter, contentRange string, body []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var from, to, total int
	if _, err := fmt.Sscanf(contentRange, "bytes */%d", &total); err == nil {
		d.asked++
	} else if _, err := fmt.Sscanf(contentRange, "bytes %d-%d/%d", &from, &to, &total); err != nil || from != len(d.stored) || to-from+1 != len(body) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	d.stored = append(d.stored, body...)
	if from > 0 && d.held != nil {
		close(d.held)
		d.held = nil
		d.mu.Unlock()
		<-d.released
		d.mu.Lock()
	}
	if len(d.stored) == total {
		fmt.Fprint(w, `{"id": "f1", "name": "film.mp4"}`)
		return
	}
	if len(d.stored) > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(d.stored)-1))
	}
	w.WriteHeader(http.StatusPermanentRedirect)
}

// connectGoogle makes the connection office with a service account.
func connectGoogle(t *testing.T, c *harness.Client, service string) {
	t.Helper()
	connectGoogleAs(t, c, "office", service)
}

func connectGoogleAs(t *testing.T, c *harness.Client, name, service string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "robot@project.example",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
		"name": name, "integration": "google", "auth": "service_account", "fields": map[string]any{"key": string(file), "services": service},
	})
}

// A file goes to a service in parts. If the server dies while it sends one, it asks the
// service how much it has, and sends what is left.
func TestUploadContinuesAfterKill(t *testing.T) {
	t.Parallel()
	service := &drive{held: make(chan struct{}), released: make(chan struct{})}
	held := service.held
	network, dir := newInternet(t, service.ServeHTTP), t.TempDir()
	s := network.startIn(t, dir)
	connectGoogle(t, s.Client, "google_drive")
	content := bytes.Repeat([]byte("0123456789abcdef"), 20<<20/16)
	response, err := s.Open(t.Context(), http.MethodPost, "/v1/files?name=film.mp4", bytes.NewReader(content), "Content-Type", "video/mp4")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
		t.Fatal(err)
	}
	step := flow.Step("upload", "google_drive.upload_file", `{"file": "${{ trigger.files.film }}"}`)
	step["connection"] = "office"
	workflow := flow.Define(t, s.Client, step)
	var run struct {
		ID     string
		Status string
		Steps  []struct {
			Output map[string]any
			Error  json.RawMessage
		}
	}
	s.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"files": map[string]any{"film": made.ID}}).Decode(t, &run)
	select {
	case <-held:
	case <-t.Context().Done():
	}
	s.Kill(t)
	close(service.released)
	key := s.Key
	s = network.startIn(t, dir)
	s.Key = key
	harness.Eventually(t, "the run ends", func() bool {
		s.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &run)
		return run.Status != "running"
	})
	if run.Status != "succeeded" || run.Steps[0].Output["id"] != "f1" {
		t.Fatalf("the run %s: %s", run.Status, run.Steps[0].Error)
	}
	service.mu.Lock()
	defer service.mu.Unlock()
	if !bytes.Equal(service.stored, content) {
		t.Errorf("INVARIANT: the service has %d bytes that are not those of the file", len(service.stored))
	}
	if service.sessions != 1 || service.asked != 1 {
		t.Errorf("%d uploads were begun and the service was asked %d times, want one each", service.sessions, service.asked)
	}
	if strings.Contains(s.Log(), "ya29.token") {
		t.Error("the log has the token")
	}
}
