package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
	"github.com/stepmill/stepmill/internal/mask"
)

// Whatever is sent and answered, no secret reaches the log or the files.
func TestSecretsStayOut(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 3 })
	w := s.newTestWorkspace(t)
	made := w.withIdempotencyKey("canary-idempotency", "/v1/api-keys", `{"name": "n", "scopes": ["admin", "read"]}`).wantStatus(201)
	hook := w.create("wh", "/v1/webhooks", `{"url": "https://example.com/hook?token=canary-in-url", "events": ["run.failed", "run.started"]}`)
	key := made.str("key")
	own := client{t: t, server: s, key: key}

	w.workflow("wf", setStep, failStep)
	w.runToEnd("run", "wf", `{"payload": {"password": "canary-in-payload"}}`)
	own.call("GET", "/v1/runs/"+w.names["run"], "").wantStatus(200)
	for _, headers := range [][]string{
		{"Authorization", "Bearer " + key + "x"}, {"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(key))}, {"Authorization", key}, {"Cookie", "s=" + key},
	} {
		own.call("GET", "/v1/workflows?key="+key+"&x=canary-in-query", "", append([]string{"X-Canary", "canary-in-header"}, headers...)...)
	}
	own.call("POST", "/v1/webhooks", `{"url": "https://user:canary-in-userinfo@example.com", "events": ["run.failed"]}`).wantStatus(400)
	own.call("POST", "/v1/workflows", `{"canary-in-key": "canary-in-value"}`).wantStatus(400)
	own.call("POST", "/v1/workflows", `{"name": "canary-cut-off`).wantStatus(400)
	own.call("GET", "/v1/workflows?cursor="+key, "").wantStatus(400)
	s.sendRaw(t, "GET /"+" "+key+" HTTP/1.1\r\nAuthorization: Bearer "+key+"\r\n\r\n")
	own.call("DELETE", "/v1/api-keys/"+made.str("id"), "").wantStatus(204)
	if err := s.log.checkLines(); err != nil {
		t.Error(err)
	}

	logged, stored := s.log.String(), string(s.files(t))
	if !strings.Contains(logged, w.names["run"]) || !strings.Contains(stored, w.names["run"]) {
		t.Fatal("the log or the files are not what was searched")
	}
	for _, secret := range []string{s.firstKey, w.key, key, hook.str("signing_secret")} {
		for _, form := range []string{secret, secret[len(secret)-20:], base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(logged, form) {
				t.Errorf("the log holds %q", form)
			}
			if strings.Contains(stored, form) {
				t.Errorf("the files hold %q", form)
			}
		}
	}
	if i := strings.Index(logged, "canary"); i >= 0 {
		t.Errorf("the log holds what was sent: %.200s", logged[max(0, i-100):])
	}
}

