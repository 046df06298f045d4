package api_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stepmill/stepmill/internal/config"
)

// echoServer starts a server that responds with what it receives.
func echoServer(t *testing.T, answer func(body string) string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, answer(string(body)))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// linkClient opens links without a key.
type linkClient struct {
	t      *testing.T
	server *server
}

// pageResponse is the response to a linkClient.
type pageResponse struct {
	status int
	header http.Header
	body   string
}

// send sends a request as a browser would, with a form if given.
func (v linkClient) send(method, address, form string) pageResponse {
	v.t.Helper()
	request, err := http.NewRequestWithContext(v.t.Context(), method, address, strings.NewReader(form))
	if err != nil {
		v.t.Fatal(err)
	}
	if form != "" {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := v.server.http.Do(request)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return pageResponse{response.StatusCode, response.Header, string(body)}
}

func (v linkClient) want(method, address, form string, status int, texts ...string) pageResponse {
	v.t.Helper()
	got := v.send(method, address, form)
	for _, text := range texts {
		if !strings.Contains(got.body, text) {
			v.t.Errorf("%s: the page does not say %q: %s", method, text, got.body)
		}
	}
	if got.status != status {
		v.t.Errorf("%s %s: %d %s", method, address, got.status, got.body)
	}
	return got
}

// links returns the links of a waiting step from GET /v1/approvals.
func (w *testWorkspace) links(run, step string) (page, callback string) {
	w.t.Helper()
	for _, item := range w.call("GET", "/v1/approvals", "").items() {
		if item["run_id"] == w.names[run] && item["step_id"] == step {
			return fmt.Sprint(item["page_url"]), fmt.Sprint(item["callback_url"])
		}
	}
	w.t.Fatalf("%s of %s does not wait", step, run)
	return "", ""
}

const afterAsk = `{"id": "after", "uses": "data.set", "with": {"values": {"answer": "${{ steps.ask.output }}"}}}`

func TestApprovalPage(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", `{"id": "ask", "name": "Ask <Ada>", "uses": "flow.approval", "with": {"message": "Ship <script>alert(1)</script>\nnow?", "timeout": "2d"}}`, afterAsk)
	w.runUntilWaiting("run", "wf")
	page, _ := w.links("run", "ask")
	if !strings.HasPrefix(page, w.server.url+"/approve/") {
		t.Fatalf("the page is at %s", page)
	}
	v := linkClient{t, w.server}
	for range 5 { // link previews open it too
		shown := v.want("GET", page, "", 200, "Your decision is needed", "Ship &lt;script&gt;alert(1)&lt;/script&gt;\nnow?",
			"Workflow wf", "Ask &lt;Ada&gt;", "Test", "(47 hours left)", `value="approve"`, `value="reject"`)
		if strings.Contains(shown.body, "<script") {
			t.Error("there is a script in the page")
		}
		checkPageHeaders(t, shown.header)
	}
	if head := v.want("HEAD", page, "", 200); head.body != "" {
		t.Errorf("HEAD has a body: %s", head.body)
	}
	w.waitForStep("run", "ask")

	moved := v.want("POST", page, "decision=approve&comment=Fine+by+me+%F0%9F%91%8D", 303)
	if back, err := url.Parse(page); err != nil || back.JoinPath("..", moved.header.Get("Location")).String() != page {
		t.Errorf("it leads back to %q", moved.header.Get("Location"))
	}
	ended := w.waitForStatus("run", "succeeded")
	wantContains(t, ended.json(), `{"steps": [{}, {"output": {"answer": {"approved": true, "by": "link", "comment": "Fine by me 👍", "data": null}}}]}`)
	v.want("GET", page, "", 200, "Approved", "nothing left to do")
	v.want("POST", page, "decision=reject", 409, "Your decision was not recorded", "already been decided")
	if got := w.auditActions(); !slices.Contains(got, "run.answered") {
		t.Errorf("audited: %v", got)
	}
	wantContains(t, w.call("GET", "/v1/audit?action=run.answered", "").json(), w.expand(
		`{"data": [{"actor": {"type": "link", "id": null}, "target_id": "$run", "details": {"approved": true, "step_id": "ask", "address": "127.0.0.1"}}]}`))
}

func checkPageHeaders(t *testing.T, h http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		"X-Robots-Tag": "noindex", "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Set-Cookie": "",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "style-src 'sha256-"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s: %s", want, policy)
		}
	}
	if strings.Contains(policy, "script-src") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy allows scripts: %s", policy)
	}
}

