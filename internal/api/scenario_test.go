package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scenario is one rule of the API: setup, request, expected response and
// effects. Each runs in its own workspace.
type scenario struct {
	name           string                 // the rule
	setup          func(w *testWorkspace) // creates what the request needs
	scope          string                 // the scope of the key, or "anonymous"; admin unless said
	request        string                 // method and path; $name stands for what was given
	body           string
	requestHeaders []string // headers, as pairs
	lenient        bool     // the schema of the request is stricter than the service

	status   int
	code     string   // error code
	message  string   // a part of the error message
	pointers []string // the exact pointers of the error details
	headers  []string // pairs of name and regular expression; "" for absent
	contains string   // JSON that the response contains; see wantContains
	members  string   // the exact members of the response
	events   string   // the exact events, in order
	audit    string   // the exact audit actions, in order
	after    func(w *testWorkspace, a *response)
}

func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	t.Parallel()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.run(newTestWorkspace(t))
		})
	}
}

// runReadOnlyScenarios runs scenarios that change nothing, one after the other
// in one workspace.
func runReadOnlyScenarios(t *testing.T, setup func(*testWorkspace), scenarios []scenario) {
	t.Helper()
	t.Parallel()
	w := newTestWorkspace(t)
	setup(w)
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) { sc.run(w.withT(t)) })
	}
}

func (sc scenario) run(w *testWorkspace) {
	w.t.Helper()
	if sc.setup != nil {
		sc.setup(w)
	}
	caller := *w
	switch sc.scope {
	case "":
	case "anonymous":
		caller.client = w.server.anonymous(w.t)
	default:
		caller.client = w.withScopes(sc.scope)
	}
	caller.lenient = sc.lenient
	events, audited := len(w.events()), len(w.auditActions())
	method, path, _ := strings.Cut(sc.request, " ")
	a := caller.call(method, path, sc.body, sc.requestHeaders...)
	if sc.code == "" {
		a.wantStatus(sc.status)
	} else {
		a.wantStatus(sc.status, sc.code)
	}
	sc.checkError(w, a)
	sc.checkResponse(w, a)
	sc.checkEffects(w, events, audited)
	if sc.after != nil {
		sc.after(w, a)
	}
}

func (sc scenario) checkError(w *testWorkspace, a *response) {
	w.t.Helper()
	if says := w.expand(sc.message); says != "" && !strings.Contains(a.message(), says) {
		w.t.Errorf("the message is %q, want %q in it", a.message(), says)
	}
	if sc.pointers == nil {
		return
	}
	if diff := cmp.Diff(sc.pointers, a.pointers()); diff != "" {
		w.t.Errorf("pointers of %s (-want +got):\n%s", a.body, diff)
	}
}

func (sc scenario) checkResponse(w *testWorkspace, a *response) {
	w.t.Helper()
	for i := 0; i < len(sc.headers); i += 2 {
		name, want := sc.headers[i], w.expand(sc.headers[i+1])
		if got := a.header.Get(name); want == "" && got != "" || !regexp.MustCompile("^(?:"+want+")$").MatchString(got) {
			w.t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if sc.contains != "" {
		wantContains(w.t, a.json(), w.expand(sc.contains))
	}
	if sc.members != "" {
		wantKeys(w.t, a.object(), sc.members)
	}
}

func (sc scenario) checkEffects(w *testWorkspace, events, audited int) {
	w.t.Helper()
	want := strings.Fields(sc.events)
	if len(want) > 0 {
		eventually(w.t, "the events are "+sc.events, func() bool { return len(w.events()) >= events+len(want) })
	}
	if got := w.events()[events:]; !slices.Equal(got, want) {
		w.t.Errorf("events are %v, want %v", got, want)
	}
	if got := w.auditActions()[audited:]; !slices.Equal(got, strings.Fields(sc.audit)) {
		w.t.Errorf("audit entries are %v, want %v", got, strings.Fields(sc.audit))
	}
}

// wantKeys fails the test unless an object has exactly the members.
func wantKeys(t *testing.T, object map[string]any, keys string) {
	t.Helper()
	want := strings.Fields(keys)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(object))); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
}

// wantContains fails the test unless a value contains the JSON: objects at
// least the named members, arrays every element in order. A string that starts
// with ~ is a regular expression.
func wantContains(t *testing.T, got any, text string) {
	t.Helper()
	var want any
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&want); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if problem := contains(got, want, ""); problem != "" {
		shown, _ := json.Marshal(got)
		t.Errorf("%s, in %s", problem, shown)
	}
}

func contains(got, want any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is no object: %v", at, got)
		}
		for name, value := range want {
			member, there := object[name]
			if !there {
				return fmt.Sprintf("%s/%s is missing", at, name)
			}
			if problem := contains(member, value, at+"/"+name); problem != "" {
				return problem
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s is no list of %d: %v", at, len(want), got)
		}
		for i, value := range want {
			if problem := contains(list[i], value, fmt.Sprintf("%s/%d", at, i)); problem != "" {
				return problem
			}
		}
		return ""
	case string:
		text, ok := got.(string)
		pattern, isPattern := strings.CutPrefix(want, "~")
		if ok && isPattern && regexp.MustCompile("^(?:"+pattern+")$").MatchString(text) {
			return ""
		}
	}
	if got != want {
		return fmt.Sprintf("%s is %v, want %v", at, got, want)
	}
	return ""
}
