package sandbox

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// addFileClass adds the class File. Making it takes longer than making the rest of the
// runtime, so it is made on first use.
func (m *vm) addFileClass() {
	get := func(goja.FunctionCall) goja.Value { return m.makeFileClass() }
	set := func(call goja.FunctionCall) goja.Value {
		m.setFileClass(call.Argument(0))
		return goja.Undefined()
	}
	// Defining properties of new objects cannot fail, here and below.
	_ = m.GlobalObject().DefineAccessorProperty("File", m.ToValue(get), m.ToValue(set), goja.FLAG_TRUE, goja.FLAG_FALSE)
}

func (m *vm) setFileClass(value goja.Value) {
	_ = m.GlobalObject().DefineDataProperty("File", value, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// makeFileClass makes the class File: what a script can know of a file, and how it
// reads and creates files. All state is in [files], where the script cannot reach it.
func (m *vm) makeFileClass() goja.Value {
	class := m.ToValue(m.construct).ToObject(m.Runtime)
	prototype := class.Get("prototype").ToObject(m.Runtime)
	_ = class.DefineDataProperty("name", m.ToValue("File"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	_ = prototype.DefineDataPropertySymbol(goja.SymToStringTag, m.ToValue("File"), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	for name, get := range map[string]func(*file) goja.Value{
		"name":   func(f *file) goja.Value { return m.ToValue(f.Name) },
		"type":   func(f *file) goja.Value { return m.ToValue(f.Type) },
		"size":   func(f *file) goja.Value { return m.ToValue(f.Size) },
		"sha256": func(f *file) goja.Value { return m.ToValue(f.hash()) },
	} {
		getter := func(call goja.FunctionCall) goja.Value { return get(m.receiver(call)) }
		_ = prototype.DefineAccessorProperty(name, m.ToValue(getter), nil, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	for name, read := range map[string]func(*file) goja.Value{
		"text":  func(f *file) goja.Value { return m.text(f) },
		"bytes": m.bytes,
		"json": func(f *file) goja.Value {
			value, err := m.parse(goja.Undefined(), m.text(f))
			if err != nil {
				panic(err)
			}
			return value
		},
	} {
		method := func(call goja.FunctionCall) goja.Value {
			return m.promise(func() goja.Value { return read(m.receiver(call)) })
		}
		_ = prototype.DefineDataProperty(name, m.ToValue(method), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	m.files.prototype, m.files.rangeError, m.files.byteArray = prototype, m.Get("RangeError"), m.Get("Uint8Array")
	m.setFileClass(class)
	return class
}

func (m *vm) receiver(call goja.FunctionCall) *file {
	object, _ := call.This.(*goja.Object)
	f := m.files.of[object]
	if f == nil {
		panic(m.NewTypeError("this is not a File"))
	}
	return f
}

// promise returns a promise that is settled with the result of a function.
func (m *vm) promise(do func() goja.Value) goja.Value {
	promise, resolve, reject := m.NewPromise()
	var value goja.Value
	settle := resolve
	if thrown := m.Try(func() { value = do() }); thrown != nil {
		value, settle = thrown.Value(), reject
	}
	if err := settle(value); err != nil {
		panic(err)
	}
	return m.ToValue(promise)
}

func (m *vm) bytes(f *file) goja.Value {
	array, err := m.New(m.files.byteArray, m.ToValue(m.NewArrayBuffer(m.read(f))))
	if err != nil {
		panic(err)
	}
	return array
}

// text returns the bytes of a file as text, decoded like Blob.text of browsers: UTF-8
// without a byte order mark.
func (m *vm) text(f *file) goja.Value {
	return m.ToValue(strings.TrimPrefix(string(m.read(f)), "\uFEFF"))
}

// read returns a copy of the bytes of a file. It throws if they are too many.
func (m *vm) read(f *file) []byte {
	if f.created {
		return append([]byte(nil), f.data...)
	}
	h := &m.files.host
	switch {
	case f.Size > h.maxFile:
		m.throwRange("the file %q has %d bytes; a script can read files of up to %d", clip(f.Name, 100), f.Size, h.maxFile)
	case m.files.reads == MaxReads:
		m.throwRange("the script has read files %d times, which is the limit", MaxReads)
	case m.files.readBytes+f.Size > MaxReadBytes:
		m.throwRange("the script reads more than %d bytes of files in total, which is the limit", MaxReadBytes)
	}
	m.files.reads++
	m.files.readBytes += f.Size
	return h.fetch(f.index, f.Size)
}

func (m *vm) throwRange(format string, arguments ...any) {
	thrown, err := m.New(m.files.rangeError, m.ToValue(fmt.Sprintf(format, arguments...)))
	if err != nil {
		panic(err)
	}
	panic(thrown)
}

// construct implements new File(parts, name, {type}).
func (m *vm) construct(call goja.ConstructorCall) *goja.Object {
	parts, ok := call.Argument(0).(*goja.Object)
	if !ok {
		panic(m.NewTypeError("new File: the first argument must be a list of strings, byte arrays and files"))
	}
	f := &file{created: true, index: notReturned, File: File{Name: m.shortText("the name", call.Argument(1))}}
	if options, ok := call.Argument(2).(*goja.Object); ok {
		if given := options.Get("type"); given != nil && !goja.IsUndefined(given) {
			f.Type = m.shortText("the type", given)
		}
	}
	m.ForOf(parts, func(part goja.Value) bool {
		f.data = append(f.data, m.partBytes(part)...)
		if int64(len(f.data)) > m.files.host.maxFile {
			m.throwRange("new File: a file that a script creates can have up to %d bytes", m.files.host.maxFile)
		}
		return true
	})
	f.Size = int64(len(f.data))
	// A new object, because the constructor can be called on any object.
	object := m.CreateObject(call.This.Prototype())
	m.files.of[object] = f
	return object
}

func (m *vm) shortText(what string, value goja.Value) string {
	text, ok := value.(goja.String)
	if !ok {
		panic(m.NewTypeError("new File: %s must be a string", what))
	}
	if text.Length() > MaxFileName || len(text.String()) > MaxFileName {
		m.throwRange("new File: %s can have up to %d bytes", what, MaxFileName)
	}
	return text.String()
}

func (m *vm) partBytes(part goja.Value) []byte {
	switch part := part.(type) {
	case goja.String:
		return []byte(part.String())
	case *goja.Object:
		if f := m.files.of[part]; f != nil {
			return m.read(f)
		}
		switch part.ExportType() {
		case reflect.TypeFor[[]byte]():
			if data, ok := part.Export().([]byte); ok {
				return data
			}
		case reflect.TypeFor[goja.ArrayBuffer]():
			if buffer, ok := part.Export().(goja.ArrayBuffer); ok {
				return buffer.Bytes()
			}
		}
	}
	panic(m.NewTypeError("new File: a part must be a string, a Uint8Array, an ArrayBuffer or a File"))
}

// reviveFiles returns the function for JSON.parse that replaces markers by files.
func (m *vm) reviveFiles(marker string, given []File) goja.Value {
	m.makeFileClass()
	objects := make([]*goja.Object, len(given))
	for i, description := range given {
		objects[i] = m.CreateObject(m.files.prototype)
		m.files.of[objects[i]] = &file{File: description, index: i}
	}
	m.files.given = len(given)
	return m.ToValue(func(call goja.FunctionCall) goja.Value {
		value := call.Argument(1)
		if text, ok := value.(goja.String); ok {
			if number, marked := strings.CutPrefix(text.String(), marker); marked {
				if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < len(objects) {
					return objects[i]
				}
			}
		}
		return value
	})
}

// replaceFiles returns the function for JSON.stringify that replaces files, or
// undefined if the script has none.
func (m *vm) replaceFiles(replace func(*file) goja.Value) goja.Value {
	if len(m.files.of) == 0 {
		return goja.Undefined()
	}
	return m.ToValue(func(call goja.FunctionCall) goja.Value {
		value := call.Argument(1)
		if object, ok := value.(*goja.Object); ok {
			if f := m.files.of[object]; f != nil {
				return replace(f)
			}
		}
		return value
	})
}

// describe returns what the log shows of a file.
func (m *vm) describe(f *file) goja.Value {
	object := m.NewObject()
	for _, member := range []struct {
		name  string
		value any
	}{{"name", f.Name}, {"type", f.Type}, {"size", f.Size}} {
		_ = object.DefineDataProperty(member.name, m.ToValue(member.value), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	}
	return object
}
