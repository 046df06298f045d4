// Command google records what Google's own clients for Go send for the tests of
// integrations, like record.mjs beside it does with clients for Node.
//
//	go run . DIR
//
// writes DIR/<service>/recordings.json. It is a module of its own, so that the clients and
// what they need stay out of the product.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/oauth2"
)

// accessToken is made up.
const accessToken = "ya29.made-up"

// operations do the operations of an integration with the client of the vendor, as a
// person would. They get the input of a test as JSON. The names of triggers begin with
// triggers/; their input also has the cursor. Those of hooks have hooks/, and their input
// also has does (register, renew or unregister), hook and the subscription.
type operations map[string]func(ctx context.Context, client *http.Client, input []byte) error

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run . DIR")
	}
	for id, service := range map[string]operations{
		"google_calendar": calendarOperations,
		"google_docs":     docsOperations,
		"google_drive":    driveOperations,
		"google_sheets":   sheetsOperations,
		"gmail":           gmailOperations,
	} {
		if err := record(os.Args[1], id, service); err != nil {
			log.Fatalf("%s: %v", id, err)
		}
	}
}

type test struct {
	Name    string         `yaml:"name"`
	Input   map[string]any `yaml:"input"`
	Cursor  any            `yaml:"cursor"`
	Files   map[string]any `yaml:"files"`
	Error   any            `yaml:"error"`
	Crashed bool           `yaml:"interrupted"`
	// Does and Subscription are about a request for a hook; Call is set for a call of one,
	// which no client makes.
	Does         string         `yaml:"does"`
	Subscription map[string]any `yaml:"subscription"`
	Call         map[string]any `yaml:"call"`
	Exchanges    []struct {
		Answer answer `yaml:"answer"`
	} `yaml:"exchanges"`
}

type answer struct {
	Status  int               `yaml:"status"`
	Headers map[string]string `yaml:"headers"`
	JSON    any               `yaml:"json"`
	Text    string            `yaml:"text"`
}

// recording and request are those of recordings.json; see replay.Recordings.
type recording struct {
	Operation string     `json:"operation"`
	Test      string     `json:"test"`
	Requests  []*request `json:"requests"`
}

type request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Query   map[string]any    `json:"query,omitempty"`
	Headers map[string]string `json:"headers"`
	JSON    json.RawMessage   `json:"json,omitempty"`
	Text    string            `json:"text,omitempty"`
	Size    int               `json:"size,omitempty"` // of a body that is too long to be recorded
}

// errNotRecorded is the error of a test whose requests the client cannot send.
var errNotRecorded = errors.New("the client cannot send the requests of this test")

// record writes the recordings of a service.
func record(dir, id string, service operations) error {
	text, err := os.ReadFile(filepath.Join("../../../integrations", id, "tests.yaml"))
	if err != nil {
		return err
	}
	var tests struct {
		Operations yaml.Node `yaml:"operations"`
		Hooks      yaml.Node `yaml:"hooks"`
		Triggers   yaml.Node `yaml:"triggers"`
	}
	if err := yaml.Unmarshal(text, &tests); err != nil {
		return err
	}
	recordings, err := recordAll(tests.Operations, "", service)
	if err != nil {
		return err
	}
	ofHooks, err := recordAll(tests.Hooks, "hooks/", service)
	if err != nil {
		return err
	}
	ofTriggers, err := recordAll(tests.Triggers, "triggers/", service)
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, id), notes[id], slices.Concat(recordings, ofHooks, ofTriggers))
}

// recordAll records the tests in an object, in the order of the file.
func recordAll(tests yaml.Node, prefix string, service operations) ([]recording, error) {
	var out []recording
	for i := 0; i < len(tests.Content); i += 2 {
		name := prefix + tests.Content[i].Value
		var list []test
		if err := tests.Content[i+1].Decode(&list); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(t test) bool { return t.Call != nil })
		do, ok := service[name]
		if !ok && len(list) > 0 {
			return nil, fmt.Errorf("%s is missing", name)
		}
		for _, t := range list {
			if t.Crashed { // the client knows no crashes
				continue
			}
			requests, err := t.record(do)
			if errors.Is(err, errNotRecorded) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", name, t.Name, err)
			}
			out = append(out, recording{name, t.Name, requests})
		}
	}
	return out, nil
}