func TestInvalidDecisions(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", askStep)
	w.runUntilWaiting("run", "wf")
	page, _ := w.links("run", "ask")
	v := linkClient{t, w.server}
	for _, form := range []string{"comment=x", "decision=maybe", "decision=", "decision=approve%00", "decision=approve&comment=" + strings.Repeat("x", 4001), "decision=approve&comment=%07", "%zz"} {
		v.want("POST", page, form, 400, "That did not work")
	}
	v.want("POST", page, "decision=approve&comment="+strings.Repeat("x", 100_000), 400)
	v.want("POST", page+"?decision=approve", "comment=x", 400) // in the URL instead of the form
	for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS"} {
		if got := v.want(method, page, "", 405); got.header.Get("Allow") != "GET, POST" {
			t.Errorf("%s: %v", method, got.header)
		}
	}
	w.waitForStep("run", "ask")
}

// Links of another step or kind are not found, and the response does not tell
// why.
func TestForgedLinks(t *testing.T) {
	t.Parallel()
	w, other := newTestWorkspace(t), newTestWorkspace(t)
	w.workflow("wf", `{"id": "ask", "needs": [], "uses": "flow.approval"}`, `{"id": "beside", "needs": [], "uses": "flow.approval"}`)
	w.runUntilWaiting("run", "wf")
	w.runUntilWaiting("another", "wf")
	other.workflow("wf", askStep)
	other.runUntilWaiting("run", "wf")
	page, callback := w.links("run", "ask")
	beside, _ := w.links("run", "beside")
	another, _ := w.links("another", "ask")
	foreign, _ := other.links("run", "ask")
	const head = 1 + 26 // the kind and the id of the run
	token := func(address string) string { return address[strings.LastIndexByte(address, '/')+1:] }
	genuine := token(page)
	forged := map[string]string{
		"nothing": "", "a word": "x", "the kind alone": "p", "cut short": genuine[:len(genuine)-1], "longer": genuine + "A", "another case": strings.ToUpper(genuine),
		"one bit":          flipChar(genuine, head+3),
		"another step":     genuine[:head+32] + token(beside)[head+32:],
		"another proof":    genuine[:head] + token(beside)[head:head+32] + genuine[head+32:],
		"another run":      token(another)[:head] + genuine[head:],
		"of the others":    token(foreign)[:head] + genuine[head:],
		"a callback":       token(callback),
		"made a page":      "p" + token(callback)[1:],
		"no such run":      "p" + "01m7f9hb3mevr88y42wdngtn4v" + genuine[head:],
		"not a run":        "p" + strings.Repeat("!", 26) + genuine[head:],
		"with a slash":     genuine + "/",
		"with more below":  genuine + "/resume",
		"very long":        genuine + strings.Repeat("A", 5000),
		"escaped":          "%2e%2e%2f" + genuine,
		"of another world": "../../v1/runs",
	}
	v := linkClient{t, w.server}
	var bodies []string
	for name, forgery := range forged {
		for _, method := range []string{"GET", "POST"} {
			got := v.send(method, w.server.url+"/approve/"+forgery, "decision=approve")
			if name == "of another world" { // the client normalizes it
				continue
			}
			if got.status != 404 {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
			bodies = append(bodies, got.body)
		}
	}
	if slices.Sort(bodies); bodies[0] != bodies[len(bodies)-1] {
		t.Error("the responses differ")
	}
	v.want("POST", w.server.url+"/callback/"+genuine, "", 404)
	w.waitForStep("run", "ask")
}

func flipChar(text string, at int) string {
	c := byte('A')
	if text[at] == c {
		c = 'B'
	}
	return text[:at] + string(c) + text[at+1:]
}

func TestLinkGuessesAreRateLimited(t *testing.T) {
	t.Parallel()
	s := newServer(t, func(c *config.Serve) { c.PreauthRPM = 5 })
	w := s.newTestWorkspace(t)
	w.workflow("wf", askStep)
	w.runUntilWaiting("run", "wf")
	page, callback := w.links("run", "ask")
	v := linkClient{t, s}
	limited := 0
	for range 20 { // the minute may turn once
		if got := v.send("GET", s.url+"/approve/nonsense", ""); got.status == 429 {
			limited++
			if got.header.Get("Retry-After") == "" || got.header.Get("X-RateLimit-Remaining") != "0" {
				t.Errorf("headers: %v", got.header)
			}
		}
	}
	if limited < 10 {
		t.Errorf("%d of 20 were rejected", limited)
	}
	v.want("GET", page, "", 200)
	v.want("POST", callback, "", 200) // a valid one is not rejected
}

func TestLinksOfEndedRuns(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	v := linkClient{t, w.server}
	w.workflow("wf", askStep)
	for name, end := range map[string]struct {
		do   func(run string)
		page string
		code int
	}{
		"cancelled": {func(run string) { w.call("POST", "/v1/runs/$"+run+"/cancel", "").wantStatus(200) }, "No longer needed", 409},
		"answered over the API": {func(run string) {
			w.call("POST", "/v1/runs/$"+run+"/steps/ask/resume", `{"approved": false}`).wantStatus(200)
		}, "Rejected", 409},
	} {
		w.runUntilWaiting("run", "wf")
		page, callback := w.links("run", "ask")
		end.do("run")
		v.want("GET", page, "", 200, end.page)
		if shown := v.want("POST", page, "decision=approve", end.code); strings.Contains(shown.body, "<form") {
			t.Errorf("%s: there is still a form", name)
		}
		w.server.anonymous(t).call("POST", callback[len(w.server.url):], `{"a": 1}`).wantStatus(409, "step_not_waiting")
	}
	w.workflow("short", `{"id": "ask", "uses": "flow.approval", "with": {"timeout": "300ms", "on_timeout": "approve"}}`, afterAsk)
	w.runUntilWaiting("late", "short")
	page, callback := w.links("late", "ask")
	wantContains(t, w.waitForStatus("late", "succeeded").json(), `{"steps": [{}, {"output": {"answer": {"approved": true, "by": null}}}]}`)
	v.want("GET", page, "", 200, "The deadline has passed")
	v.want("POST", page, "decision=approve", 409, "deadline for this decision has passed")
	v.want("POST", callback, "", 409, "deadline for this decision has passed")

	w.runUntilWaiting("gone", "wf")
	page, callback = w.links("gone", "ask")
	w.call("DELETE", "/v1/workflows/$wf", "").wantStatus(204)
	v.want("GET", page, "", 404, "does not work")
	v.want("POST", callback, "", 404)
}

func TestCallbackWithData(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", askStep, afterAsk)
	for name, test := range map[string]struct{ query, media, body, want string }{
		"an object":  {"", "application/json", `{"job": 17, "ok": [true]}`, `{"approved": true, "by": "callback", "comment": "", "data": {"job": 17, "ok": [true]}}`},
		"a list":     {"?approved=true", "application/json", `[1]`, `{"approved": true, "data": {"value": [1]}}`},
		"a form":     {"?approved=false&id=3", "application/x-www-form-urlencoded", `a=1&a=2`, `{"approved": false, "data": {"a": ["1", "2"]}}`},
		"text":       {"", "text/plain", `done`, `{"approved": true, "data": {"value": "done"}}`},
		"nothing":    {"", "", ``, `{"approved": true, "data": {}}`},
		"some bytes": {"", "image/png", "\x89", `{"approved": true, "data": {"base64": "iQ=="}}`},
	} {
		w.runUntilWaiting("run", "wf")
		_, callback := w.links("run", "ask")
		c := w.server.anonymous(t)
		c.lenient = true
		got := c.call("POST", callback[len(w.server.url):]+test.query, test.body, "Content-Type", test.media)
		wantContains(t, got.wantStatus(200).json(), `{"answered": true}`)
		wantContains(t, w.waitForStatus("run", "succeeded").json(), `{"steps": [{}, {"output": {"answer": `+test.want+`}}]}`)
		if again := c.call("POST", callback[len(w.server.url):], `{}`); again.status != 409 || again.code() != "step_not_waiting" {
			t.Errorf("%s, once more: %d %s", name, again.status, again.body)
		}
	}
}

func TestInvalidCallbacks(t *testing.T) {
	t.Parallel()
	w := sharedServer(t).newTestWorkspaceWith(t, `{"name": "Small", "plan": "free"}`)
	w.workflow("wf", askStep)
	w.runUntilWaiting("run", "wf")
	_, callback := w.links("run", "ask")
	path := callback[len(w.server.url):]
	c := w.server.anonymous(t)
	c.call("POST", path, `{"a":`).wantStatus(400, "invalid_json")
	c.call("POST", path+"?approved=maybe", `{}`).wantStatus(400, "invalid_request")
	c.call("POST", path, `{}`, "Content-Encoding", "gzip").wantStatus(415, "unsupported_media_type")
	c.call("POST", path, `"`+strings.Repeat("x", 300<<10)+`"`).wantStatus(413, "payload_too_large") // larger than a step output may be
	c.call("POST", path, `"`+strings.Repeat("x", 1<<20)+`"`).wantStatus(413, "payload_too_large")
	for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
		if got := c.call(method, path, ""); got.status != 405 || got.header.Get("Allow") != "POST" {
			t.Errorf("%s: %d", method, got.status)
		}
	}
	w.waitForStep("run", "ask")
	c.call("POST", path, "").wantStatus(200)
}

