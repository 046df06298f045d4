package workflow

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// applyPins changes pins. Whoever may change workflows can name files in them.
func (s *Service) applyPins(ctx context.Context, actor auth.Actor, p PinsPatch, was Pins) (Pins, error) {
	now, err := p.Apply(was)
	if err != nil || !auth.Grants(actor.Scopes, auth.Write) {
		return now, err
	}
	r := pinResolver{ctx: ctx, store: s.store, workspaceID: actor.Workspace.ID, found: map[string]*expr.File{}}
	for _, id := range slices.Sorted(maps.Keys(p.Values)) {
		pin, pinned := now[id]
		if !pinned || !bytes.Contains(pin.Output, fileMember) {
			continue
		}
		if now[id], err = r.resolve("/pinned/"+id, pin); err != nil {
			return nil, err
		}
	}
	return now, now.check()
}

// pinResolver finds the files in pins.
type pinResolver struct {
	ctx         context.Context
	store       Store
	workspaceID string
	found       map[string]*expr.File // by id; nil if it does not exist
	problems    []error
}

// resolve replaces the objects in a pin that refer to files.
func (r *pinResolver) resolve(at string, pin Pin) (Pin, error) {
	value, err := pin.Value()
	if err != nil {
		return pin, err
	}
	if value, err = r.replace(value, at); err != nil {
		return pin, err
	}
	if err := fault.Fields(r.problems...); err != nil {
		return pin, err
	}
	if pin.Files = expr.FilePointers(value); len(pin.Files) == 0 {
		return pin, nil
	}
	if pin.Output, err = strictjson.Encode(value); err == nil && len(pin.Output) > maxPin {
		err = fault.Field(at, "has %d bytes; at most %d are allowed", len(pin.Output), maxPin)
	}
	return pin, err
}

func (r *pinResolver) replace(value any, at string) (any, error) {
	var err error
	switch v := value.(type) {
	case []any:
		for i := range v {
			if v[i], err = r.replace(v[i], at+"/"+strconv.Itoa(i)); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if id, ok := fileNamed(v); ok {
			if f, err := r.file(id, v, at); err != nil || f != nil {
				return f, err
			}
		}
		for key := range v {
			if v[key], err = r.replace(v[key], at+jsonpointer.Of(key)); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// file returns the file that an object refers to: one that only names the file, or the
// whole reference, as in the output of a run. Other objects are data; then it returns nil.
func (r *pinResolver) file(id string, object map[string]any, at string) (*expr.File, error) {
	f, known := r.found[id]
	if !known {
		if len(r.found) == maxFiles {
			return nil, fault.Field(at, "pins refer to at most %d files", maxFiles)
		}
		stored, err := r.store.File(r.ctx, r.workspaceID, id, clock.Now())
		if err != nil {
			return nil, err
		}
		if stored != nil {
			f = stored.Value()
		}
		r.found[id] = f
	}
	switch {
	case len(object) == 1 && f == nil:
		r.problems = append(r.problems, fault.Field(at, "%s", noFile(id)))
		return nil, nil
	case f == nil || len(object) == 1:
		return f, nil
	}
	given, err := strictjson.Encode(object)
	if err != nil {
		return nil, err
	}
	whole, err := strictjson.Encode(f)
	if err != nil || !bytes.Equal(given, whole) {
		return nil, err
	}
	return f, nil
}
