package template

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// resolveInputs finds the inputs in the source of the template, and what lists the
// values of those that an account has.
func (t *Template) resolveInputs(source []byte) error {
	declared := map[string]*Input{}
	for i := range t.Inputs {
		in := &t.Inputs[i]
		if err := in.declared(); err != nil {
			return err
		}
		if declared[in.Name] != nil {
			return fmt.Errorf("there are two inputs %s", in.Name)
		}
		declared[in.Name] = in
	}
	root, err := strictjson.DecodeAny(source)
	if err != nil {
		return err
	}
	t.places = map[string][]string{}
	scan := scan{declared: declared, places: t.places, used: map[string]bool{}}
	if err := scan.value(root, nil, user{}); err != nil {
		return err
	}
	for _, in := range t.Inputs {
		switch {
		case !scan.used[in.Name]:
			return fmt.Errorf("the source does not use the input %s", in.Name)
		case in.Type == Account && in.Lists == nil:
			return fmt.Errorf("input %s: no operation or trigger with a connection has it as an input of its own", in.Name)
		}
	}
	return nil
}

// scan looks for references in a source.
type scan struct {
	declared map[string]*Input
	places   map[string][]string
	used     map[string]bool
}

type user struct {
	operation, trigger string
	connection         string // the input with its connection
	with               map[string]any
}

func (s scan) value(value any, path []string, within user) error {
	switch v := value.(type) {
	case string:
		return s.text(v, path, within)
	case []any:
		for i, item := range v {
			if err := s.value(item, append(slices.Clone(path), strconv.Itoa(i)), within); err != nil {
				return err
			}
		}
	case map[string]any:
		if found, ok := userOf(v); ok {
			within = found
			s.serve(found)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if strings.Contains(name, "$(inputs") {
				return fmt.Errorf("%s: the name of a member cannot be an input", jsonpointer.Of(path...))
			}
			if err := s.value(v[name], append(slices.Clone(path), name), within); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve notes that a step or a trigger uses its connection.
func (s scan) serve(u user) {
	service, _, isService := strings.Cut(u.operation+u.trigger, ".")
	in := s.declared[u.connection]
	if in == nil || !isService || slices.Contains(in.Services, service) {
		return
	}
	in.Services = append(in.Services, service)
	slices.Sort(in.Services)
}

// userOf returns the step or the trigger that an object is.
func userOf(object map[string]any) (user, bool) {
	operation, isStep := object["uses"].(string)
	kind, _ := object["type"].(string)
	if !isStep && (kind == "" || object["id"] == nil) {
		return user{}, false
	}
	connection, _ := object["connection"].(string)
	with, _ := object["with"].(map[string]any)
	return user{operation: operation, trigger: kind, connection: whole(connection), with: with}, true
}

// whole returns the name of the input that is all of a text, or "".
func whole(text string) string {
	match := reference.FindStringSubmatch(text)
	if len(match) == 0 || match[0] != text {
		return ""
	}
	return match[1]
}

// insideExpression matches a reference within ${{ }}, or one whose value could become the
// beginning of an expression.
var insideExpression = regexp.MustCompile(`\$\{\{(?:[^}]|\}[^}])*\$\(inputs|[${]\$\(inputs`)

func (s scan) text(text string, path []string, within user) error {
	at := jsonpointer.Of(path...)
	found := reference.FindAllStringSubmatch(text, -1)
	switch {
	case strings.Count(text, "$(inputs") != len(found):
		return fmt.Errorf("%s: an input is written as $(inputs.name)", at)
	case found == nil:
		return nil
	case insideExpression.MatchString(text):
		return fmt.Errorf("%s: an input cannot be part of an expression: put it into a step of its own and read its output", at)
	case !mayRefer(path):
		return fmt.Errorf("%s: an input can only be used in with, request, connection, and the times of a trigger", at)
	}
	for _, match := range found {
		in := s.declared[match[1]]
		if in == nil {
			return fmt.Errorf("%s: there is no input %s", at, match[1])
		}
		s.used[in.Name] = true
		if !slices.Contains(s.places[at], in.Name) {
			s.places[at] = append(s.places[at], in.Name)
		}
		if in.Type == Account && in.Lists == nil && whole(text) != "" {
			in.Lists = within.listing(in.Name, path)
		}
	}
	return nil
}

// mayRefer reports whether the value at a path is plain text, and not an expression or
// code, in which a value would have to be quoted.
func mayRefer(path []string) bool {
	last := path[len(path)-1]
	switch last {
	case "connection", "every", "cron", "timezone":
		return true
	case "code":
		return false
	}
	return slices.Contains(path, "with") || slices.Contains(path, "request")
}

// listing returns what lists the values of an input that is used at a path.
func (u user) listing(name string, path []string) *Listing {
	at := slices.Index(path, "with")
	if at < 0 || u.connection == "" {
		return nil
	}
	out := &Listing{Operation: u.operation, Connection: u.connection, With: map[string]string{}}
	if u.operation == "" {
		out.Trigger = u.trigger
	}
	var members []string
	for _, member := range path[at+1:] {
		if _, err := strconv.Atoi(member); errors.Is(err, strconv.ErrSyntax) { // entries of lists have no part in it
			members = append(members, member)
		}
	}
	out.Input = strings.Join(members, "/")
	for member, value := range u.with {
		text, _ := value.(string)
		if other := whole(text); other != "" && other != name {
			out.With[member] = other
		}
	}
	return out
}

// TextValue returns the JSON of a value that was entered as text.
func (t *Template) TextValue(name, text string) json.RawMessage {
	for _, in := range t.Inputs {
		isNumber := in.Type == Number || in.Type == Integer || in.Value == "integer"
		if in.Name == name && isNumber && json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	quoted, _ := json.Marshal(text) // a string always has JSON
	return quoted
}