// Values of secrets are nowhere but where they are used: not in the files, the
// log or any answer, whatever is done with them.
func TestValuesOfSecretsStayOut(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	canaries := []string{"canary-first-4711", "canary-second \"quoted\" é", "canary-third-0815"}
	var answers []*response
	call := func(method, path, body string, headers ...string) *response {
		a := w.call(method, path, body, headers...)
		answers = append(answers, a)
		return a
	}
	for _, canary := range canaries {
		value, err := json.Marshal(map[string]string{"value": canary})
		if err != nil {
			t.Fatal(err)
		}
		a := call("PUT", "/v1/secrets/token", string(value), "Idempotency-Key", "canary")
		w.names["token"] = a.str("name")
	}
	call("PUT", "/v1/secrets/bad-name", `{"value": "canary-first-4711"}`).wantStatus(400)
	call("PUT", "/v1/secrets/token", `{"value": "canary-first-4711\u0000"}`).wantStatus(400)
	call("PUT", "/v1/secrets/token", `{"value": "canary-first-4711", "x": 1}`).wantStatus(400)
	call("PUT", "/v1/secrets/token", `{"value": "canary-first-4711"`).wantStatus(400)
	call("GET", "/v1/secrets/token", "").wantStatus(200)
	call("GET", "/v1/secrets", "").wantStatus(200)
	w.workflow("wf")
	call("PATCH", "/v1/workflows/$wf", `{"steps": [{"id": "a", "if": "secrets.token == 'x'", "uses": "http.request", "with": {"url": "https://example.com/${{ secrets.token }}"}}]}`).wantStatus(200)
	w.runToEnd("run", "wf", "")
	call("GET", "/v1/runs/$run", "").wantStatus(200)
	call("POST", "/v1/expressions/evaluate", `{"expression": "secrets.token", "run_id": "$run"}`).wantStatus(200)
	call("POST", "/v1/expressions/evaluate", `{"expression": "secrets.token + 1"}`, "Idempotency-Key", "canary").wantStatus(200)
	call("POST", "/v1/expressions/evaluate", `{"expression": "fromJSON(secrets.token)"}`).wantStatus(200)
	call("GET", "/v1/audit", "").wantStatus(200)
	call("GET", "/v1/usage", "").wantStatus(200)
	call("DELETE", "/v1/secrets/token", "").wantStatus(204)

	places := map[string]string{"the log": s.log.String(), "the files": string(s.files(t))}
	for i, a := range answers {
		places[fmt.Sprintf("answer %d", i)] = fmt.Sprint(string(a.body), a.header)
	}
	if !strings.Contains(places["the files"], "token") || !strings.Contains(places["the log"], "/v1/secrets") {
		t.Fatal("the log or the files are not what was searched")
	}
	m := mask.New(append(canaries, "canary"))
	for where, text := range places {
		if masked := m.Text(text); masked != text {
			t.Errorf("%s: a value is in it, at %.100q", where, masked[max(0, strings.Index(masked, mask.Replacement)-50):])
		}
	}
}

// checkLines makes sure that every line of the log is one JSON object, whatever
// was sent to break out of it.
func (b *logBuffer) checkLines() error {
	for line := range strings.SplitSeq(strings.TrimSpace(b.String()), "\n") {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return fmt.Errorf("%w: %s", err, line)
		}
	}
	return nil
}

// What is logged about a request cannot break out of its line or colour a
// terminal.
func TestLogsAreSafe(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	w := s.newTestWorkspace(t)
	for _, text := range []string{"%0a%7b%22level%22:%22ERROR%22%7d", "%1b%5b31mred", "%00", "%e2%80%ae", "%7f", "%22,%22x%22:%22"} {
		w.call("GET", "/v1/workflows/"+text, "")
		w.call("GET", "/"+text, "")
	}
	w.create("wf", "/v1/workflows", `{"name": "\u202eevil\u2028<b>"}`)
	s.sendRaw(t, "GET /healthz HTTP/1.1\r\nHost: x\x1b[31m\r\nUser-Agent: \x1b[31mred\r\nConnection: close\r\n\r\n")
	if err := s.log.checkLines(); err != nil {
		t.Error(err)
	}
	if logged := s.log.String(); strings.ContainsAny(logged, "\x1b\x00\r\u202e\u2028") || strings.Contains(logged, `\u001b`) {
		t.Errorf("the log holds control characters: %q", logged)
	}
}

// Text that would be markup elsewhere is returned as JSON, never as HTML.
func TestMarkupIsText(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	const markup = `<script>alert(1)</script><img src=x onerror=alert(1)>`
	w.create("wf", "/v1/workflows", `{"name": "`+markup+`", "description": "`+markup+`"}`)
	w.patch("wf", `{"steps": [{"id": "a", "name": "`+markup+`", "uses": "data.set", "with": {"values": {"x": "${{ trigger.payload.x }}"}}}]}`)
	for _, a := range []*response{
		w.call("GET", "/v1/workflows/$wf", ""), w.call("GET", "/v1/workflows", ""), w.runToEnd("run", "wf", `{"payload": {"x": "`+markup+`"}}`),
		w.call("GET", "/v1/workflows/<b>x", "", "Accept", "text/html"), w.call("GET", "/assets/<script>alert(1)</script>", "", "Accept", "text/html"),
	} {
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: the content type is %s", a.request.URL, got)
		}
	}
	wantContains(t, w.call("GET", "/v1/runs/$run", "").json(), `{"steps": [{"name": "`+markup+`", "output": {"x": "`+markup+`"}}]}`)
}