// note says where an integration intends to differ from the client; see replay.Recordings.
type note struct {
	Differences []difference      `json:"differences,omitempty"`
	Without     map[string]string `json:"without,omitempty"`
}

type difference struct {
	Operation string `json:"operation,omitempty"`
	Test      string `json:"test,omitempty"`
	Request   int    `json:"request,omitempty"`
	At        string `json:"at"`
	Client    any    `json:"client,omitempty"`
	Ours      any    `json:"ours,omitempty"`
	Why       string `json:"why"`
}

const putParts = "The guide to resumable uploads sends their parts with PUT."

var notes = map[string]note{
	"google_drive": {
		Differences: []difference{
			{Operation: "upload_file", Test: "in parts", Request: 2, At: "method", Client: "POST", Ours: "PUT", Why: putParts},
			{Operation: "upload_file", Test: "in parts", Request: 3, At: "method", Client: "POST", Ours: "PUT", Why: putParts},
			{Operation: "replace_file", Test: "in parts", Request: 2, At: "method", Client: "POST", Ours: "PUT", Why: putParts},
			{Operation: "replace_file", Test: "in parts", Request: 3, At: "method", Client: "POST", Ours: "PUT", Why: putParts},
		},
		Without: map[string]string{"create_text_file": "The client sends up to 8 MiB in one request, together with what describes the file."},
	},
}

// hook has the values that hooks have in all tests; see replay.HookTest.
var hook = map[string]string{
	"url": "https://stepmill.example/service-hooks/token", "id": "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "secret": "hook-secret",
}

// hookInput is the input of what is done for a hook, beside the settings of the trigger.
type hookInput struct {
	Does string `json:"does"`
	Hook struct {
		URL    string `json:"url"`
		ID     string `json:"id"`
		Secret string `json:"secret"`
	} `json:"hook"`
	Subscription struct {
		ID         string `json:"id"`
		ResourceID string `json:"resourceId"`
	} `json:"subscription"`
}

// record does an operation with the answers of a test.
func (t test) record(do func(context.Context, *http.Client, []byte) error) ([]*request, error) {
	given := map[string]any{}
	maps.Copy(given, t.Input)
	if t.Cursor != nil {
		given["cursor"] = t.Cursor
	}
	if t.Does != "" {
		given["does"], given["subscription"], given["hook"] = t.Does, t.Subscription, hook
	}
	input, err := json.Marshal(t.withFiles(given))
	if err != nil {
		return nil, err
	}
	r := &recorder{test: t, requests: []*request{}}
	token := oauth2.StaticTokenSource(&oauth2.Token{AccessToken: accessToken})
	err = do(context.Background(), &http.Client{Transport: &oauth2.Transport{Source: token, Base: r}}, input)
	if errors.Is(err, errNotRecorded) {
		return nil, err
	}
	if (err != nil) != (t.Error != nil) {
		return nil, fmt.Errorf("the client's error is %v, that of the test %v", err, t.Error)
	}
	if len(r.requests) != len(t.Exchanges) {
		return nil, fmt.Errorf("the client sends %d requests, the test expects %d", len(r.requests), len(t.Exchanges))
	}
	return r.requests, nil
}

// file is a file in the input of a test.
type file struct {
	Name    string `json:"name"`
	Content []byte `json:"content"`
}

// withFiles replaces {$file: name} in an input.
func (t test) withFiles(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if name, ok := v["$file"].(string); ok {
			return file{name, t.content(name)}
		}
		out := map[string]any{}
		for name, member := range v {
			out[name] = t.withFiles(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = t.withFiles(item)
		}
		return out
	}
	return value
}

func (t test) content(name string) []byte {
	switch content := t.Files[name].(type) {
	case string:
		return []byte(content)
	case map[string]any:
		size, _ := content["size"].(int)
		return make([]byte, size)
	}
	return nil
}

