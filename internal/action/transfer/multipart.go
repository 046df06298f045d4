package transfer

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"unicode"

	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Part is one part of a multipart body: a field, or a file.
type Part struct {
	Name  string
	Value []byte
	File  *expr.File
	// Filename and Type are optional. They replace those of the file. Type must not have
	// control characters, which [ParseParts] rejects.
	Filename string
	Type     string
}

// ParseParts returns the parts of an input that is called multipart: strings, numbers,
// booleans, files, descriptions of parts, and lists of them. Fields come before files,
// because some services ignore what follows a file; apart from that the order is that of
// the names, and within a list that of the list.
func ParseParts(given map[string]any) ([]Part, error) {
	var fields, files []Part
	for _, name := range slices.Sorted(maps.Keys(given)) {
		items, ok := given[name].([]any)
		if !ok {
			items = []any{given[name]}
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			p, err := parsePart(name, item)
			if err != nil {
				return nil, fmt.Errorf("multipart/%s: %w", name, err)
			}
			if p.File != nil {
				files = append(files, p)
			} else {
				fields = append(fields, p)
			}
		}
	}
	return append(fields, files...), nil
}

func parsePart(name string, item any) (Part, error) {
	p := Part{Name: name}
	switch item := item.(type) {
	case *expr.File:
		p.File = item
	case map[string]any:
		err := p.describe(item)
		return p, err
	default:
		text, err := Scalar(item)
		if err != nil {
			return p, errPart
		}
		p.Value = []byte(text)
	}
	return p, nil
}

var errPart = errors.New("must be a string, a number, a boolean, a file, or an object with value or file, and with filename or type")

func (p *Part) describe(given map[string]any) error {
	for member, value := range given {
		var ok bool
		switch member {
		case "file":
			p.File, ok = value.(*expr.File)
		case "filename":
			p.Filename, ok = value.(string)
		case "type":
			p.Type, ok = value.(string)
			ok = ok && !strings.ContainsFunc(p.Type, unicode.IsControl)
		case "value":
			ok = true
		}
		if !ok {
			return errPart
		}
	}
	value, hasValue := given["value"]
	if hasValue == (p.File != nil) {
		return errPart
	}
	if !hasValue {
		return nil
	}
	if text, err := Scalar(value); err == nil {
		p.Value = []byte(text)
		return nil
	}
	p.Type = cmp.Or(p.Type, "application/json")
	var err error
	p.Value, err = strictjson.Encode(value)
	return err
}

func (p Part) header() textproto.MIMEHeader {
	header := textproto.MIMEHeader{}
	filename, mediaType := p.Filename, p.Type
	if p.File != nil {
		filename, mediaType = cmp.Or(filename, p.File.Name), cmp.Or(mediaType, p.File.Type)
	}
	header.Set("Content-Disposition", strings.TrimSuffix(multipart.FileContentDisposition(p.Name, filename), `; filename=""`))
	if mediaType != "" {
		header.Set("Content-Type", mediaType)
	}
	return header
}

// Multipart returns a body of the type multipart/form-data, and its media type with the
// boundary.
func Multipart(parts []Part) (body Body, mediaType string, err error) {
	var buffer bytes.Buffer
	w := multipart.NewWriter(&buffer)
	for _, p := range parts {
		out, err := w.CreatePart(p.header())
		if err != nil {
			return nil, "", err
		}
		if p.File == nil {
			_, _ = out.Write(p.Value) // to the buffer
			continue
		}
		body = append(body, Segment{Data: bytes.Clone(buffer.Bytes())}, Segment{File: p.File})
		buffer.Reset()
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return append(body, Segment{Data: buffer.Bytes()}), w.FormDataContentType(), nil
}
