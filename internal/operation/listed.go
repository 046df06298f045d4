package operation

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/strictjson"
)

const (
	// maxLabel is the most characters of a label; longer ones are cut.
	maxLabel = 200
	// maxValue is the most bytes of a value: one that is longer is no choice.
	maxValue = 1 << 10
	// maxListing is the most bytes of a listing as JSON.
	maxListing = 512 << 10
)

// Option is an entry of a dropdown.
type Option struct {
	Value any // text, a number or a boolean
	Label string
}

// Member is a member of an object, such as a column.
type Member struct {
	Name, Title string
	Type        string // one of integration.InputTypes
	Required    bool
	Options     []Option // nil if any value will do
}

// describe says what the items of a list mean. What does not make sense is left out.
func (t listTarget) describe(env integration.Env, items []any) Listing {
	out := Listing{IsObject: t.input.Members != "", More: len(items) > maxListed}
	size, seen := 0, map[string]bool{}
	for _, item := range items[:min(len(items), maxListed)] {
		env.More["item"] = item
		if out.IsObject {
			if member, ok := memberOf(t.lister.Member, env); ok && !seen[member.Name] {
				seen[member.Name] = true
				out.Members, size = append(out.Members, member), size+member.size()
			}
		} else if option, ok := optionOf(t.lister.Option, t.input.Type, env); ok && !seen[fmt.Sprint(option.Value)] {
			seen[fmt.Sprint(option.Value)] = true
			out.Options, size = append(out.Options, option), size+option.size()
		}
		if size > maxListing {
			out.More = true
			break
		}
	}
	return out
}

// size returns about how many bytes the option needs as JSON.
func (o Option) size() int { return len(fmt.Sprint(o.Value)) + len(o.Label) + 32 }

func (m Member) size() int {
	size := len(m.Name) + len(m.Title) + 96
	for _, o := range m.Options {
		size += o.size()
	}
	return size
}

// optionOf returns the option that an item means.
func optionOf(o *integration.Option, inputType string, env integration.Env) (Option, bool) {
	value, err := env.Eval(o.Value)
	if err != nil {
		return Option{}, false
	}
	label, err := env.Eval(o.Label)
	if err != nil {
		label = nil // the value is enough to choose it
	}
	return newOption(value, label, inputType)
}

// newOption returns an option, unless the value cannot be one of an input of a type.
func newOption(value, label any, inputType string) (Option, bool) {
	text, ok := plainText(value)
	if !ok || text == "" || len(text) > maxValue {
		return Option{}, false
	}
	shown, _ := plainText(label)
	if shown = strings.TrimSpace(shown); shown == "" {
		shown = text
	}
	switch inputType {
	case "string", "time":
		value = text
	case "integer", "number":
		number, err := expr.FromJSON([]byte(text))
		if err != nil || !isNumber(number) {
			return Option{}, false
		}
		value = number
	}
	return Option{Value: value, Label: cut(shown, maxLabel)}, true
}

func isNumber(value any) bool {
	switch value.(type) {
	case int, float64:
		return true
	}
	return false
}

func plainText(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case int, float64, bool:
		encoded, err := strictjson.Encode(value)
		return string(encoded), err == nil
	}
	return "", false
}

func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// memberOf returns the member that an item means. Only its name is needed.
func memberOf(m *integration.Member, env integration.Env) (Member, bool) {
	text := func(value any, err error) string {
		out, _ := plainText(value)
		if err != nil {
			return ""
		}
		return out
	}
	out := Member{Name: text(env.Eval(m.Name)), Title: text(env.Eval(m.Title)), Type: text(env.Eval(m.Type))}
	if out.Name == "" || len(out.Name) > maxValue {
		return out, false
	}
	if out.Title = cut(strings.TrimSpace(out.Title), maxLabel); out.Title == "" {
		out.Title = cut(out.Name, maxLabel)
	}
	if !slices.Contains(integration.InputTypes(), out.Type) {
		out.Type = "any"
	}
	required, err := env.Eval(m.Required)
	out.Required = err == nil && required == true
	options, err := env.Eval(m.Options)
	if list, ok := options.([]any); err == nil && ok {
		out.Options = memberOptions(list)
	}
	return out, true
}

// memberOptions returns the values of a member: each a value, or an object with value and
// label.
func memberOptions(list []any) []Option {
	var out []Option
	seen := map[string]bool{}
	for _, one := range list[:min(len(list), maxListed)] {
		value, label := one, any(nil)
		if object, ok := one.(map[string]any); ok {
			value, label = object["value"], object["label"]
		}
		option, ok := newOption(value, label, "any")
		if text := fmt.Sprint(option.Value); ok && !seen[text] {
			seen[text] = true
			out = append(out, option)
		}
	}
	return out
}
