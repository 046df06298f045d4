package trigger

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

// MaxFields limits the fields of a form, a query and a multipart body.
const MaxFields = 1000

// ParseBody decodes a body to an object according to its content type. A body
// without a content type is JSON if it is valid as such. A value that is not an
// object is wrapped in one.
//
//	JSON       {"a": 1}         {"a": 1}
//	JSON       [1, 2]           {"value": [1, 2]}
//	form       a=1&b=2&b=3      {"a": "1", "b": ["2", "3"]}
//	multipart  fields, files    {"a": "1", "file": {"filename", "content_type", "base64"}}
//	text       hello            {"value": "hello"}
//	other      bytes            {"base64": "…"}
//	nothing                     {}
func ParseBody(header http.Header, body []byte) (json.RawMessage, error) {
	if err := CheckEncoding(header); err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return json.RawMessage("{}"), nil
	}
	given := header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	if err != nil && given != "" {
		return nil, fault.New(fault.UnsupportedMediaType, "the Content-Type header of the body is invalid")
	}
	switch kindOf(media) {
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

// CheckEncoding rejects a body that is compressed.
func CheckEncoding(header http.Header) error {
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.UnsupportedMediaType, "the body must not be compressed")
	}
	return nil
}

// BringsFiles reports whether a body with a content type has files: a form with files,
// or anything that is neither text nor JSON.
func BringsFiles(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	kind := kindOf(media)
	return kind == multipartKind || kind == binaryKind
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

func kindOf(media string) bodyKind {
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
	if strings.Count(text, "&") >= MaxFields {
		return nil, ErrTooManyFields()
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "the body is not a valid form")
	}
	return strictjson.Encode(formValues(values))
}

// ErrTooManyFields returns the error for a body with more than MaxFields fields.
func ErrTooManyFields() error {
	return fault.New(fault.InvalidRequest, "the body has more than %d fields", MaxFields)
}

// formValues converts form values: one value to a string, several to a list.
func formValues(values url.Values) map[string]any {
	out := make(map[string]any, len(values))
	for name, list := range values {
		for _, value := range list {
			AddField(out, name, validText(value))
		}
	}
	return out
}

// AddField adds a field of a form to an object. Several fields with the same name become
// a list.
func AddField(out map[string]any, name string, value any) {
	name = validText(name)
	switch before := out[name].(type) {
	case nil:
		out[name] = value
	case []any:
		out[name] = append(before, value)
	default:
		out[name] = []any{before, value}
	}
}

func validText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// ParseQuery decodes the query of a URL to an object. It drops malformed parts.
func ParseQuery(raw string) map[string]any {
	if strings.Count(raw, "&") >= MaxFields {
		return map[string]any{}
	}
	values, _ := url.ParseQuery(raw)
	return formValues(values)
}

// HeaderValues converts headers to an object by their lower-case names. It leaves out
// credentials, connection headers and the given names.
func HeaderValues(header http.Header, without ...string) map[string]any {
	out := make(map[string]any, len(header))
	for name, values := range header {
		lower := strings.ToLower(name)
		if isPrivateHeader(lower, without) {
			continue
		}
		out[validText(lower)] = validText(strings.Join(values, ", "))
	}
	return out
}

func isPrivateHeader(name string, without []string) bool {
	switch name {
	case "authorization", "cookie", "proxy-authorization",
		"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade":
		return true
	}
	return slices.Contains(without, name)
}
