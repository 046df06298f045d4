package transport

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/suggest"
)

// request is a request with its body read.
type request struct {
	http   *http.Request
	route  match
	actor  auth.Actor
	body   []byte
	stream *BodyStream // in place of body
	yaml   bool        // the body is YAML
	// positions adds line and column to problems in a JSON body.
	positions bool
	// document is the decoded YAML body; nil if the body is JSON.
	document *strictyaml.Document
}

// binder fills the input struct of a route. Fields are tagged with where they
// come from: path:"id", query:"limit", header:"If-Match", body:"required" or
// body:"optional", body:"csv" for the bytes of a CSV file, body:"text" for those of an
// object in JSON or YAML that is kept as it is written, body:"document" for those of a JSON
// or YAML document that the handler reads, or body:"stream" for a *bodyStream. The tag yaml:"ok" also accepts a YAML body. Problems in YAML
// are reported with line and column; positions:"json" does the same for JSON.
// Anything that is not declared is rejected.
type binder struct {
	fields []boundField
	query  []string
	// wholeQuery is the index of a field with query:"*", which accepts any query.
	// It is for redirects whose parameters another service chooses.
	wholeQuery []int
	body       []int
	// needsBody rejects requests without a body.
	needsBody bool
	yaml      bool
	csv       bool // the body is a CSV file
	text      bool // the body is an object that is kept as it is written
	document  bool // the body is a document that the handler reads
	streams   bool // the handler reads the body
	positions bool
}

type boundField struct {
	index []int
	from  string
	name  string
}

func newBinder[In any](pattern string) *binder {
	b := &binder{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		if field.Anonymous {
			continue
		}
		if need, ok := field.Tag.Lookup("body"); ok {
			b.body, b.needsBody, b.yaml = field.Index, need == "required", field.Tag.Get("yaml") == "ok"
			b.csv, b.text, b.document, b.streams = need == "csv", need == "text", need == "document", need == "stream"
			b.yaml = b.yaml || b.text || b.document
			b.positions = field.Tag.Get("positions") == "json"
			continue
		}
		if field.Tag.Get("query") == "*" {
			b.wholeQuery = field.Index
			continue
		}
		b.addField(pattern, field)
	}
	return b
}

func (b *binder) addField(pattern string, field reflect.StructField) {
	for _, from := range []string{"path", "query", "header"} {
		name, ok := field.Tag.Lookup(from)
		if !ok {
			continue
		}
		if kind := field.Type.Kind(); kind != reflect.String && kind != reflect.Int && field.Type != reflect.TypeFor[*int]() {
			panic(fmt.Sprintf("%s: field %s must be a string, an int or a pointer to one", pattern, field.Name))
		}
		if from == "path" && !strings.Contains(pattern, "{"+name+"}") {
			panic(fmt.Sprintf("%s has no {%s}", pattern, name))
		}
		if from == "query" {
			b.query = append(b.query, name)
		}
		b.fields = append(b.fields, boundField{index: field.Index, from: from, name: name})
		return
	}
	panic(fmt.Sprintf("%s: field %s has no path, query, header or body tag", pattern, field.Name))
}

func (b *binder) bind(r *request, in any) error {
	value := reflect.ValueOf(in).Elem()
	raw := r.http.URL.RawQuery
	if b.wholeQuery != nil {
		given, _ := url.ParseQuery(raw) // as much as can be parsed
		value.FieldByIndex(b.wholeQuery).Set(reflect.ValueOf(given))
		raw = ""
	}
	query, err := b.parseQuery(raw)
	if err != nil {
		return err
	}
	for _, field := range b.fields {
		text := ""
		switch field.from {
		case "path":
			text = r.route.value(field.name)
		case "query":
			text = query[field.name]
		case "header":
			text = strings.Join(r.http.Header.Values(field.name), ",")
		}
		if err := set(value.FieldByIndex(field.index), field, text); err != nil {
			return err
		}
	}
	return b.bindBody(r, value)
}

func set(target reflect.Value, field boundField, text string) error {
	if target.Kind() == reflect.String {
		target.SetString(text)
		return nil
	}
	if text == "" {
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		return Parameter(field.name, "must be a whole number")
	}
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.ValueOf(&n))
		return nil
	}
	target.SetInt(int64(n))
	return nil
}

// Parameter returns an error about a query parameter, a path parameter or a
// header, which no JSON pointer can name.
func Parameter(name, format string, args ...any) error {
	return fault.New(fault.InvalidRequest, "%s: %s", Clean(name), fmt.Sprintf(format, args...))
}

// parseQuery parses the query. It rejects unknown and repeated names.
func (b *binder) parseQuery(raw string) (map[string]string, error) {
	if raw == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the query string of the URL is malformed")
	}
	out := make(map[string]string, len(values))
	for name, list := range values {
		switch {
		case !slices.Contains(b.query, name):
			return nil, Parameter(name, "unknown query parameter%s", suggest.Hint(name, b.query))
		case len(list) > 1:
			return nil, Parameter(name, "is given more than once")
		case list[0] == "":
			return nil, Parameter(name, "must not be empty")
		}
		out[name] = list[0]
	}
	return out, nil
}

func (b *binder) bindBody(r *request, value reflect.Value) error {
	if b.body == nil {
		// No body is expected, but an empty object is accepted.
		if len(r.body) > 0 {
			return r.decode(&struct{}{})
		}
		return nil
	}
	if b.streams {
		value.FieldByIndex(b.body).Set(reflect.ValueOf(r.stream))
		return nil
	}
	if b.text {
		r.positions = true
		if err := r.decode(&map[string]json.RawMessage{}); err != nil {
			return err
		}
	}
	if b.document && len(r.body) == 0 {
		return fault.New(fault.InvalidJSON, "the body is empty: send the document")
	}
	if b.csv || b.text || b.document {
		value.FieldByIndex(b.body).SetBytes(r.body)
		return nil
	}
	if len(r.body) == 0 && !b.needsBody {
		return nil
	}
	r.positions = b.positions
	return r.decode(value.FieldByIndex(b.body).Addr().Interface())
}
