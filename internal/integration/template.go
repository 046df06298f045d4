package integration

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stepmill/stepmill/internal/expr"
)

// Env has the values of the names that templates can read. Which of them a template
// can read depends on its place in the manifest.
type Env struct {
	Connection map[string]string // variables; an empty one counts as unset
	Secret     map[string]string
	Token      any // the access token; in learn, the token answer
	Test       any // the body of the answer to the test
	Callback   map[string]string
	// Status, Headers (in lower case) and Body are those of the answer that an
	// ErrorRule looks at.
	Status  int
	Headers map[string]string
	Body    any
	// More has the other names of operations: input, results, page …
	More map[string]any
	// Now is the time that now() returns.
	Now time.Time
}

func (e Env) values() *expr.Env {
	values := map[string]any{
		"connection": object(e.Connection), "secret": object(e.Secret), "token": e.Token, "test": e.Test,
		"callback": object(e.Callback), "status": e.Status, "headers": object(e.Headers), "body": e.Body,
	}
	maps.Copy(values, e.More)
	return &expr.Env{Values: values, Now: e.Now}
}

// Eval evaluates a bare expression. Nil is nil.
func (e Env) Eval(program *expr.Program) (any, error) {
	if program == nil {
		return nil, nil
	}
	return program.Eval(e.values(), answerBudget)
}

// EvalList evaluates a bare expression that returns a list. Nil is an empty one.
func (e Env) EvalList(program *expr.Program) ([]any, error) {
	return program.EvalList(e.values(), answerBudget)
}

// object returns the members that are not empty.
func object(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for name, value := range m {
		if value != "" {
			out[name] = value
		}
	}
	return out
}

// Template is a compiled text that may contain expressions. The zero value means
// that the manifest has none.
type Template struct {
	compiled *expr.Template
	custom   bool // a URL that may use http and have a port
}

// IsZero reports whether the manifest has no such template.
func (t Template) IsZero() bool { return t.compiled == nil }

// Source returns the text in the manifest.
func (t Template) Source() string {
	if t.compiled == nil {
		return ""
	}
	return t.compiled.Source()
}

// Reads reports whether the template reads a name, such as token or connection.shop, or
// a field of it.
func (t Template) Reads(name string) bool {
	return t.compiled != nil && slices.ContainsFunc(t.compiled.Names(), func(read string) bool {
		return read == name || strings.HasPrefix(read, name+".")
	})
}

// Variables returns the names of the connection's variables that the template
// reads.
func (t Template) Variables() []string {
	if t.compiled == nil {
		return nil
	}
	var out []string
	for _, name := range t.compiled.Names() {
		if variable, ok := strings.CutPrefix(name, "connection."); ok {
			out = append(out, variable)
		}
	}
	return out
}

// Eval renders the template. If it is a single expression, the result keeps its
// type.
func (t Template) Eval(env Env) (any, error) {
	if t.compiled == nil {
		return nil, nil
	}
	return t.compiled.Eval(env.values(), expr.Budget{})
}

// Text renders the template as text. It reports false if the template is a single
// expression that is nil, so that there is nothing to send.
func (t Template) Text(env Env) (string, bool, error) {
	value, err := t.Eval(env)
	switch value := value.(type) {
	case nil:
		return "", false, err
	case string:
		return value, true, nil
	case bool, int, float64:
		return fmt.Sprint(value), true, nil
	}
	return "", false, fmt.Errorf("%s is not text", t.Source())
}

// Derived returns the texts that expressions of the template make of secrets or of the
// token. An expression that fails makes none.
func (t Template) Derived(env Env) []string {
	if t.compiled == nil {
		return nil
	}
	values, err := t.compiled.EvalReading(env.values(), expr.Budget{}, func(name string) bool {
		return name == "token" || strings.HasPrefix(name, "secret.")
	})
	if err != nil {
		return nil
	}
	var out []string
	for _, value := range values {
		if text, ok := value.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

// URL renders the template as an https URL.
func (t Template) URL(env Env) (*url.URL, error) {
	text, _, err := t.Text(env)
	if err != nil {
		return nil, err
	}
	if t.custom {
		return url.Parse(text)
	}
	return parseURL(text)
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is not a URL", text)
	case u.Scheme != "https" || u.User != nil || u.Fragment != "" || !isHost(strings.ToLower(u.Host)):
		return nil, fmt.Errorf("%q is not an https URL with a host name", text)
	}
	return u, nil
}

// AuthSegment is what Apply.Path replaces in URLs.
const AuthSegment = "{auth}"

// Condition is a compiled condition.
type Condition struct{ compiled *expr.Program }

// IsZero reports whether there is no condition.
func (c Condition) IsZero() bool { return c.compiled == nil }

// Holds evaluates the condition. Nil is false.
func (c Condition) Holds(env Env) (bool, error) {
	if c.compiled == nil {
		return false, nil
	}
	return c.compiled.EvalBool(env.values(), expr.Budget{})
}
