package openapi_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/integration/openapi"
	"github.com/stepmill/stepmill/internal/operation"
	stepmill "github.com/stepmill/stepmill/openapi"
)

// Every operation of a manifest sends what kin-openapi accepts as a request to the document.
func TestRequestsFitTheDocument(t *testing.T) {
	t.Parallel()
	for name, document := range documents(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOracle(t, document, "")
			if problems := o.check(t, document); len(problems) > 0 {
				t.Errorf("%s", strings.Join(problems, "\n"))
			}
		})
	}
}

// The same for the API of Stepmill.
func TestRequestsFitTheAPI(t *testing.T) {
	t.Parallel()
	const server = "https://stepmill.example.com"
	o := newOracle(t, stepmill.YAML, server)
	o.excused = []string{"create_workspace", "evaluate_expression", "read_options"}
	o.texts = map[string]string{"type": "manual", "password": "correct horse battery", "new_password": "correct horse battery"}
	problems := o.check(t, stepmill.YAML)
	if len(problems) > 0 {
		t.Errorf("%s", strings.Join(problems, "\n"))
	}
	if o.checked < 200 {
		t.Errorf("only %d requests were accepted", o.checked)
	}
}

// oracle validates requests with kin-openapi.
type oracle struct {
	router  routers.Router
	server  string
	excused []string          // operations with members that need or exclude each other
	texts   map[string]string // samples by the name of their input
	checked int
}

func newOracle(t *testing.T, document []byte, server string) *oracle {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	if server != "" {
		doc.Servers = openapi3.Servers{{URL: server}}
	}
	router, err := legacy.NewRouter(doc, openapi3.DisableExamplesValidation())
	if err != nil {
		t.Fatal(err)
	}
	return &oracle{router: router, server: server}
}

// check sends each operation with its required inputs, and with all of them. It returns
// what is wrong with the requests.
func (o *oracle) check(t *testing.T, document []byte) []string {
	t.Helper()
	d, err := openapi.Read(document)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, one := range d.Operations() {
		result, err := d.Manifest(openapi.Options{ID: "x_oracle", Server: o.server, Operations: []string{one.Name}})
		if err != nil {
			if !strings.Contains(err.Error(), "none of the operations") {
				out = append(out, one.Name+": "+err.Error())
			}
			continue
		}
		for _, all := range []bool{false, true} {
			r, err := o.compose(t, result.Manifest, one.Name, all)
			if err == nil {
				err = o.validate(r)
			}
			if err != nil && !slices.Contains(o.excused, one.Name) {
				out = append(out, fmt.Sprintf("%s (all inputs: %t): %v", one.Name, all, err))
			}
		}
	}
	return out
}

func (o *oracle) validate(r *http.Request) error {
	route, params, err := o.router.FindRoute(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", r.Method, r.URL, err)
	}
	err = openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, Route: route, PathParams: params,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
	if err == nil {
		o.checked++
	}
	return err
}

// compose returns the request that an operation sends.
func (o *oracle) compose(t *testing.T, manifest []byte, name string, all bool) (*http.Request, error) {
	t.Helper()
	catalog, err := integration.Load(fstest.MapFS{"x_oracle/integration.yaml": {Data: manifest}})
	if err != nil {
		t.Fatal(err)
	}
	i, _ := catalog.Find("x_oracle")
	described, ok := i.FindOperation(name)
	if !ok {
		t.Fatalf("there is no operation %s", name)
	}
	variables := map[string]string{}
	for _, field := range i.Connection.Fields {
		variables[field.Name] = field.Default
	}
	sent := &wire{}
	entry := operation.NewActions(catalog, sent).Entry(i, described)
	input := map[string]any{}
	for n := range described.Input {
		if in := &described.Input[n]; in.Required || all && !isFree(in) || in.Default != nil {
			input[in.Name] = o.sample(in, all)
		}
	}
	if err := checkSchema(entry, input); err != nil {
		return nil, err
	}
	_, err = entry.Action.Run(t.Context(), action.Request{
		Input: input, MaskedInput: input, Now: time.Now(), Workspace: "test", IdempotencyKey: "key", Files: sent,
		Connection: &action.Connection{Name: "test", Integration: i.ConnectedAs(), Variables: variables},
		Mask:       func(output map[string]any) (map[string]any, error) { return output, nil },
		Log:        func(action.Level, string) {},
	})
	if sent.request == nil {
		return nil, fmt.Errorf("nothing is sent: %w", err)
	}
	return sent.request, nil
}