// An external service may call back before the workflow has reached the waiting
// step.
func TestEarlyCallback(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	sink := echoServer(t, func(body string) string { sent <- body; return "" })
	s := newServer(t, allowLoopback)
	w := s.newTestWorkspace(t)
	w.workflow("wf",
		`{"id": "tell", "uses": "http.request", "with": {"method": "POST", "url": "`+sink+`", "body": "${{ links.ask.page }} ${{ links.ask.callback }}"}}`,
		`{"id": "first", "uses": "flow.approval"}`, `{"id": "ask", "uses": "flow.approval", "with": {"timeout": "30s"}}`, afterAsk)
	w.runUntilWaiting("run", "wf")
	page, callback, _ := strings.Cut(<-sent, " ")
	v := linkClient{t, s}
	shown := v.want("GET", page, "", 200, "Nothing to decide yet")
	if shown.header.Get("Refresh") == "" || strings.Contains(shown.body, "<form") {
		t.Error("there is a form, or the page does not look again")
	}
	v.want("POST", page, "decision=approve", 409)
	path := callback[len(s.url):]
	c := s.anonymous(t)
	c.call("POST", path, `{"n": 1}`).wantStatus(200)
	c.call("POST", path, `{"n": 1}`).wantStatus(200) // again
	c.call("POST", path, `{"n": 2}`).wantStatus(409, "step_not_waiting")
	s.restart(t)
	w.call("POST", "/v1/runs/$run/steps/first/resume", `{"approved": true}`).wantStatus(200)
	wantContains(t, w.waitForStatus("run", "succeeded").json(), `{"steps": [{}, {}, {}, {"output": {"answer": {"approved": true, "by": "callback", "data": {"n": 1}}}}]}`)
	if left := s.query(t, `SELECT path FROM early_answers`); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestConcurrentDecisions(t *testing.T) {
	t.Parallel()
	w := newTestWorkspace(t)
	w.workflow("wf", askStep, afterAsk)
	for range 5 {
		w.runUntilWaiting("run", "wf")
		page, callback := w.links("run", "ask")
		var decided atomic.Int64
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				address, form := page, "decision=approve"
				switch i % 3 {
				case 1:
					form = "decision=reject"
				case 2:
					address, form = callback, fmt.Sprintf("n=%d", i)
				}
				request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form))
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				response, err := w.server.http.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
				switch response.StatusCode {
				case http.StatusOK, http.StatusSeeOther:
					decided.Add(1)
				case http.StatusConflict:
				default:
					t.Errorf("got %d", response.StatusCode)
				}
			})
		}
		all.Wait()
		if decided.Load() != 1 {
			t.Errorf("%d decisions counted", decided.Load())
		}
		w.waitForStatus("run", "succeeded")
	}
}

