package strictjson

import (
	"fmt"
	"reflect"
	"strings"
)

type field struct {
	name  string
	typ   reflect.Type
	index []int // for reflect.Value.FieldByIndex
	info  *typeInfo
	// nullOK means that null is the same as an absent member.
	nullOK bool
}

// embedded is a struct whose fields are promoted to the outermost struct.
type embedded struct {
	typ   reflect.Type
	index []int
}

// found collects the fields with one name at one depth of embedding.
type found struct {
	tagged, plain []field
}

// jsonFields returns the fields of struct type t by the rules of encoding/json:
// of fields with the same name the least nested one wins, then the one with a
// tag. If several remain, all are ignored.
func jsonFields(t reflect.Type) ([]field, error) {
	var fields []field
	taken := map[string]bool{}
	visited := map[reflect.Type]bool{}
	for level := []embedded{{typ: t}}; len(level) > 0; {
		l := levelFields{byName: map[string]*found{}}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			if err := l.collect(e); err != nil {
				return nil, err
			}
		}
		for _, e := range level {
			visited[e.typ] = true
		}
		for _, name := range l.names {
			if f, ok := l.byName[name].dominant(); ok && !taken[name] {
				fields = append(fields, f)
			}
			taken[name] = true
		}
		level = l.next
	}
	return fields, nil
}

func (f *found) dominant() (field, bool) {
	switch {
	case len(f.tagged) == 1:
		return f.tagged[0], true
	case len(f.tagged) == 0 && len(f.plain) == 1:
		return f.plain[0], true
	}
	return field{}, false
}

// levelFields has the fields at one depth of embedding, in order.
type levelFields struct {
	names  []string
	byName map[string]*found
	next   []embedded
}

func (l *levelFields) collect(e embedded) error {
	for i := range e.typ.NumField() {
		sf := e.typ.Field(i)
		tag := sf.Tag.Get("json")
		if tag == "-" {
			continue
		}
		inner := sf.Type
		if sf.Anonymous && inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		isStruct := sf.Anonymous && inner.Kind() == reflect.Struct
		if !sf.IsExported() && !isStruct {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if err := checkTag(e.typ, sf, name, options); err != nil {
			return err
		}
		index := append(append([]int(nil), e.index...), i)
		if isStruct && name == "" {
			l.next = append(l.next, embedded{typ: inner, index: index})
			continue
		}
		l.add(field{name: name, typ: sf.Type, index: index, nullOK: sf.Tag.Get("null") == "ok"}, sf.Name)
	}
	return nil
}

func (l *levelFields) add(f field, goName string) {
	tagged := f.name != ""
	if !tagged {
		f.name = goName
	}
	at := l.byName[f.name]
	if at == nil {
		at = &found{}
		l.byName[f.name] = at
		l.names = append(l.names, f.name)
	}
	if tagged {
		at.tagged = append(at.tagged, f)
	} else {
		at.plain = append(at.plain, f)
	}
}

// checkTag rejects tags that encoding/json handles in a way that the scan does
// not support.
func checkTag(t reflect.Type, sf reflect.StructField, name, options string) error {
	switch {
	case strings.ContainsAny(name, "\\\"'`"):
		return fmt.Errorf("strictjson: unsupported name in the tag of %s.%s", t, sf.Name)
	case strings.Contains(","+options+",", ",string,"):
		return fmt.Errorf("strictjson: unsupported option string in the tag of %s.%s", t, sf.Name)
	case !sf.IsExported() && (name != "" || sf.Type.Kind() == reflect.Pointer):
		return fmt.Errorf("strictjson: unsupported embedded %s in %s: a pointer or named, and not exported", sf.Type, t)
	}
	return nil
}
