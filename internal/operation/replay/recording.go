package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Recordings are the requests that the vendor's own client sends for the tests of an
// integration. The integration must send the same ones.
type Recordings struct {
	// Client is the name and the version of the client, or of several.
	Client string `json:"client"`
	// Auth is the id of the entry of the manifest that the client authenticates with, and
	// Secrets has its fields. The access token of an entry without fields is access_token.
	Auth    string            `json:"auth"`
	Secrets map[string]string `json:"secrets"`
	// Differences are those that are intended.
	Differences []Difference `json:"differences"`
	// Without has the operations that the client cannot do, and why.
	Without    map[string]string `json:"without"`
	Recordings []Recording       `json:"recordings"`
}

// Recording has the requests of one test. The name of a trigger begins with triggers/, that
// of a hook with hooks/.
type Recording struct {
	Operation string            `json:"operation"`
	Test      string            `json:"test"`
	Requests  []json.RawMessage `json:"requests"` // each is a [Request]
}

// Difference is a member of requests in which the integration differs from the client:
// it sends Ours where the client sends Client. Either is missing if it is not sent.
type Difference struct {
	// Operation, Test and Request limit the difference to an operation, to one of its
	// tests, and to the request with this number, from 1.
	Operation string `json:"operation"`
	Test      string `json:"test"`
	Request   int    `json:"request"`
	// At is the path of the member, such as headers/accept.
	At     string          `json:"at"`
	Client json.RawMessage `json:"client"`
	Ours   json.RawMessage `json:"ours"`
	Why    string          `json:"why"`

	used bool
}

