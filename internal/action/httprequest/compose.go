package httprequest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/action/transfer"
	"github.com/stepmill/stepmill/internal/egress"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

func compose(ctx context.Context, req action.Request) (egress.Request, error) {
	in := req.Input
	target, err := addQuery(in)
	if err != nil {
		return egress.Request{}, err
	}
	call := egress.Request{Workspace: req.Workspace, URL: target, Header: http.Header{}, FollowRedirects: in["follow_redirects"] != false}
	call.Method, _ = in["method"].(string)
	if err := setBody(ctx, &call, req); err != nil {
		return egress.Request{}, err
	}
	if err := transfer.Complete(&call, req); err != nil {
		return egress.Request{}, err
	}
	return call, nil
}

func addQuery(in map[string]any) (string, error) {
	text, _ := in["url"].(string)
	added, err := parseFields("query", in["query"])
	if err != nil || len(added) == 0 {
		return text, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("url: is not valid")
	}
	query := added.Encode()
	if u.RawQuery != "" {
		query = u.RawQuery + "&" + query
	}
	u.RawQuery = query
	return u.String(), nil
}

// givenBodies returns the members of an input that have a body, of which only one may
// be given.
func givenBodies(in map[string]any) []string {
	return slices.DeleteFunc([]string{"body", "form", "xml", "multipart"}, func(name string) bool { return in[name] == nil })
}

// setBody sets the body of a request and its Content-Type. A body with files is streamed.
func setBody(ctx context.Context, call *egress.Request, req action.Request) (err error) {
	if f, ok := req.Input["body"].(*expr.File); ok {
		call.Header.Set("Content-Type", f.Type)
		transfer.Body{{File: f}}.Attach(ctx, req.Files, call)
		return nil
	}
	given, ok := req.Input["multipart"].(map[string]any)
	if !ok {
		call.Body, err = encodeBody(req.Input, call.Header)
		return err
	}
	parts, err := transfer.ParseParts(given)
	if err != nil {
		return err
	}
	body, mediaType, err := transfer.Multipart(parts)
	if err != nil {
		return err
	}
	call.Header.Set("Content-Type", mediaType)
	body.Attach(ctx, req.Files, call)
	return nil
}

// encodeBody encodes the body as text, XML, a form or JSON, and sets its Content-Type.
func encodeBody(in map[string]any, header http.Header) ([]byte, error) {
	if document, ok := in["xml"].(string); ok {
		header.Set("Content-Type", "application/xml; charset=utf-8")
		return []byte(document), nil
	}
	if form, ok := in["form"]; ok && form != nil {
		fields, err := parseFields("form", form)
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		return []byte(fields.Encode()), err
	}
	switch body := in["body"].(type) {
	case nil:
		return nil, nil
	case string:
		header.Set("Content-Type", "text/plain; charset=utf-8")
		return []byte(body), nil
	default:
		header.Set("Content-Type", "application/json")
		return strictjson.Encode(body)
	}
}

// parseFields reads an object of scalars and lists of scalars. It omits nulls.
func parseFields(where string, object any) (url.Values, error) {
	fields, _ := object.(map[string]any)
	out := url.Values{}
	for name, value := range fields {
		list, ok := value.([]any)
		if !ok {
			list = []any{value}
		}
		for _, item := range list {
			if item == nil {
				continue
			}
			text, err := transfer.Scalar(item)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", where, name, err)
			}
			out.Add(name, text)
		}
	}
	return out, nil
}
