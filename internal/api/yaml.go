package api

import (
	"context"
	"errors"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

const mediaYAML = "application/yaml"

// isYAML knows the registered name of YAML (RFC 9512) and the two that were
// used before there was one.
func isYAML(media string) bool {
	return slices.Contains([]string{mediaYAML, "application/x-yaml", "text/yaml"}, media)
}

// decodeYAML reads a body that is YAML by the rules for JSON, and remembers
// the document for the places of later problems.
func (r *request) decodeYAML(into any) error {
	document, err := strictyaml.Decode(r.body)
	if err == nil {
		r.document = document
		err = strictjson.DecodeBody(document.JSON, into)
		if written, ok := into.(interface{ keep(body []byte) }); ok {
			written.keep(r.body)
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
	return refusal(err, true)
}

// locatable is an answer that tells of places in the body.
type locatable interface{ locate(*strictyaml.Document) }

// located makes a call whose problems, in an error or in its answer, have the
// line and column that they have in the YAML of the body.
func (r *request) located(effect call) call {
	if r.document == nil {
		return effect
	}
	return func(ctx context.Context) (*reply, error) {
		answer, err := effect(ctx)
		if answer != nil {
			if body, ok := answer.body.(locatable); ok {
				body.locate(r.document)
			}
		}
		return answer, r.locate(err)
	}
}

func (r *request) locate(err error) error {
	f, ok := fault.As(err)
	if !ok || r.document == nil {
		return err
	}
	for i := range f.Details {
		detail := &f.Details[i]
		detail.Line, detail.Column, _ = r.document.At(detail.Pointer)
	}
	return err
}

// prefersYAML tells whether an Accept header ranks YAML above JSON.
func prefersYAML(accept string) bool {
	return quality(accept, mediaYAML) > quality(accept, "application/json")
}

// quality is the weight of a media type in an Accept header: that of the most
// specific range it is in, 0 if it is in none.
func quality(accept, media string) float64 {
	kind, _, _ := strings.Cut(media, "/")
	weight, precision := 0.0, 0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if isYAML(name) {
			name = mediaYAML
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

// showYAML answers with a document as YAML.
func showYAML(document any) (*reply, error) {
	text, err := strictjson.Encode(document)
	if err != nil {
		return nil, err
	}
	if text, err = strictyaml.Encode(text); err != nil {
		return nil, err
	}
	return (&reply{raw: text}).with("Content-Type", mediaYAML), nil
}
