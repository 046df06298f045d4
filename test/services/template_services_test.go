package services_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/template"
)

// templateServices stands for all services. It answers requests as the tests of their
// integrations say, and records them.
type templateServices struct {
	t      *testing.T
	mu     sync.Mutex
	script []scripted
	sent   []string
	// unknown are requests that nothing answers.
	unknown []string
	// polls are the answers to polls so far, and hooks the patterns of requests about the hooks
	// of their triggers: those of an earlier template can come while another one runs.
	polls []scripted
	hooks []string
}

// scripted is the answer to a request.
type scripted struct {
	request string // method, host and path
	answer  replay.Answer
	adjust  []string
}

// expect prepares the answers to the requests of a run.
func (s *templateServices) expect(t *testing.T, run templateRun) {
	t.Helper()
	var script []scripted
	for _, one := range run.answers {
		operation, name, _ := strings.Cut(one, ": ")
		service, operation, _ := strings.Cut(operation, ".")
		tests := testsOf(t, service).Operations[operation]
		at := slices.IndexFunc(tests, func(test replay.Test) bool { return test.Name == name })
		if at < 0 {
			t.Fatalf("there is no test %s", one)
		}
		script = append(script, scriptOf(t, tests[at].Exchanges, run.adjust)...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.sent, s.unknown = script, nil, nil
}

// expectPoll prepares the answers to the first poll of a trigger, and to those that follow
// it at once.
func (s *templateServices) expectPoll(t *testing.T, kind string) {
	t.Helper()
	service, trigger, _ := strings.Cut(kind, ".")
	tests := testsOf(t, service).Triggers[trigger]
	var script []scripted
	var cursor json.RawMessage
	for more := true; more; {
		at := slices.IndexFunc(tests, func(test replay.TriggerTest) bool { return sameJSON(test.Cursor, cursor) })
		if at < 0 {
			t.Fatalf("%s has no test of a poll that continues at %s", kind, cursor)
		}
		script = append(script, scriptOf(t, tests[at].Exchanges, nil)...)
		cursor, more = tests[at].Next, tests[at].More
	}
	var hooks []string
	for _, tests := range testsOf(t, service).Hooks {
		for _, test := range tests {
			for _, one := range scriptOf(t, test.Exchanges, nil) {
				hooks = append(hooks, withAnyValues(one.request, test.Input))
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.polls, s.hooks = script, append(s.polls, script...), append(s.hooks, hooks...)
}

// withAnyValues returns a pattern for a request to a path that has values of the settings of
// a trigger: a template has others than the test.
func withAnyValues(request string, settings json.RawMessage) string {
	var values map[string]any
	_ = json.Unmarshal(settings, &values) // a hook of a connection has no settings
	parts := strings.Split(request, "/")
	for i, part := range parts {
		for _, value := range values {
			if part == value {
				parts[i] = "*"
			}
		}
	}
	return strings.Join(parts, "/")
}

func sameJSON(a, b json.RawMessage) bool {
	var one, other any
	_, _ = json.Unmarshal(a, &one), json.Unmarshal(b, &other) // no cursor is nil
	return reflect.DeepEqual(one, other)
}

func scriptOf(t *testing.T, exchanges []replay.Exchange, adjust []string) []scripted {
	t.Helper()
	var out []scripted
	for _, e := range exchanges {
		method := e.Request.Method
		if method == "" {
			method = http.MethodGet
		}
		out = append(out, scripted{method + " " + addressOf(t, e.Request.URL), e.Answer, adjust})
	}
	return out
}

func (s *templateServices) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}

// ServeHTTP implements http.Handler.
func (s *templateServices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/token") {
		fmt.Fprint(w, `{"access_token": "a-token", "token_type": "Bearer", "expires_in": 3600}`)
		return
	}
	request := r.Method + " " + r.Host + r.URL.Path
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		text = unescaped(text)
	}
	s.sent = append(s.sent, request+"?"+unescaped(r.URL.RawQuery)+"\n"+text)
	isIt := func(one scripted) bool { return one.request == request }
	var one scripted
	if at := slices.IndexFunc(s.script, isIt); at >= 0 {
		one = s.script[at]
		s.script = slices.Delete(slices.Clone(s.script), at, at+1)
	} else if at := slices.IndexFunc(s.polls, isIt); at >= 0 {
		one = s.polls[at]
	} else {
		isHook := func(pattern string) bool {
			matches, _ := path.Match(pattern, request) // a pattern that is malformed matches nothing
			return matches
		}
		if !slices.ContainsFunc(s.hooks, isHook) {
			s.unknown = append(s.unknown, request)
		}
		w.WriteHeader(http.StatusNotFound)
		return
	}
	for name, value := range one.answer.Headers {
		w.Header().Set(name, value)
	}
	if one.answer.Status != 0 {
		w.WriteHeader(one.answer.Status)
	}
	text = one.answer.Text
	if one.answer.JSON != nil {
		text = string(one.answer.JSON)
	}
	fmt.Fprint(w, strings.NewReplacer(one.adjust...).Replace(text))
}

func unescaped(query string) string {
	text, err := url.QueryUnescape(query)
	if err != nil {
		return query
	}
	return text
}

// check reports what a run has not sent: requests, texts, and values of inputs that only
// steps use.
func (s *templateServices) check(t *testing.T, one template.Template, want templateRun) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := strings.Join(s.sent, "\n")
	for _, one := range s.script {
		t.Errorf("it does not send %s", one.request)
	}
	for _, request := range s.unknown {
		t.Errorf("it sends %s, which is not expected", request)
	}
	for _, text := range want.sent {
		if !strings.Contains(sent, text) {
			t.Errorf("it does not send %q", text)
		}
	}
	_, steps, _ := strings.Cut(one.Source, "\nsteps:\n")
	for _, in := range one.Inputs {
		used := strings.Contains(steps, "$(inputs."+in.Name+")")
		// A form needs the server to list its channels; nothing is sent about it.
		if used && in.Type != template.Connection && in.Name != "server" && !strings.Contains(sent, valueOf(in)) {
			t.Errorf("it does not send the value of %s, %q", in.Name, valueOf(in))
		}
	}
	if t.Failed() {
		t.Logf("it has sent\n%s", sent)
	}
}

// valueOf returns the text of the value that an input gets in this test.
func valueOf(in template.Input) string {
	if in.Required() {
		return in.Example
	}
	return strings.Trim(string(in.Default), `"`)
}
