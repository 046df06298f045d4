package connections_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
)

// encoders are the encodings in which a keeper tells what it knows.
var encoders = map[string]func(string) string{
	"plain": func(text string) string { return text },
	"json": func(text string) string {
		out, _ := json.Marshal(text)
		return string(out)
	},
	"slashes": func(text string) string { return strings.ReplaceAll(text, "/", `\/`) },
	"ascii":   func(text string) string { return each(text, `\u%04x`) },
	"ASCII":   func(text string) string { return strings.ReplaceAll(each(text, `\u%04X`), `\u002F`, "/") },
	"html":    html.EscapeString,
	"xml": func(text string) string {
		var out strings.Builder
		_ = xml.EscapeText(&out, []byte(text))
		return out.String()
	},
	"named": func(text string) string {
		return strings.NewReplacer("/", "&sol;", "+", "&plus;", "'", "&apos;").Replace(html.EscapeString(text))
	},
	"decimal": func(text string) string { return each(text, "&#%d;") },
	"hexrefs": func(text string) string { return each(text, "&#x%x;") },
	"HEXREFS": func(text string) string { return strings.ReplaceAll(each(text, "&#X%X;"), "&#X2B;", "+") },
	"query":   url.QueryEscape,
	"lower":   func(text string) string { return strings.NewReplacer("/", "%2f", "+", "%2b", "&", "%26").Replace(text) },
	"mixed":   func(text string) string { return strings.NewReplacer("/", "%2F", "<", "%3c").Replace(text) },
	"base64":  func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
	"escaped": func(text string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))) },
	"hex":     func(text string) string { return hex.EncodeToString([]byte(text)) },
}

func each(text, format string) string {
	var out strings.Builder
	for _, r := range text {
		fmt.Fprintf(&out, format, r)
	}
	return out.String()
}

func reverse(text string) string {
	letters := []rune(text)
	slices.Reverse(letters)
	return string(letters)
}

// keeper is a service that keeps the credentials it receives, and tells them to anyone.
type keeper struct {
	*httptest.Server
	mu   sync.Mutex
	kept map[string][]string // by connection
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{kept: map[string][]string{}}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() { k.CloseClientConnections(); k.Close() })
	return k
}

func (k *keeper) serve(w http.ResponseWriter, r *http.Request) {
	what, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	k.mu.Lock()
	defer k.mu.Unlock()
	if what == "keep" {
		k.kept[name] = []string{r.Header.Get("X-Key"), r.Header.Get("X-Signature"), strings.TrimPrefix(r.Header.Get("X-Basic"), "Basic ")}
		return
	}
	if what == "list" {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"key": r.Header.Get("X-Key")})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if r.URL.Query().Has("fails") {
		w.WriteHeader(http.StatusForbidden)
	}
	encode := encoders[r.URL.Query().Get("how")]
	for _, value := range k.kept[name] {
		fmt.Fprintf(w, "it was %s!\n", encode(value))
	}
}

// secretsOf returns what a connection of the test sends of its key.
func secretsOf(key string) []string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("stepmill"))
	return []string{key, hex.EncodeToString(mac.Sum(nil)), base64.StdEncoding.EncodeToString([]byte("flows:" + key))}
}

// textsOf returns every text in a JSON document, decoded.
func textsOf(t *testing.T, document []byte) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var visit func(any)
	visit = func(value any) {
		switch v := value.(type) {
		case string:
			out.WriteString(v + "\n")
		case []any:
			for _, element := range v {
				visit(element)
			}
		case map[string]any:
			for name, member := range v {
				out.WriteString(name + "\n")
				visit(member)
			}
		}
	}
	visit(value)
	return out.String()
}

// wantMasked checks that a run shows nothing of a key, in no encoding.
func wantMasked(t *testing.T, c *harness.Client, run, key string) {
	t.Helper()
	for _, path := range []string{"/v1/runs/" + run, "/v1/runs/" + run + "/steps?limit=100", "/v1/runs/" + run + "/logs?limit=100"} {
		shown := textsOf(t, c.Expect(t, http.StatusOK, "GET", path, nil).Body)
		for name, encode := range encoders {
			for i, secret := range secretsOf(key) {
				if strings.Contains(shown, encode(secret)) {
					t.Errorf("%s shows secret %d as %s", path, i, name)
				}
			}
		}
		if strings.Contains(shown, reverse(key)) {
			t.Errorf("%s shows the key backwards", path)
		}
		if path == "/v1/runs/"+run && !strings.Contains(shown, "it was ***!") {
			t.Errorf("%s shows no response of the service", path)
		}
	}
}

