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

// scenario is one sentence of the contract: what there is, what is asked, what
// comes of it. It has a workspace of its own.
type scenario struct {
	name  string         // the sentence
	given func(w *world) // what exists beforehand
	as    string         // the scope of the key, or "nobody"; admin unless said
	call  string         // method and path; $name stands for what was given
	body  string
	with  []string // headers, as pairs
	loose bool     // the schema of the request is stricter than the service

	status  int
	code    string   // of an error
	says    string   // what its message contains
	points  []string // the pointers of its details, exactly
	headers []string // pairs of name and regular expression; "" for none
	answer  string   // JSON that the answer contains; see contains
	keys    string   // the members of the answer, exactly
	events  string   // the events that come of it, exactly and in order
	audit   string   // the deeds recorded for it, exactly and in order
	then    func(w *world, a *answer)
}

func runScenarios(t *testing.T, scenarios []scenario) {
	t.Helper()
	t.Parallel()
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.run(newWorld(t))
		})
	}
}

func (sc scenario) run(w *world) {
	w.t.Helper()
	if sc.given != nil {
		sc.given(w)
	}
	caller := *w
	switch sc.as {
	case "":
	case "nobody":
		caller.client = w.server.anonymous(w.t)
	default:
		caller.client = w.as(sc.as)
	}
	caller.loose = sc.loose
	events, audited := len(w.events()), len(w.audited())
	method, path, _ := strings.Cut(sc.call, " ")
	a := caller.call(method, path, sc.body, sc.with...)
	if sc.code == "" {
		a.want(sc.status)
	} else {
		a.want(sc.status, sc.code)
	}
	sc.checkError(w, a)
	sc.checkAnswer(w, a)
	sc.checkEffects(w, events, audited)
	if sc.then != nil {
		sc.then(w, a)
	}
}

func (sc scenario) checkError(w *world, a *answer) {
	w.t.Helper()
	if says := w.fill(sc.says); says != "" && !strings.Contains(a.message(), says) {
		w.t.Errorf("the message is %q, want %q in it", a.message(), says)
	}
	if sc.points == nil {
		return
	}
	var got []string
	details, _ := a.object()["error"].(map[string]any)["details"].([]any)
	for _, detail := range details {
		got = append(got, fmt.Sprint(detail.(map[string]any)["pointer"]))
	}
	if diff := cmp.Diff(sc.points, got); diff != "" {
		w.t.Errorf("pointers of %s (-want +got):\n%s", a.body, diff)
	}
}

func (sc scenario) checkAnswer(w *world, a *answer) {
	w.t.Helper()
	for i := 0; i < len(sc.headers); i += 2 {
		name, want := sc.headers[i], w.fill(sc.headers[i+1])
		if got := a.header.Get(name); want == "" && got != "" || !regexp.MustCompile("^(?:"+want+")$").MatchString(got) {
			w.t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if sc.answer != "" {
		wantContains(w.t, a.json(), w.fill(sc.answer))
	}
	if sc.keys != "" {
		wantKeys(w.t, a.object(), sc.keys)
	}
}

func (sc scenario) checkEffects(w *world, events, audited int) {
	w.t.Helper()
	want := strings.Fields(sc.events)
	if len(want) > 0 {
		eventually(w.t, "the events are "+sc.events, func() bool { return len(w.events()) >= events+len(want) })
	}
	if got := w.events()[events:]; !slices.Equal(got, want) {
		w.t.Errorf("events are %v, want %v", got, want)
	}
	if got := w.audited()[audited:]; !slices.Equal(got, strings.Fields(sc.audit)) {
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

// wantContains fails the test unless a value contains what the JSON text says:
// of objects at least the members named, of arrays every element in order. A
// text that begins with ~ is a regular expression.
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