func checkSchema(entry action.Entry, input map[string]any) error {
	catalog, err := action.NewCatalog(entry)
	if err != nil {
		return err
	}
	for _, problem := range catalog.Check(entry.Spec.Name, input, func(string) bool { return false }) {
		return fmt.Errorf("the input %s: %s", problem.Pointer, problem.Message)
	}
	return nil
}

// sample returns a value for an input.
func (o *oracle) sample(in *integration.Input, all bool) any {
	switch {
	case in.Example != nil:
		return in.Example
	case in.Default != nil:
		return in.Default
	case in.Enum != nil:
		return in.Enum[0]
	case o.texts[in.Name] != "" && in.Type == "string":
		return o.texts[in.Name]
	}
	switch in.Type {
	case "integer":
		return int(number(in, 3))
	case "number":
		return number(in, 2.5)
	case "boolean":
		return true
	case "time":
		return "2026-01-31T09:00:00Z"
	case "file":
		return expr.NewFile(expr.File{ID: "file_1", Name: "a.bin", Type: "application/octet-stream", Size: int64(len(fileContent))})
	case "list":
		return []any{o.sample(in.Items, all)}
	case "object":
		if in.Properties == nil {
			return anything()
		}
		out := map[string]any{}
		for n := range in.Properties {
			if p := &in.Properties[n]; p.Required || all && !isFree(p) {
				out[p.Name] = o.sample(p, all)
			}
		}
		return out
	case "any":
		return anything()
	}
	if in.Pattern != "" {
		return rapid.StringMatching(in.Pattern).Example(1)
	}
	return cmp.Or(map[string]string{"email": "ada@example.com", "url": "https://example.com/a"}[in.Format], "text")
}

// isFree reports whether an input does not say what its values are made of. A sample would
// rarely fit.
func isFree(in *integration.Input) bool {
	return in.Type == "any" || in.Type == "object" && in.Properties == nil || in.Type == "list" && isFree(in.Items)
}

// anything is a value for what has no form of its own.
func anything() any { return map[string]any{"email": "ada@example.com"} }

func number(in *integration.Input, value float64) float64 {
	if in.Min != nil {
		value = max(value, *in.Min)
	}
	if in.Max != nil {
		value = min(value, *in.Max)
	}
	return value
}

const fileContent = "bytes"

// wire keeps the request that an operation sends, and has its files.
type wire struct{ request *http.Request }

// Do implements transfer.Client.
func (w *wire) Do(ctx context.Context, r egress.Request) (*egress.Response, error) {
	err := w.keep(ctx, r)
	return &egress.Response{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("{}"), URL: r.URL}, err
}

// Stream implements transfer.Client.
func (w *wire) Stream(ctx context.Context, r egress.Request) (*egress.Stream, error) {
	err := w.keep(ctx, r)
	return egress.NewStream(http.StatusOK, http.Header{}, r.URL, []byte("{}")), err
}

func (w *wire) keep(ctx context.Context, r egress.Request) error {
	body := r.Body
	if r.Upload != nil {
		upload, err := r.Upload()
		if err != nil {
			return err
		}
		defer func() { _ = upload.Close() }()
		if body, err = io.ReadAll(upload); err != nil {
			return err
		}
	}
	if _, err := url.Parse(r.URL); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), r.Method, r.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body == nil {
		request.Body = nil
	}
	request.Header = r.Header
	w.request = request
	return nil
}

// Create implements action.Files.
func (w *wire) Create(context.Context, action.NewFile) (action.FileWriter, error) {
	return nil, errors.New("nothing is stored")
}

// Open implements action.Files.
func (w *wire) Open(context.Context, *expr.File, int64) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(fileContent)), nil
}
