package integration

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Request is a call with its templates rendered. Where URLs have {auth}, the credential
// inserts itself.
type Request struct {
	Method string
	URL    string
	Header http.Header
	// At most one of these is the body. JSON may contain [Base64], which EncodeBody does
	// not encode, and Multipart and Raw may be or contain files.
	JSON      any
	Form      url.Values
	Multipart map[string]any
	Raw       any
}

// Render renders a call.
func (i *Integration) Render(call *Call, env Env) (*Request, error) {
	target, err := i.url(call, env)
	if err != nil {
		return nil, err
	}
	out := &Request{Method: call.Method, URL: target, Header: http.Header{}}
	if call.Response == ResponseJSON {
		out.Header.Set("Accept", "application/json")
	}
	if !call.NoAuth {
		if err := i.SetHeaders(out.Header, env); err != nil {
			return nil, err
		}
	}
	headers, err := call.Headers.evalObject(env)
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	for name, value := range headers {
		text, err := scalar(value)
		if err != nil {
			return nil, fmt.Errorf("the header %s %w", name, err)
		}
		out.Header.Set(name, text)
	}
	if err := out.renderBody(call, env); err != nil {
		return nil, err
	}
	return out, nil
}

func (r *Request) renderBody(call *Call, env Env) (err error) {
	switch {
	case call.GraphQL != "":
		query := map[string]any{"query": call.GraphQL}
		variables, err := call.Variables.evalObject(env)
		if variables != nil {
			query["variables"] = variables
		}
		r.JSON = query
		return err
	case call.JSON != nil:
		r.JSON, err = call.JSON.Eval(env)
		return err
	case call.Form != nil:
		fields, err := call.Form.evalObject(env)
		if err != nil {
			return fmt.Errorf("form: %w", err)
		}
		r.Form, err = parameters(fields)
		return err
	case call.Multipart != nil:
		r.Multipart, err = call.Multipart.evalObject(env)
		if r.Multipart == nil {
			r.Multipart = map[string]any{}
		}
		return err
	case call.Raw != nil:
		r.Raw, err = call.Raw.Eval(env)
		return err
	}
	return nil
}

// EncodeBody returns a body that is JSON or a form, and sets its Content-Type. Without
// a body it returns nil.
func (r *Request) EncodeBody() ([]byte, error) {
	switch {
	case r.Form != nil:
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return []byte(r.Form.Encode()), nil
	case r.JSON != nil:
		r.Header.Set("Content-Type", "application/json")
		return strictjson.Encode(r.JSON)
	}
	return nil, nil
}

// SetHeaders sets the headers that every call has.
func (i *Integration) SetHeaders(into http.Header, env Env) error {
	for name, template := range i.Headers {
		text, ok, err := template.Text(env)
		if err != nil {
			return err
		}
		if ok {
			into.Set(name, text)
		}
	}
	return nil
}

func (i *Integration) url(call *Call, env Env) (string, error) {
	target, err := i.target(call, env)
	if err != nil {
		return "", err
	}
	fields, err := call.Query.evalObject(env)
	if err != nil {
		return "", fmt.Errorf("query: %w", err)
	}
	added, err := parameters(fields)
	if err != nil {
		return "", err
	}
	if len(added) > 0 {
		query := target.Query()
		maps.Copy(query, added)
		target.RawQuery = query.Encode()
	}
	return target.String(), nil
}

// target returns the URL of a call without its query.
func (i *Integration) target(call *Call, env Env) (*url.URL, error) {
	switch {
	case call.URL.custom:
		return call.URL.URL(env)
	case !call.URL.IsZero():
		text, ok, err := call.URL.Text(env)
		if err != nil {
			return nil, err
		}
		if !ok || text == "" {
			return nil, errors.New("the service has not told the URL")
		}
		return parseURL(text)
	}
	base, _, err := i.BaseURL.Text(env)
	if err != nil {
		return nil, err
	}
	path, err := call.Path.Text(env)
	if err != nil {
		return nil, err
	}
	return parseURL(strings.TrimSuffix(base, "/") + path)
}