// Callers who may only read never see a link, wherever it was used.
func TestReadersDoNotSeeLinks(t *testing.T) {
	t.Parallel()
	var sent sync.Map
	sink := echoServer(t, func(body string) string { sent.Store(body, true); return "got " + body })
	s := newServer(t, func(c *config.Serve) {
		allowLoopback(c)
		if err := c.PublicURL.UnmarshalText([]byte("https://flows.example.com/base/")); err != nil {
			t.Fatal(err)
		}
	})
	w := s.newTestWorkspace(t)
	w.workflow("wf",
		`{"id": "tell", "uses": "http.request", "with": {"method": "POST", "url": "`+sink+`", "body": "${{ links.ask.page }} ${{ links.ask.callback }}"}}`,
		`{"id": "ask", "uses": "flow.approval", "with": {"message": "Go on?", "notify": {"url": "`+sink+`", "body": {"text": "Decide: ${{ links.ask.page }}"}}}}`)
	w.runUntilWaiting("run", "wf")
	page, callback := w.links("run", "ask")
	if !strings.HasPrefix(page, "https://flows.example.com/base/approve/p") || !strings.HasPrefix(callback, "https://flows.example.com/base/callback/c") {
		t.Fatalf("the links are %s and %s", page, callback)
	}
	for _, want := range []string{page + " " + callback, `{"text":"Decide: ` + page + `"}`} {
		if _, ok := sent.Load(want); !ok {
			t.Errorf("%s was not sent", want)
		}
	}
	linkClient{t, s}.want("GET", s.url+strings.TrimPrefix(page, "https://flows.example.com/base"), "", 200)
	reader := w.withScopes("read")
	for _, item := range reader.call("GET", "/v1/approvals", "").items() {
		if item["page_url"] != nil || item["callback_url"] != nil {
			t.Errorf("a reader sees %v", item)
		}
	}
	stored := string(reader.call("GET", w.expand("/v1/runs/$run"), "").wantStatus(200).body)
	if !strings.Contains(stored, "https://flows.example.com/base/approve/***") {
		t.Errorf("the run shows %s", stored)
	}
	for _, address := range []string{page, callback} {
		token := address[strings.LastIndexByte(address, '/')+1:]
		for place, text := range map[string]string{"the run": stored, "the log": s.log.String(), "the disk": string(s.files(t))} {
			if strings.Contains(text, token) {
				t.Errorf("%s has %s", place, token)
			}
		}
	}
}
