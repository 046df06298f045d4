package operation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"

	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// setBody sets the body of a request. Files in it are streamed.
func (e *execution) setBody(ctx context.Context, out *egress.Request, r *integration.Request) error {
	if text, ok := r.Raw.(string); ok {
		setType(out.Header, "text/plain; charset=utf-8")
		out.Body = []byte(text)
		return nil
	}
	body, mediaType, err := e.streamedBody(r)
	if err != nil {
		return err
	}
	if body != nil {
		if r.Multipart != nil {
			out.Header.Del("Content-Type") // of the manifest: it lacks the boundary
		}
		setType(out.Header, mediaType)
		e.chunk.cut(body).Attach(ctx, e.req.Files, out)
		return nil
	}
	given := out.Header.Get("Content-Type")
	if out.Body, err = r.EncodeBody(); given != "" {
		out.Header.Set("Content-Type", given)
	}
	return err
}

// streamedBody returns a body that can have files in it, and its type. It is nil if the
// request has another body, or none.
func (e *execution) streamedBody(r *integration.Request) (transfer.Body, string, error) {
	if r.Raw != nil {
		return e.source(r.Raw)
	}
	if r.Multipart != nil {
		parts, err := transfer.ParseParts(r.Multipart)
		if err != nil {
			return nil, "", err
		}
		return transfer.Multipart(parts)
	}
	if value, files := e.replaceFiles(r.JSON); files != nil {
		body, err := e.jsonWithFiles(value, files)
		return body, "application/json", err
	}
	return nil, "", nil
}

// setType sets the type of a body unless the manifest does.
func setType(header http.Header, mediaType string) {
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", mediaType)
	}
}

// source returns the bytes of a file or of a message, and their type.
func (e *execution) source(of any) (transfer.Body, string, error) {
	switch of := of.(type) {
	case *expr.File:
		return transfer.Body{{File: of}}, of.Type, nil
	case integration.Message:
		message, err := transfer.ParseMessage(of.Members)
		if err != nil {
			return nil, "", err
		}
		message.Key, message.Date = e.key(), e.req.Began
		body, err := message.Body()
		return body, "message/rfc822", err
	}
	return nil, "", errors.New("the body must be text, a file or a message")
}

// embedded is what stands in JSON as base64, with the text that stands for it until it is
// sent.
type embedded struct {
	placeholder string
	integration.Base64
}

// replaceFiles replaces what is sent as base64 inside a value by placeholders.
func (e *execution) replaceFiles(value any) (any, []embedded) {
	var found []embedded
	var replace func(v any) any
	replace = func(v any) any {
		switch v := v.(type) {
		case integration.Base64:
			sum := sha256.Sum256([]byte(e.req.IdempotencyKey + "/" + strconv.Itoa(len(found))))
			found = append(found, embedded{hex.EncodeToString(sum[:]), v})
			return found[len(found)-1].placeholder
		case map[string]any:
			out := make(map[string]any, len(v))
			for name, member := range v {
				out[name] = replace(member)
			}
			return out
		case []any:
			out := make([]any, len(v))
			for i, item := range v {
				out[i] = replace(item)
			}
			return out
		}
		return v
	}
	replaced := replace(value)
	return replaced, found
}

// jsonWithFiles returns a JSON body in which files are encoded while they are sent.
func (e *execution) jsonWithFiles(value any, files []embedded) (transfer.Body, error) {
	encoded, err := strictjson.Encode(value)
	if err != nil {
		return nil, err
	}
	var body transfer.Body
	for len(files) > 0 {
		first, at := 0, -1
		for i, f := range files { // in the order in which they stand in the text
			if index := bytes.Index(encoded, []byte(f.placeholder)); at < 0 || index < at {
				first, at = i, index
			}
		}
		f := files[first]
		source, _, err := e.source(f.Of)
		if err != nil {
			return nil, err
		}
		before := append(bytes.Clone(encoded[:at]), f.Prefix...)
		body = append(body, transfer.Segment{Data: before}, transfer.Segment{Body: source, Encoding: transfer.Base64})
		encoded, files = encoded[at+len(f.placeholder):], append(files[:first:first], files[first+1:]...)
	}
	return append(body, transfer.Segment{Data: encoded}), nil
}
