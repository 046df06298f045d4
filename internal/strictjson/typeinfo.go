package strictjson

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// typeInfo describes a Go type for the scan.
type typeInfo struct {
	kind         kind
	typ          reflect.Type
	accepts      jsonType
	noun         string
	elem         *typeInfo // of pointers, optionals, slices and maps
	fields       []field
	byName       map[string]int
	bits         int    // of numbers
	selfDecoding bool   // the type has its own decoding method
	hint         string // replaces the error message of that method
	hasAny       bool   // it contains an any, which convertNumbers must visit
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

// typeInfos caches the info of each type that was decoded into. Types are part of
// the program, so the cache does not grow with the input.
var typeInfos sync.Map // reflect.Type to *typeInfo

func typeInfoFor(t reflect.Type) (*typeInfo, error) {
	if p, ok := typeInfos.Load(t); ok {
		return p.(*typeInfo), nil
	}
	b := builder{}
	p, err := b.typeInfo(t)
	if err != nil {
		return nil, err
	}
	b.propagateAny()
	typeInfos.Store(t, p)
	return p, nil
}

// builder has the infos of the types seen so far, complete or not, because a type
// can contain itself.
type builder map[reflect.Type]*typeInfo

func (b builder) typeInfo(t reflect.Type) (*typeInfo, error) {
	if p, ok := b[t]; ok {
		return p, nil
	}
	p := &typeInfo{typ: t}
	b[t] = p
	if p.special() || p.scalar() {
		return p, nil
	}
	return p, b.compositeInfo(p)
}

// special handles types that encoding/json treats specially.
func (p *typeInfo) special() bool {
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
		p.selfDecoding, p.hint = true, "must be an RFC 3339 time"
	case pt.Implements(jsonUnmarshaler):
		p.accepts, p.selfDecoding = typeAny, true
	case pt.Implements(textUnmarshaler):
		p.accepts, p.noun, p.selfDecoding = typeString, nounString, true
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		p.accepts, p.noun = typeString, nounString
		p.selfDecoding, p.hint = true, "must be base64 text"
	default:
		return false
	}
	return true
}

func (p *typeInfo) scalar() bool {
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

// compositeInfo completes the info of a type that consists of other types.
func (b builder) compositeInfo(p *typeInfo) (err error) {
	t := p.typ
	if elem := optionalElem(t); elem != nil {
		p.kind = kindOptional
		p.elem, err = b.typeInfo(elem)
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
	p.elem, err = b.typeInfo(t.Elem())
	return err
}

func (b builder) structFields(p *typeInfo) (err error) {
	if p.fields, err = jsonFields(p.typ); err != nil {
		return err
	}
	p.byName = make(map[string]int, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		p.byName[f.name] = i
		if f.info, err = b.typeInfo(f.typ); err != nil {
			return fmt.Errorf("%w in field %s of %s", err, f.name, p.typ)
		}
	}
	return nil
}

// propagateAny marks every type that contains an any. Types can be cyclic, so it
// repeats until nothing changes. An Optional converts its own value.
func (b builder) propagateAny() {
	for changed := true; changed; {
		changed = false
		for _, p := range b {
			if p.hasAny || p.kind == kindOptional {
				continue
			}
			has := p.elem != nil && p.elem.hasAny
			for _, f := range p.fields {
				has = has || f.info.hasAny
			}
			p.hasAny = has
			changed = changed || has
		}
	}
}
