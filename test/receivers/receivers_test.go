package receivers_test

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/harness"
)

func TestMain(m *testing.M) {
	harness.SetParallel(4)
	harness.Main(m)
}

// egress lets webhooks point at this machine.
const egress = "--egress-allow=127.0.0.0/8"

var kinds = []string{"run.started", "run.succeeded", "workflow.activated"}

// subscribe makes a webhook and returns its secret.
func subscribe(t *testing.T, c *harness.Client, url string) string {
	t.Helper()
	var made struct {
		Secret string `json:"signing_secret"`
	}
	c.Expect(t, 201, "POST", "/v1/webhooks", map[string]any{"url": url, "events": kinds}).Decode(t, &made)
	return made.Secret
}

// triggerEvents causes one event of each kind.
func triggerEvents(t *testing.T, c *harness.Client) {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "Grüße an 世界 \u2028 </script>"}).Decode(t, &made)
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active"})
	c.Expect(t, 200, "POST", "/v1/workflows/"+made.ID+"/runs", nil, "Prefer", "wait=60")
}

// node returns the path of Node and checks that the packages are installed.
func node(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	if err != nil {
		t.Fatal("Node 20 or newer is needed: https://nodejs.org")
	}
	if _, err := os.Stat("node_modules/standardwebhooks"); err != nil {
		t.Fatal("run `npm ci` in test/receivers first; `make test` does it")
	}
	return path
}

// delivery is a delivery with the secret and the time to verify it with.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
	Now     int64             `json:"now"`
}

// deliveries returns deliveries of the real service.
func deliveries(t *testing.T) []delivery {
	t.Helper()
	var mu sync.Mutex
	var got []delivery
	arrived := make(chan struct{}, len(kinds))
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d := delivery{Headers: map[string]string{}, Body: body, Now: time.Now().Unix()}
		for name, values := range r.Header {
			d.Headers[strings.ToLower(name)] = values[0]
		}
		mu.Lock()
		got = append(got, d)
		mu.Unlock()
		arrived <- struct{}{}
	}))
	t.Cleanup(server.Close)
	s := harness.Start(t, t.TempDir(), egress)
	secret := subscribe(t, s.Client, server.URL)
	triggerEvents(t, s.Client)
	for range kinds {
		select {
		case <-arrived:
		case <-time.After(harness.Timeout):
			t.Fatal("not every event arrived")
		}
	}
	s.Stop(t)
	for i := range got {
		got[i].Secret = secret
	}
	return got
}

// withHeaders returns a copy of a delivery with changed headers. "" removes one.
func (d delivery) withHeaders(headers ...string) delivery {
	all := maps.Clone(d.Headers)
	for i := 0; i+1 < len(headers); i += 2 {
		if all[headers[i]] = headers[i+1]; headers[i+1] == "" {
			delete(all, headers[i])
		}
	}
	d.Headers = all
	return d
}

// forgeries returns variants of a genuine delivery, made without its secret. Each changes
// what both kinds of signature cover, or the time.
func forgeries(d delivery) map[string]delivery {
	const id, at, signature, service = "webhook-id", "webhook-timestamp", "webhook-signature", "x-service-signature"
	body := d
	body.Body = bytes.Replace(d.Body, []byte("event"), []byte("evenT"), 1)
	longer := d
	longer.Body = append(bytes.Clone(d.Body), '\n')
	empty := d
	empty.Body = []byte{}
	seconds, _ := strconv.ParseInt(d.Headers[at], 10, 64)
	other := "v1," + strings.Repeat("A", 43) + "="
	return map[string]delivery{
		"changed body":              body,
		"longer body":               longer,
		"empty body":                empty,
		"changed id":                d.withHeaders(id, "evt_other"),
		"changed timestamp":         d.withHeaders(at, strconv.FormatInt(seconds+1, 10)),
		"old timestamp":             d.withHeaders(at, strconv.FormatInt(seconds-301-600, 10)),
		"future timestamp":          d.withHeaders(at, strconv.FormatInt(seconds+301+600, 10)),
		"missing timestamp":         d.withHeaders(at, ""),
		"non-numeric timestamp":     d.withHeaders(at, "now"),
		"negative timestamp":        d.withHeaders(at, "-"+d.Headers[at]),
		"overlong timestamp":        d.withHeaders(at, strings.Repeat("9", 40)),
		"missing signatures":        d.withHeaders(signature, "", service, ""),
		"changed signature":         d.withHeaders(signature, other, service, "sha256="+strings.Repeat("0", 64)),
		"truncated signature":       d.withHeaders(signature, d.Headers[signature][:20], service, d.Headers[service][:20]),
		"empty signature":           d.withHeaders(signature, "v1,", service, "sha256="),
		"unknown signature version": d.withHeaders(signature, "v1a"+strings.TrimPrefix(d.Headers[signature], "v1")),
		"missing signature version": d.withHeaders(signature, strings.TrimPrefix(d.Headers[signature], "v1,")),
		"non-ASCII signature":       d.withHeaders(signature, "v1,é"),
	}
}