// ParseRecordings reads a file with recordings.
func ParseRecordings(data []byte) (*Recordings, error) {
	var out Recordings
	if err := strictjson.Decode(data, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

// of returns the requests that are expected of a test. They are nil if the client has not
// recorded it.
func (r *Recordings) of(operation, test string) ([]Request, error) {
	if r == nil {
		return nil, nil
	}
	at := slices.IndexFunc(r.Recordings, func(one Recording) bool { return one.Operation == operation && one.Test == test })
	if at < 0 {
		return nil, nil
	}
	out := []Request{}
	for number, recorded := range r.Recordings[at].Requests {
		request, err := decodeObject(recorded)
		if err != nil {
			return nil, err
		}
		for i := range r.Differences {
			if d := &r.Differences[i]; d.concerns(operation, test, number+1) {
				d.apply(request)
			}
		}
		var expected Request
		if err := strictjson.Decode(encode(request), &expected); err != nil {
			return nil, err
		}
		out = append(out, expected)
	}
	return out, nil
}

// decodeObject decodes an object whose numbers stay as they are written.
func decodeObject(data []byte) (map[string]any, error) {
	var out map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	err := decoder.Decode(&out)
	return out, err
}

func (d *Difference) concerns(operation, test string, request int) bool {
	return (d.Operation == "" || d.Operation == operation) && (d.Test == "" || d.Test == test) && (d.Request == 0 || d.Request == request)
}

// apply replaces what the client sends by what the integration does.
func (d *Difference) apply(request map[string]any) {
	path := strings.Split(d.At, "/")
	parent := request
	for _, name := range path[:len(path)-1] {
		next, ok := parent[name].(map[string]any)
		if !ok {
			return
		}
		parent = next
	}
	name := path[len(path)-1]
	value, given := parent[name]
	if given != (d.Client != nil) || given && equalJSON("", encode(value), d.Client) != nil {
		return
	}
	if d.used = true; d.Ours == nil {
		delete(parent, name)
		return
	}
	parent[name] = d.Ours
}

// encode encodes a value that was decoded from JSON.
func encode(value any) []byte {
	out, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return out
}

// Check returns what is wrong with the recordings themselves, a sentence each, after all
// tests were run with them. Nil is right.
func (r *Recordings) Check(i *integration.Integration, tests *Tests) []string {
	if r == nil {
		return nil
	}
	var out []string
	covered := maps.Clone(r.Without)
	if covered == nil {
		covered = map[string]string{}
	}
	for _, one := range r.Recordings {
		covered[one.Operation] = one.Test
		if !tests.have(one.Operation, one.Test) {
			out = append(out, fmt.Sprintf("there is no test %q of %s", one.Test, one.Operation))
		}
	}
	for _, name := range recordable(i) {
		if covered[name] == "" {
			out = append(out, fmt.Sprintf("%s has no recording; record one, or say why there is none in without", name))
		}
	}
	for _, d := range r.Differences {
		if !d.used || d.Why == "" {
			out = append(out, fmt.Sprintf("the difference at %s applies to no request, or does not say why", d.At))
		}
	}
	return out
}

// have reports whether there is a test that can be recorded.
func (t *Tests) have(of, test string) bool {
	if trigger, ok := strings.CutPrefix(of, recordedTrigger); ok {
		return slices.ContainsFunc(t.Triggers[trigger], func(t TriggerTest) bool { return t.Name == test })
	}
	if hook, ok := strings.CutPrefix(of, recordedHook); ok {
		return slices.ContainsFunc(t.Hooks[hook], func(t HookTest) bool { return t.Name == test })
	}
	return slices.ContainsFunc(t.Operations[of], func(t Test) bool { return t.Name == test })
}

// recordedTrigger is what stands before the names of triggers in recordings.
const recordedTrigger = "triggers/"

// recordable returns what needs recordings: the operations, polls and registrations, but not
// what only triggers use.
func recordable(i *integration.Integration) []string {
	var out []string
	polled := map[string]bool{}
	for _, t := range i.Triggers() {
		if t.Poll != nil {
			out = append(out, recordedTrigger+t.Name)
			polled[t.Poll.Operation.Name] = true
		}
	}
	for _, h := range i.Hooks() {
		if h.Register != nil {
			out = append(out, recordedHook+h.Name)
		}
	}
	for _, o := range i.Operations() {
		if !o.Hidden || !polled[o.Name] {
			out = append(out, o.Name)
		}
	}
	return out
}

// authenticate adds the credential of the recordings to a request, so that the whole
// request can be compared.
func (r *Recordings) authenticate(i *integration.Integration, variables map[string]string, request egress.Request) (egress.Request, error) {
	request.Header = request.Header.Clone()
	if request.Credential == nil {
		return request, nil
	}
	auth, ok := i.Connection.Find(r.Auth)
	if !ok {
		return request, fmt.Errorf("recordings: the manifest has no auth %q", r.Auth)
	}
	env := integration.Env{Connection: variables, Secret: r.Secrets, Token: r.Secrets["access_token"]}
	for name, template := range auth.Apply.Headers {
		text, given, err := template.Text(env)
		if err != nil {
			return request, err
		}
		if given {
			request.Header.Set(name, text)
		}
	}
	if basic := auth.Apply.Basic; basic != nil {
		user, _, userErr := basic.User.Text(env)
		password, _, passwordErr := basic.Password.Text(env)
		if err := errors.Join(userErr, passwordErr); err != nil {
			return request, err
		}
		as := http.Request{Header: request.Header}
		as.SetBasicAuth(user, password)
	}
	return r.authenticateURL(auth, env, request)
}

// authenticateURL adds the part of the credential that belongs to the URL.
func (r *Recordings) authenticateURL(auth *integration.Auth, env integration.Env, request egress.Request) (egress.Request, error) {
	segment, _, err := auth.Apply.Path.Text(env)
	if err != nil {
		return request, err
	}
	request.URL = strings.ReplaceAll(strings.ReplaceAll(request.URL, "%7Bauth%7D", integration.AuthSegment), integration.AuthSegment, url.PathEscape(segment))
	u, err := url.Parse(request.URL)
	if err != nil {
		return request, err
	}
	query := u.Query()
	for name, template := range auth.Apply.Query {
		text, given, err := template.Text(env)
		if err != nil {
			return request, err
		}
		if given {
			query.Set(name, text)
		}
	}
	u.RawQuery = query.Encode()
	request.URL = u.String()
	return request, nil
}
