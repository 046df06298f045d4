package transport

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// read reads the request body within the limit of the endpoint.
func (r *request) read(e *Endpoint, reserved *Reservation) error {
	if e.streams {
		return r.openStream()
	}
	if r.http.Body == nil || r.http.Body == http.NoBody {
		return nil
	}
	media, badMedia := checkMedia(r.http, e)
	r.yaml = isYAML(media)
	if badMedia != nil {
		return r.rejectAny(badMedia, reserved)
	}
	limit := e.bodyBytes(r.actor)
	body, err := readBody(r.http, limit, reserved, fault.New(fault.PayloadTooLarge, "the body is larger than the %d bytes that %s", limit, e.limitText()))
	r.body = body
	return err
}

// rejectAny returns badMedia if there is a body. If its length is unknown, the
// first byte shows it.
func (r *request) rejectAny(badMedia error, reserved *Reservation) error {
	if r.http.ContentLength > 0 {
		return badMedia
	}
	_, err := readBody(r.http, 0, reserved, badMedia)
	return err
}

// checkMedia returns the media type of the body, or an error if the endpoint does not accept it.
func checkMedia(r *http.Request, e *Endpoint) (media string, err error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", fault.New(fault.UnsupportedMediaType, "the body must not be compressed (Content-Encoding: %s)", Clean(encoding))
	}
	given := r.Header.Get("Content-Type")
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	known := media == "application/json" || e.Method == http.MethodPatch && media == "application/merge-patch+json" || e.yaml && isYAML(media)
	if e.csv {
		known = media == MediaCSV
	}
	if err == nil && known && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		return media, nil
	}
	wanted := "application/json"
	switch {
	case e.csv:
		wanted = MediaCSV
	case e.yaml:
		wanted += " or " + MediaYAML
	}
	return "", fault.New(fault.UnsupportedMediaType, "the body must be %s, not %q", wanted, Clean(given))
}

// Clean shortens text from a client and makes it printable.
func Clean(text string) string {
	return printable(text[:min(len(text), 100)])
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if Unprintable(r) {
			return '?'
		}
		return r
	}, text)
}

// Unprintable reports whether a character is not printable ASCII.
func Unprintable(r rune) bool { return r < ' ' || r > '~' }

const maxPointer = 200

// decode decodes the body strictly and reports every problem it finds.
func (r *request) decode(into any) error {
	if r.yaml {
		return r.decodeYAML(into)
	}
	return decodeError(strictjson.DecodeBody(r.body, into), false, r.positions)
}

// decodeError turns decoding problems into an API error. Problems carry a JSON
// pointer and, in YAML or with positions set, line and column.
func decodeError(err error, isYAML, positions bool) error {
	var problems strictjson.Errors
	if !errors.As(err, &problems) {
		return err
	}
	first := problems[0]
	if problems.Kind() == strictjson.Syntax && !isYAML && !positions {
		return fault.New(fault.InvalidJSON, "the body is not valid JSON: line %d, column %d: %s", first.Line, first.Column, first.Message)
	}
	out := fault.New(fault.InvalidRequest, "%s", first.Message)
	if first.Pointer != "" {
		out = fault.New(fault.InvalidRequest, "%s: %s", fault.Shorten(first.Pointer, maxPointer), first.Message)
	}
	if problems.Kind() == strictjson.Syntax {
		language := "JSON"
		if isYAML {
			language = "YAML"
		}
		out = fault.New(fault.InvalidJSON, "the body is not valid %s: line %d, column %d: %s", language, first.Line, first.Column, first.Message)
	}
	for _, problem := range problems {
		detail := fault.Detail{Pointer: fault.Shorten(problem.Pointer, maxPointer), Message: problem.Message}
		if isYAML || positions {
			detail.Line, detail.Column = problem.Line, problem.Column
		}
		out.Details = append(out.Details, detail)
	}
	return out
}
