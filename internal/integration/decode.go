package integration

import (
	"errors"
	"fmt"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

type decoded struct {
	manifest manifest
	text     []byte
	document *strictyaml.Document // nil for an outline
	// outline is set if only the outline of the operations and triggers is known.
	outline bool
}

func decode(data []byte) (*decoded, error) {
	if len(data) > MaxManifest {
		return nil, Errors{{Message: fmt.Sprintf("the manifest is longer than %d KiB", MaxManifest>>10)}}
	}
	out := &decoded{text: data}
	var err error
	if out.document, err = DecodeFile(data, &out.manifest); err != nil {
		return nil, err
	}
	return out, nil
}

// checkFolder checks that the folder of the manifest has its id as its name.
func (d *decoded) checkFolder(folder string) error {
	if d.manifest.ID == folder {
		return nil
	}
	line, column, _ := d.document.At("/id")
	return Errors{{Line: line, Column: column, Pointer: "/id", Message: fmt.Sprintf("is %q, but the folder is %s: they must be equal", d.manifest.ID, folder)}}
}

// DecodeFile decodes a YAML file of an integration. The error is an [Errors], with
// positions in the file.
func DecodeFile(data []byte, dst any) (*strictyaml.Document, error) {
	document, err := strictyaml.Decode(data)
	if err != nil {
		return nil, decodeErrors(err, nil)
	}
	if err := strictjson.Decode(document.JSON, dst); err != nil {
		return nil, decodeErrors(err, document)
	}
	return document, nil
}

// decodeErrors converts the errors of the decoders, with positions in the document
// if there is one.
func decodeErrors(err error, document *strictyaml.Document) Errors {
	var list strictjson.Errors
	if !errors.As(err, &list) {
		return Errors{{Message: err.Error()}}
	}
	var out Errors
	for _, one := range list {
		e := &Error{Line: one.Line, Column: one.Column, Pointer: one.Pointer, Message: one.Message}
		if document != nil {
			e.Line, e.Column, _ = document.At(one.Pointer)
			if one.Key {
				e.Line, e.Column, _ = document.KeyAt(one.Pointer)
			}
		}
		out = append(out, e)
	}
	return out
}
