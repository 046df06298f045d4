package template

import (
	"encoding/json"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Type is what an input takes.
type Type string

// The types of inputs.
const (
	Connection Type = "connection" // the name of a connection
	Account    Type = "account"    // a value that the account of a connection has
	String     Type = "string"
	Text       Type = "text" // of several lines
	Number     Type = "number"
	Integer    Type = "integer"
	Email      Type = "email"
	URL        Type = "url"
	Choice     Type = "choice"
	Workflow   Type = "workflow" // the id of a workflow
)

var types = []Type{Connection, Account, String, Text, Number, Integer, Email, URL, Choice, Workflow}

var workflowID = regexp.MustCompile(`^wf_[0-9a-z]{26}$`)

// Input is something that people fill in to use a template.
type Input struct {
	Name  string `json:"name"`
	Type  Type   `json:"type"`
	Title string `json:"title"`
	Help  string `json:"help"`
	// Integration is that of a connection.
	Integration string `json:"integration"`
	// Services are the integrations that use a connection, sorted.
	Services []string `json:"-"`
	// Default is the value of an input that is left out. An input without one is required.
	Default json.RawMessage `json:"default"`
	Example string          `json:"example"`
	// Pattern is a regular expression that a string matches as a whole.
	Pattern string   `json:"pattern"`
	Options []Option `json:"options"`
	// Value is the type of an Account value that is no string: integer.
	Value string `json:"value"`
	// Lists says what lists the values of an input of the type Account.
	Lists *Listing `json:"-"`
}

// Option is a value to choose.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// Listing is an input of an operation or a trigger for which an input stands. Its values
// are listed from the account of a connection.
type Listing struct {
	// Operation or Trigger is set.
	Operation string
	Trigger   string
	// Input is its path in the operation or the trigger.
	Input string
	// Connection is the input that names the connection.
	Connection string
	// With has the other inputs of the operation or the trigger that stand for inputs of
	// the template, which their values may depend on.
	With map[string]string
}

// Required reports whether the input must be given.
func (in Input) Required() bool { return in.Default == nil }

var inputName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// declared returns what is wrong with the declaration of the input.
func (in Input) declared() error {
	isConnection, isChoice := in.Type == Connection, in.Type == Choice
	switch {
	case !inputName.MatchString(in.Name):
		return fmt.Errorf("the name of an input must match %s, not %q", inputName, in.Name)
	case !slices.Contains(types, in.Type):
		return fmt.Errorf("input %s: there is no type %q", in.Name, in.Type)
	case in.Title == "":
		return fmt.Errorf("input %s: the title is missing", in.Name)
	case isConnection != (in.Integration != ""):
		return fmt.Errorf("input %s: a connection, and nothing else, has an integration", in.Name)
	case isChoice != (len(in.Options) > 0):
		return fmt.Errorf("input %s: a choice, and nothing else, has options", in.Name)
	case in.Value != "" && (in.Type != Account || in.Value != "integer"):
		return fmt.Errorf("input %s: only the value of an account can be an integer", in.Name)
	}
	if _, err := regexp.Compile(in.Pattern); err != nil {
		return fmt.Errorf("input %s: %w", in.Name, err)
	}
	if in.Default == nil {
		return nil
	}
	if isConnection {
		return fmt.Errorf("input %s: a connection has no default", in.Name)
	}
	_, err := in.decode(in.Default)
	return err
}

// decode checks a value and returns it as a string, a number or a bool. The error names
// the input as a field of the request.
func (in Input) decode(raw json.RawMessage) (any, error) {
	value, err := strictjson.DecodeAny(raw)
	if err != nil {
		return nil, err
	}
	if value == nil {
		return nil, in.errorf("must not be null")
	}
	switch v := value.(type) {
	case string:
		if in.Type == Number || in.Type == Integer {
			return nil, in.errorf("must be a number")
		}
		return v, in.checkText(v)
	case int:
		return json.Number(strconv.Itoa(v)), in.checkNumber(true)
	case float64:
		return json.Number(strconv.FormatFloat(v, 'f', -1, 64)), in.checkNumber(false)
	case bool:
		if in.Type == Account {
			return v, nil
		}
	}
	return nil, in.errorf("must be %s", in.kind())
}

func (in Input) kind() string {
	switch in.Type {
	case Number, Integer:
		return "a number"
	case Account:
		return "a string, a number or true or false"
	}
	return "a string"
}

func (in Input) checkNumber(whole bool) error {
	switch {
	case in.Type == Integer && !whole:
		return in.errorf("must be a whole number")
	case in.Type == Account, in.Type == Number, in.Type == Integer:
		return nil
	}
	return in.errorf("must be %s", in.kind())
}

func (in Input) checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		if string(in.Default) == `""` {
			return nil
		}
		return in.errorf("must not be empty")
	case in.Type != Text && strings.ContainsAny(text, "\r\n"):
		return in.errorf("must be a single line")
	case strings.Contains(text, "${{"):
		return in.errorf("must not contain ${{: it would become an expression; add it in the builder")
	case in.Pattern != "" && !regexp.MustCompile(`^(?:`+in.Pattern+`)$`).MatchString(text):
		return in.errorf("must match %s%s", in.Pattern, in.suchAs())
	}
	switch in.Type {
	case Email:
		if address, err := mail.ParseAddress(text); err != nil || address.Address != text {
			return in.errorf("must be an email address%s", in.suchAs())
		}
	case URL:
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
			return in.errorf("must be a URL that begins with https:// or http://%s", in.suchAs())
		}
	case Workflow:
		if !workflowID.MatchString(text) {
			return in.errorf("must be the id of a workflow, such as wf_01m7f9hb3mevr88y42wdngtn4v")
		}
	case Choice:
		if !slices.ContainsFunc(in.Options, func(o Option) bool { return o.Value == text }) {
			return in.errorf("must be one of %s", in.optionValues())
		}
	}
	return nil
}

func (in Input) optionValues() string {
	values := make([]string, len(in.Options))
	for i, o := range in.Options {
		values[i] = o.Value
	}
	return strings.Join(values, ", ")
}

func (in Input) suchAs() string {
	if in.Example == "" {
		return ""
	}
	return ", such as " + in.Example
}

func (in Input) errorf(format string, args ...any) error {
	return fault.Field("/inputs/"+in.Name, format, args...)
}
