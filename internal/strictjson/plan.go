package strictjson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// plan is what the scan needs to know about a Go type.
type plan struct {
	kind    kind
	typ     reflect.Type
	accepts jsonType
	noun    string
	elem    *plan // of pointers, optionals, slices and maps
	fields  []field
	byName  map[string]int
	bits    int    // of numbers
	lazy    bool   // the methods of the type decide about the value
	hint    string // replaces the message of such a method
	hasAny  bool   // an any can be reached that settle has to visit
}

type kind uint8

const (
	kindLeaf kind = iota
	kindInt
	kindUint
	kindFloat
	kindAny
	kindPointer
	kindOptional
	kindSlice
	kindMap
	kindStruct
)

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// plans caches the plan of each type that was decoded into. Types are part of
// the program, so it does not grow with what is decoded.
var plans sync.Map // of reflect.Type to *plan

func planFor(t reflect.Type) (*plan, error) {
	if p, ok := plans.Load(t); ok {
		return p.(*plan), nil
	}
	b := builder{}
	p, err := b.plan(t)
	if err != nil {
		return nil, err
	}
	b.spreadAny()
	plans.Store(t, p)
	return p, nil
}

// builder holds the plans of the types seen so far, finished or not, because a
// type can contain itself.
type builder map[reflect.Type]*plan

func (b builder) plan(t reflect.Type) (*plan, error) {
	if p, ok := b[t]; ok {
		return p, nil
	}
	p := &plan{typ: t}
	b[t] = p
	if p.known() || p.scalar() {
		return p, nil
	}
	return p, b.compose(p)
}

// known recognizes types that are special for encoding/json.
func (p *plan) known() bool {
	t, pt := p.typ, reflect.PointerTo(p.typ)
	switch {
	case optionalElem(t) != nil, t.Kind() == reflect.Pointer:
		return false
	case t == reflect.TypeFor[json.RawMessage]():
		p.accepts = typeAny
	case t == reflect.TypeFor[json.Number]():
		p.accepts, p.noun = typeNumber, nounNumber
	case t == reflect.TypeFor[time.Time]():
		p.accepts, p.noun = typeString, "an RFC 3339 time"
		p.lazy, p.hint = true, "must be an RFC 3339 time"
	case pt.Implements(jsonUnmarshaler):
		p.accepts, p.lazy = typeAny, true
	case pt.Implements(textUnmarshaler):
		p.accepts, p.noun, p.lazy = typeString, nounString, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		p.accepts, p.noun = typeString, nounString
		p.lazy, p.hint = true, "must be base64 text"
	default:
		return false
	}
	return true
}

func (p *plan) scalar() bool {
	switch k := p.typ.Kind(); k {
	case reflect.Bool:
		p.accepts, p.noun = typeBool, nounBool
	case reflect.String:
		p.accepts, p.noun = typeString, nounString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind, p.accepts, p.noun, p.bits = kindInt, typeNumber, nounInteger, p.typ.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind, p.accepts, p.noun, p.bits = kindUint, typeNumber, nounInteger, p.typ.Bits()
	case reflect.Float32, reflect.Float64:
		p.kind, p.accepts, p.noun, p.bits = kindFloat, typeNumber, nounNumber, p.typ.Bits()
	case reflect.Interface:
		p.kind, p.accepts, p.hasAny = kindAny, typeAny, true
		return p.typ.NumMethod() == 0
	default:
		return false
	}
	return true
}

// compose fills in the plan of a type that is made of other types.
func (b builder) compose(p *plan) (err error) {
	t := p.typ
	if elem := optionalElem(t); elem != nil {
		p.kind = kindOptional
		p.elem, err = b.plan(elem)
		return err
	}
	switch {
	case t.Kind() == reflect.Pointer:
		p.kind = kindPointer
	case t.Kind() == reflect.Slice:
		p.kind, p.accepts, p.noun = kindSlice, typeArray, nounArray
	case t.Kind() == reflect.Map && t.Key().Kind() == reflect.String &&
		!reflect.PointerTo(t.Key()).Implements(textUnmarshaler):
		p.kind, p.accepts, p.noun = kindMap, typeObject, nounObject
	case t.Kind() == reflect.Struct:
		p.kind, p.accepts, p.noun = kindStruct, typeObject, nounObject
		return b.structFields(p)
	default:
		return fmt.Errorf("strictjson: unsupported type %s", t)
	}
	p.elem, err = b.plan(t.Elem())
	return err
}

func (b builder) structFields(p *plan) (err error) {
	if p.fields, err = jsonFields(p.typ); err != nil {
		return err
	}
	p.byName = make(map[string]int, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		p.byName[f.name] = i
		if f.plan, err = b.plan(f.typ); err != nil {
			return fmt.Errorf("%w in field %s of %s", err, f.name, p.typ)
		}
	}
	return nil
}

// spreadAny marks every type that reaches an any. Types can be cyclic, so it
// repeats until nothing changes. An Optional settles its own value.
func (b builder) spreadAny() {
	for changed := true; changed; {
		changed = false
		for _, p := range b {
			if p.hasAny || p.kind == kindOptional {
				continue
			}
			has := p.elem != nil && p.elem.hasAny
			for _, f := range p.fields {
				has = has || f.plan.hasAny
			}
			p.hasAny = has
			changed = changed || has
		}
	}
}
