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

func TestMain(m *testing.M) { harness.Main(m) }

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

// happen lets each kind of event happen once.
func happen(t *testing.T, c *harness.Client) {
	t.Helper()
	var made struct{ ID string }
	c.Expect(t, 201, "POST", "/v1/workflows", map[string]any{"name": "Grüße an 世界 \u2028 </script>"}).Decode(t, &made)
	c.Expect(t, 200, "PATCH", "/v1/workflows/"+made.ID, map[string]any{"state": "active"})
	c.Expect(t, 200, "POST", "/v1/workflows/"+made.ID+"/runs", nil, "Prefer", "wait=10")
}

// node finds Node and the packages of package-lock.json.
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

// delivery is one as it arrived, with the secret and the time to verify it with.
type delivery struct {
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"`
	Now     int64             `json:"now"`
}

// deliveries takes some from the real service.
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
	happen(t, s.Client)
	for range kinds {
		select {
		case <-arrived:
		case <-time.After(20 * time.Second):
			t.Fatal("not every event has arrived")
		}
	}
	s.Stop(t)
	for i := range got {
		got[i].Secret = secret
	}
	return got
}

// change makes a delivery that differs in some headers; "" leaves one out.
func (d delivery) change(headers ...string) delivery {
	all := maps.Clone(d.Headers)
	for i := 0; i+1 < len(headers); i += 2 {
		if all[headers[i]] = headers[i+1]; headers[i+1] == "" {
			delete(all, headers[i])
		}
	}
	d.Headers = all
	return d
}

// forgeries are made from a genuine delivery without its secret. Each changes
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
		"another body":             body,
		"a longer body":            longer,
		"no body":                  empty,
		"another id":               d.change(id, "evt_other"),
		"another time":             d.change(at, strconv.FormatInt(seconds+1, 10)),
		"an old time":              d.change(at, strconv.FormatInt(seconds-301-600, 10)),
		"a time to come":           d.change(at, strconv.FormatInt(seconds+301+600, 10)),
		"no time":                  d.change(at, ""),
		"a time in words":          d.change(at, "now"),
		"a negative time":          d.change(at, "-"+d.Headers[at]),
		"an endless time":          d.change(at, strings.Repeat("9", 40)),
		"no signatures":            d.change(signature, "", service, ""),
		"another signature":        d.change(signature, other, service, "sha256="+strings.Repeat("0", 64)),
		"half of the signature":    d.change(signature, d.Headers[signature][:20], service, d.Headers[service][:20]),
		"an empty signature":       d.change(signature, "v1,", service, "sha256="),
		"another kind of it":       d.change(signature, "v1a"+strings.TrimPrefix(d.Headers[signature], "v1")),
		"without its kind":         d.change(signature, strings.TrimPrefix(d.Headers[signature], "v1,")),
		"a signature not in ASCII": d.change(signature, "v1,é"),
	}
}
