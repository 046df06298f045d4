package transport

import (
	"errors"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// The media types of bodies beside JSON.
const (
	MediaYAML = "application/yaml"
	MediaCSV  = "text/csv"
)

// isYAML reports whether a media type is YAML: the registered name (RFC 9512) or
// one of the two older ones.
func isYAML(media string) bool {
	return slices.Contains([]string{MediaYAML, "application/x-yaml", "text/yaml"}, media)
}

// decodeYAML decodes a YAML body by the rules for JSON. It keeps the document to
// find the positions of later problems.
func (r *request) decodeYAML(into any) error {
	document, err := strictyaml.Decode(r.body)
	if err == nil {
		r.document = document
		err = strictjson.DecodeBody(document.JSON, into)
		if receiver, ok := into.(interface{ SetYAML(body []byte) }); ok {
			receiver.SetYAML(r.body)
		}
		problems, _ := errors.AsType[strictjson.Errors](err)
		for _, problem := range problems {
			find := document.At
			if problem.Key {
				find = document.KeyAt
			}
			problem.Line, problem.Column, _ = find(problem.Pointer)
		}
	}
	return decodeError(err, true, true)
}

// locatable is a response that refers to positions in the request body.
type locatable interface{ Locate(*strictyaml.Document) }

func (r *request) locate(response *Reply) {
	if response == nil || r.document == nil {
		return
	}
	if body, ok := response.Body.(locatable); ok {
		body.Locate(r.document)
	}
}

// addPositions adds line and column to the problems of an error, except to those
// that already have a position in a text inside the body.
func (r *request) addPositions(err error) error {
	f, ok := fault.As(err)
	if !ok || r.document == nil && !r.positions {
		return err
	}
	var pointers []string
	for _, detail := range f.Details {
		pointers = append(pointers, detail.Pointer)
	}
	for i, position := range r.positionsOf(pointers) {
		if detail := &f.Details[i]; detail.Line == 0 {
			detail.Line, detail.Column = position.Line, position.Column
		}
	}
	return err
}

func (r *request) positionsOf(pointers []string) []strictjson.Place {
	if r.document == nil {
		return strictjson.Locate(r.body, pointers)
	}
	positions := make([]strictjson.Place, len(pointers))
	for i, pointer := range pointers {
		positions[i].Line, positions[i].Column, _ = r.document.At(pointer)
	}
	return positions
}

// PrefersYAML reports whether an Accept header ranks YAML above JSON.
func PrefersYAML(accept string) bool {
	return quality(accept, MediaYAML) > quality(accept, "application/json")
}

// quality returns the weight of a media type in an Accept header: that of the most
// specific matching range, or 0.
func quality(accept, media string) float64 {
	kind, _, _ := strings.Cut(media, "/")
	weight, precision := 0.0, 0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if isYAML(name) {
			name = MediaYAML
		}
		matched := slices.Index([]string{"*/*", kind + "/*", media}, name) + 1
		q := 1.0
		if text, given := params["q"]; given {
			q, err = strconv.ParseFloat(text, 64)
		}
		if matched < max(1, precision) || err != nil || !(q >= 0 && q <= 1) {
			continue
		}
		if matched > precision || q > weight {
			weight, precision = q, matched
		}
	}
	return weight
}

// YAML responds with a document as YAML.
func YAML(document any) (*Reply, error) {
	text, err := strictjson.Encode(document)
	if err != nil {
		return nil, err
	}
	if text, err = strictyaml.Encode(text); err != nil {
		return nil, err
	}
	return (&Reply{Raw: text}).WithHeader("Content-Type", MediaYAML), nil
}
