package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/expr"
)

// Value is JSON whose strings may contain expressions.
type Value struct {
	template *expr.Template // of a string
	members  []member       // of an object, ordered by name
	items    []*Value       // of a list
	each     *expr.Program  // of an object {$each: list, as: value}
	as       *Value
	base64   *Value // of an object {$base64: file, prefix: text}
	prefix   string
	mime     *Value // of an object {$mime: message}
	constant any
}

type member struct {
	name  string
	value *Value
}

// Base64 is a file or a [Message] whose bytes are sent as a string inside JSON, after a
// prefix.
type Base64 struct {
	Of     any
	Prefix string
}

// Message describes an e-mail message that is composed while it is sent.
type Message struct{ Members map[string]any }

// Eval renders the value. A member of an object that the manifest writes is left out if
// it is nil. Objects and lists that an expression returns stay as they are.
func (v *Value) Eval(env Env) (any, error) { return v.eval(env.values()) }

func (v *Value) eval(env *expr.Env) (any, error) {
	switch {
	case v.template != nil:
		return v.template.Eval(env, answerBudget)
	case v.members != nil:
		out := make(map[string]any, len(v.members))
		for _, m := range v.members {
			value, err := m.value.eval(env)
			if err != nil {
				return nil, err
			}
			if value != nil {
				out[m.name] = value
			}
		}
		return out, nil
	case v.items != nil:
		out := make([]any, len(v.items))
		for i, item := range v.items {
			var err error
			if out[i], err = item.eval(env); err != nil {
				return nil, err
			}
		}
		return out, nil
	case v.each != nil:
		return v.evalEach(env)
	case v.base64 != nil:
		return v.evalBase64(env)
	case v.mime != nil:
		members, err := v.mime.eval(env)
		object, _ := members.(map[string]any)
		return Message{object}, err
	}
	return v.constant, nil
}

// evalEach renders the value for each item of a list. Nil is no list.
func (v *Value) evalEach(env *expr.Env) (any, error) {
	value, err := v.each.Eval(env, answerBudget)
	if value == nil || err != nil {
		return nil, err
	}
	list, isList := value.([]any)
	if !isList {
		return nil, fmt.Errorf("$each needs a list, not %T", value)
	}
	out := make([]any, len(list))
	for i, item := range list {
		inner := *env
		inner.Values = maps.Clone(env.Values)
		inner.Values[itemName] = item
		if out[i], err = v.as.eval(&inner); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (v *Value) evalBase64(env *expr.Env) (any, error) {
	value, err := v.base64.eval(env)
	if value == nil || err != nil {
		return nil, err
	}
	switch value.(type) {
	case *expr.File, Message:
		return Base64{value, v.prefix}, nil
	}
	return nil, errors.New("$base64 needs a file, or an object with $mime")
}

// answerBudget bounds the evaluation of an expression. Responses of services are larger
// than what workflows usually pass on.
var answerBudget = expr.Budget{Steps: 4 << 20, Memory: 48 << 20, Result: 8 << 20}

// Members that mark an object as something else: a value for each item of a list, a file
// inside JSON, or an e-mail message.
const (
	eachMember   = "$each"
	base64Member = "$base64"
	mimeMember   = "$mime"
)

// itemName is the item of the list in a value for each of them.
const itemName = "item"

func (p *parser) value(pointer string, source any, scope *expr.Scope) *Value {
	switch source := source.(type) {
	case string:
		compiled, err := scope.CompileTemplate(source, nil)
		if err != nil {
			p.invalid(pointer, source, err)
		}
		return &Value{template: compiled}
	case map[string]any:
		if source[eachMember] != nil {
			return p.each(pointer, source, scope)
		}
		if source[base64Member] != nil {
			return p.base64(pointer, source, scope)
		}
		if source[mimeMember] != nil {
			return p.mime(pointer, source, scope)
		}
		out := &Value{members: []member{}}
		for _, name := range slices.Sorted(maps.Keys(source)) {
			out.members = append(out.members, member{name, p.value(at(pointer, name), source[name], scope)})
		}
		return out
	case []any:
		out := &Value{items: []*Value{}}
		for i, item := range source {
			out.items = append(out.items, p.value(at(pointer, strconv.Itoa(i)), item, scope))
		}
		return out
	}
	return &Value{constant: source}
}

func (p *parser) each(pointer string, source map[string]any, scope *expr.Scope) *Value {
	list, ok := source[eachMember].(string)
	if !ok || source["as"] == nil || len(source) > 2 {
		p.failf(pointer, "needs %s, an expression that returns a list, and as, the value for each item", eachMember)
		return &Value{}
	}
	return &Value{
		each: p.program(at(pointer, eachMember), list, scope),
		as:   p.value(at(pointer, "as"), source["as"], scope.With(itemName)),
	}
}

func (p *parser) base64(pointer string, source map[string]any, scope *expr.Scope) *Value {
	out := &Value{base64: p.value(at(pointer, base64Member), source[base64Member], scope)}
	for name, value := range source {
		text, isText := value.(string)
		switch {
		case name == base64Member:
		case name == "prefix" && isText:
			out.prefix = text
		default:
			p.failf(at(pointer, name), "an object with %s has no other member than a prefix", base64Member)
		}
	}
	return out
}

func (p *parser) mime(pointer string, source map[string]any, scope *expr.Scope) *Value {
	pointer = at(pointer, mimeMember)
	members, ok := source[mimeMember].(map[string]any)
	if !ok || len(source) > 1 {
		p.failf(pointer, "must be an object, the only member of the one around it")
		return &Value{}
	}
	for name := range members {
		p.oneOf(at(pointer, name), name, messageMembers())
	}
	return &Value{mime: p.value(pointer, members, scope)}
}

func messageMembers() []string {
	return []string{"from", "reply_to", "to", "cc", "bcc", "subject", "text", "html", "attachments", "headers"}
}

// optionalValue compiles JSON that may be missing.
func (p *parser) optionalValue(pointer string, source any, scope *expr.Scope) *Value {
	if source == nil {
		return nil
	}
	return p.value(pointer, source, scope)
}

// object compiles an object, or an expression that returns one.
func (p *parser) object(pointer string, source any, scope *expr.Scope) *Value {
	switch source := source.(type) {
	case nil:
		return nil
	case map[string]any:
	case string:
		if expressionLength(source) == len(source) {
			break
		}
		p.failf(pointer, "must be an object, or one expression in ${{ }} that returns an object")
	default:
		p.failf(pointer, "must be an object, or one expression in ${{ }} that returns an object")
	}
	return p.value(pointer, source, scope)
}

func (v *Value) evalObject(env Env) (map[string]any, error) {
	if v == nil {
		return nil, nil
	}
	value, err := v.Eval(env)
	if err != nil || value == nil {
		return nil, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("must be an object, not %T", value)
	}
	return object, nil
}