// recorder takes the place of the servers: it sends the answers of a test, in their order.
type recorder struct {
	test     test
	requests []*request
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(in *http.Request) (*http.Response, error) {
	if len(r.requests) == len(r.test.Exchanges) {
		return nil, fmt.Errorf("no answer is left for %s %s", in.Method, in.URL)
	}
	given := r.test.Exchanges[len(r.requests)].Answer
	one, err := read(in)
	if err != nil {
		return nil, err
	}
	r.requests = append(r.requests, one)
	body, err := json.Marshal(given.JSON)
	if err != nil {
		return nil, err
	}
	if given.JSON == nil {
		body = []byte(given.Text)
	}
	if given.Status == 0 {
		given.Status = http.StatusOK
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if given.Status == http.StatusPermanentRedirect && in.Header.Get("X-GUploader-No-308") == "yes" { // so that no library takes it for a redirect
		given.Status = http.StatusOK
		header.Set("X-Http-Status-Code-Override", "308")
	}
	for name, value := range given.Headers {
		header.Set(name, value)
	}
	return &http.Response{StatusCode: given.Status, Request: in, Body: io.NopCloser(bytes.NewReader(body)), Header: header}, nil
}

// read returns a request as recordings have it. The client asks for JSON (alt) without
// spaces (prettyPrint), which is no part of the operations.
func read(in *http.Request) (*request, error) {
	out := &request{Method: in.Method, Headers: map[string]string{"authorization": in.Header.Get("Authorization")}, Query: map[string]any{}}
	for name, values := range in.URL.Query() {
		switch {
		case name == "alt" && values[0] == "json", name == "prettyPrint":
		case len(values) == 1:
			out.Query[name] = values[0]
		default:
			out.Query[name] = values
		}
	}
	url := *in.URL
	url.RawQuery = ""
	out.URL = url.String()
	if in.Body == nil {
		return out, nil
	}
	body, err := io.ReadAll(in.Body)
	if err != nil || len(body) == 0 {
		return out, err
	}
	switch {
	case strings.Contains(in.Header.Get("Content-Type"), "json"):
		out.JSON = bytes.TrimSpace(body)
	case len(body) > 10_000:
		out.Size = len(body)
	default:
		out.Text = string(body)
	}
	return out, nil
}

// write writes a request per line.
func write(dir string, n note, recordings []recording) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"client\": %q,\n  \"auth\": \"oauth2\",\n  \"secrets\": {\n    \"access_token\": %q\n  },\n", version(), accessToken)
	if n.Differences != nil {
		fmt.Fprintf(&out, "  \"differences\": [\n")
		for i, d := range n.Differences {
			fmt.Fprintf(&out, "    %s%s\n", encode(d), comma(i, len(n.Differences)))
		}
		out.WriteString("  ],\n")
	}
	if n.Without != nil {
		fmt.Fprintf(&out, "  \"without\": %s,\n", encode(n.Without))
	}
	out.WriteString("  \"recordings\": [\n")
	for i, one := range recordings {
		fmt.Fprintf(&out, "    {\"operation\":%s,\"test\":%s,\"requests\":[\n", encode(one.Operation), encode(one.Test))
		for j, request := range one.Requests {
			fmt.Fprintf(&out, "      %s%s\n", encode(request), comma(j, len(one.Requests)))
		}
		fmt.Fprintf(&out, "    ]}%s\n", comma(i, len(recordings)))
	}
	out.WriteString("  ]\n}\n")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "recordings.json"), out.Bytes(), 0o644)
}

func comma(i, count int) string {
	if i < count-1 {
		return ","
	}
	return ""
}

func encode(value any) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // it consists of texts and JSON
	}
	return bytes.TrimSpace(out.Bytes())
}

// version returns the name and the version of the client.
func version() string {
	const client = "google.golang.org/api"
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == client {
			return client + " " + strings.TrimPrefix(dependency.Version, "v")
		}
	}
	return client
}
