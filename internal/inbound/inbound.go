// Package inbound owns reading what strangers send to a hook: it makes values
// for expressions of a body in any of the usual formats, of headers and of a
// query. It is bounded like everything that reads from outside, and knows
// neither who sent a request nor what it starts.
package inbound

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// maxFields bounds the fields of a form, a query and a multipart body.
const maxFields = 1000

// Payload makes an object of a body. What the body is follows from its content
// type; one without is JSON if it can be read as such. A value that is no object
// is the value of one.
//
//	JSON       {"a": 1}         {"a": 1}
//	JSON       [1, 2]           {"value": [1, 2]}
//	form       a=1&b=2&b=3      {"a": "1", "b": ["2", "3"]}
//	multipart  fields, files    {"a": "1", "file": {"filename", "content_type", "base64"}}
//	text       hello            {"value": "hello"}
//	other      bytes            {"base64": "…"}
//	nothing                     {}
func Payload(header http.Header, body []byte) (json.RawMessage, error) {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, fault.New(fault.UnsupportedMediaType, "the body must not be compressed")
	}
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	given := header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	if err != nil && given != "" {
		return nil, fault.New(fault.UnsupportedMediaType, "the content type of the body cannot be read")
	}
	switch kind(media) {
	case jsonKind:
		return readJSON(body)
	case formKind:
		return readForm(string(body))
	case multipartKind:
		return readMultipart(body, params["boundary"])
	case textKind:
		return readText(body)
	case binaryKind:
		return readBinary(body)
	}
	if payload, err := readJSON(body); err == nil {
		return payload, nil
	}
	return readText(body)
}

type bodyKind int

const (
	unknownKind bodyKind = iota
	jsonKind
	formKind
	multipartKind
	textKind
	binaryKind
)

func kind(media string) bodyKind {
	family, _, _ := strings.Cut(media, "/")
	switch {
	case media == "":
		return unknownKind
	case media == "application/json", strings.HasSuffix(media, "+json"), media == "text/json":
		return jsonKind
	case media == "application/x-www-form-urlencoded":
		return formKind
	case media == "multipart/form-data":
		return multipartKind
	case family == "text", strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "+yaml"):
		return textKind
	}
	switch media {
	case "application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/graphql",
		"application/x-ndjson", "application/jsonl", "application/sql", "application/toml":
		return textKind
	}
	return binaryKind
}

func readJSON(body []byte) (json.RawMessage, error) {
	if err := strictjson.Check(body); err != nil {
		return nil, fault.New(fault.InvalidJSON, "the body is not valid JSON")
	}
	for _, c := range body {
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{':
			return body, nil
		}
		break
	}
	return strictjson.Encode(map[string]any{"value": json.RawMessage(body)})
}

func readText(body []byte) (json.RawMessage, error) {
	if !utf8.Valid(body) {
		return readBinary(body)
	}
	return strictjson.Encode(map[string]any{"value": string(body)})
}

func readBinary(body []byte) (json.RawMessage, error) {
	return strictjson.Encode(map[string]any{"base64": body})
}

func readForm(text string) (json.RawMessage, error) {
	if strings.Count(text, "&") >= maxFields {
		return nil, tooMany()
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the body is not a well-formed form")
	}
	return strictjson.Encode(fields(values))
}

func tooMany() error {
	return fault.New(fault.InvalidRequest, "the body has more than %d fields", maxFields)
}

// fields shows what is there once as text, and what is there several times as a
// list.
func fields(values url.Values) map[string]any {
	out := make(map[string]any, len(values))
	for name, list := range values {
		for _, value := range list {
			add(out, clean(name), clean(value))
		}
	}
	return out
}

func add(out map[string]any, name string, value any) {
	switch before := out[name].(type) {
	case nil:
		out[name] = value
	case []any:
		out[name] = append(before, value)
	default:
		out[name] = []any{before, value}
	}
}

func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Query makes an object of the query of a URL. What is not well-formed in it is
// left out.
func Query(raw string) map[string]any {
	if strings.Count(raw, "&") >= maxFields {
		return map[string]any{}
	}
	values, _ := url.ParseQuery(raw)
	return fields(values)
}

// Headers makes an object of headers by their lower-case names, without those
// that carry credentials, those that are about the connection, and those named.
func Headers(header http.Header, without ...string) map[string]any {
	out := make(map[string]any, len(header))
	for name, values := range header {
		lower := strings.ToLower(name)
		if private(lower, without) {
			continue
		}
		out[clean(lower)] = clean(strings.Join(values, ", "))
	}
	return out
}

func private(name string, without []string) bool {
	switch name {
	case "authorization", "cookie", "proxy-authorization",
		"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return slices.Contains(without, name)
}