// TestSecretsAreMaskedInAllSteps uses connections in the first step of runs. The steps
// that follow receive the credentials from a service that has kept them: at once, after
// the run has waited, after the process was killed, and after the connection was changed
// or deleted.
func TestSecretsAreMaskedInAllSteps(t *testing.T) {
	t.Parallel()
	service := newKeeper(t)
	dir := t.TempDir()
	s := harness.Start(t, dir, allowLoopback)
	key := s.AwaitKey(t)

	type subject struct{ name, key, connection, workflow, run string }
	subjects := map[string]*subject{}
	for i, name := range []string{"waited", "killed", "changed", "deleted"} {
		of := &subject{name: name, key: fmt.Sprintf(`c4n4ry-%d/+<a&b>'"%%=/`, i)}
		subjects[name] = of
		var made struct{ ID string }
		s.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{
			"name": name, "auth": "api_key", "fields": map[string]string{"key": of.key},
			"definition": map[string]any{"hosts": []string{service.URL}, "apply": map[string]any{"headers": map[string]string{
				"X-Key": "${{ secret.key }}", "X-Signature": "${{ hmacSha256(secret.key, 'stepmill') }}", "X-Basic": "Basic ${{ toBase64('flows:' + secret.key) }}",
			}}},
		}).Decode(t, &made)
		of.connection = made.ID
		var hows []string
		for how := range encoders {
			hows = append(hows, "'"+how+"'")
		}
		recall := func(id string) map[string]any {
			return map[string]any{"id": id, "foreach": "[" + strings.Join(hows, ",") + "]", "steps": []any{
				map[string]any{"id": id + "_call", "uses": "http.request", "with": map[string]any{"url": service.URL + "/recall/" + name + "?how=${{ item }}"}},
				map[string]any{"id": id + "_fails", "uses": "http.request", "on_error": "continue", "with": map[string]any{"url": service.URL + "/recall/" + name + "?fails&how=${{ item }}"}},
				map[string]any{"id": id + "_logs", "uses": "log.write", "with": map[string]any{"message": "${{ steps." + id + "_call.output.body }}"}},
			}}
		}
		of.workflow = flow.Define(t, s.Client,
			map[string]any{"id": "keep", "uses": "http.request", "connection": name, "with": map[string]any{"url": service.URL + "/keep/" + name}},
			map[string]any{"id": "pages", "uses": "http.request", "connection": name, "with": map[string]any{
				"url":      service.URL + "/list/" + name,
				"paginate": map[string]any{"style": "page", "items": "[join(reverse(split(body.key, '')), '')]", "more": "false"},
			}},
			recall("first"),
			map[string]any{"id": "ask", "uses": "flow.approval"},
			recall("second"),
		)
		of.run = startRuns(t, s.Client, of.workflow, 1)[0]
	}
	for _, of := range subjects {
		harness.Eventually(t, "the run waits", func() bool { return get(t, s.Client, of.run).WaitingFor != nil })
	}
	s.Expect(t, http.StatusOK, "PATCH", "/v1/connections/"+subjects["changed"].connection, map[string]any{"fields": map[string]string{"key": "another key"}})
	s.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+subjects["deleted"].workflow, map[string]any{"state": "paused"})
	s.Expect(t, http.StatusNoContent, "DELETE", "/v1/connections/"+subjects["deleted"].connection, nil)

	resume := func(names ...string) {
		t.Helper()
		for _, name := range names {
			of := subjects[name]
			s.Expect(t, http.StatusOK, "POST", "/v1/runs/"+of.run+"/steps/ask/resume", map[string]any{"approved": true})
			awaitSuccess(t, s.Client, []string{of.run})
			t.Run(name, func(t *testing.T) { wantMasked(t, s.Client, of.run, of.key) })
		}
	}
	resume("waited", "deleted")
	s.Kill(t)
	s = harness.Start(t, dir, allowLoopback)
	s.Key = key
	resume("killed", "changed")
}
