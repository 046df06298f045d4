package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"

	"github.com/stepmill/stepmill/internal/jsonpointer"
)

// readBody reads the body of a write within the limit of the plan.
func readBody(w http.ResponseWriter, r *http.Request, limits auth.Limits, merge bool) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	badMedia := checkMedia(r, merge)
	if badMedia != nil && r.ContentLength > 0 {
		return nil, badMedia
	}
	tooLarge := fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes that the plan allows", limits.RequestBodyBytes)
	if r.ContentLength > limits.RequestBodyBytes {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limits.RequestBodyBytes))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, fault.New(fault.InvalidRequest, "the body could not be read to its end").Because(err)
	case len(body) > 0 && badMedia != nil: // its length was not known before
		return nil, badMedia
	}
	return body, nil
}

func checkMedia(r *http.Request, merge bool) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.UnsupportedMediaType, "the body must not be compressed (Content-Encoding: %s)", clean(encoding))
	}
	given := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	known := media == "application/json" || merge && media == "application/merge-patch+json"
	if err != nil || !known || charset != "" && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.UnsupportedMediaType, "the body must be application/json, not %q", clean(given))
	}
	return nil
}

// clean keeps what a client sent short and printable.
func clean(text string) string {
	if len(text) > 100 {
		text = text[:100]
	}
	return strings.Map(func(r rune) rune {
		if unprintable(r) {
			return '?'
		}
		return r
	}, text)
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

const maxPointer = 200

// pointerTo is the part of a JSON pointer that leads to a member.
func pointerTo(name string) string {
	return short(jsonpointer.Of(name))
}

// decodeJSON reads a body strictly and says what is wrong with it.
func decodeJSON(body []byte, into any) error {
	err := strictjson.Decode(body, into)
	if err == nil {
		return nil
	}
	var problems strictjson.Errors
	if !errors.As(err, &problems) {
		return err
	}
	first := problems[0]
	if problems.Kind() == strictjson.Syntax {
		return fault.New(fault.InvalidJSON, "the body is not valid JSON: line %d, column %d: %s", first.Line, first.Column, first.Message)
	}
	refused := fault.New(fault.InvalidRequest, "%s", first.Message)
	if first.Pointer != "" {
		refused = fault.New(fault.InvalidRequest, "%s: %s", short(first.Pointer), first.Message)
	}
	for _, problem := range problems {
		refused.Details = append(refused.Details, fault.Detail{Pointer: short(problem.Pointer), Message: problem.Message})
	}
	return refused
}

// short cuts a pointer, but not in the middle of a character or an escape.
func short(pointer string) string {
	if len(pointer) <= maxPointer {
		return pointer
	}
	end := maxPointer
	for !utf8.RuneStart(pointer[end]) {
		end--
	}
	return strings.TrimRight(pointer[:end], "~") + "…"
}
