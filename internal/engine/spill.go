package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/listfile"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// spiller makes list files of the lists that make an output too large.
type spiller struct {
	files action.Files
	mask  outputMask
	limit int // of the output in bytes
}

// list is a list inside an output, and the members that lead to it.
type list struct {
	path  []string
	items []any
	size  int // as JSON
}

// spill returns a too large output, which has size bytes as JSON, with list files
// instead of its largest lists. If that is not possible, it returns the output as it is.
// Lists are written without what must not be stored. Lists with files in them remain,
// because a list file is plain data.
func (s spiller) spill(ctx context.Context, output map[string]any, size int) (map[string]any, error) {
	masked, err := s.mask.apply(output)
	if err != nil {
		return nil, err
	}
	lists, err := findLists(masked, nil)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(lists, func(a, b list) int { return cmp.Compare(b.size, a.size) })
	chosen := 0
	for rest := size; rest > s.limit; chosen++ {
		if chosen == len(lists) || lists[chosen].size <= listfile.MaxReference {
			return output, nil
		}
		rest -= lists[chosen].size - listfile.MaxReference
	}
	for _, l := range lists[:chosen] {
		f, err := s.write(ctx, l)
		if err != nil {
			return nil, err
		}
		output = replaceMember(output, l.path, f)
	}
	return output, nil
}

// findLists returns the lists in an object that are not inside of another list.
func findLists(object map[string]any, at []string) ([]list, error) {
	var found []list
	for _, name := range slices.Sorted(maps.Keys(object)) {
		path := append(slices.Clone(at), name)
		switch v := object[name].(type) {
		case map[string]any:
			inner, err := findLists(v, path)
			if err != nil {
				return nil, err
			}
			found = append(found, inner...)
		case []any:
			if len(expr.Files(v)) > 0 {
				continue
			}
			encoded, err := strictjson.Encode(v)
			if err != nil {
				return nil, err
			}
			found = append(found, list{path: path, items: v, size: len(encoded)})
		}
	}
	return found, nil
}

// replaceMember returns a copy of an object with another value at a path.
func replaceMember(object map[string]any, path []string, value any) map[string]any {
	out := maps.Clone(object)
	if inner, ok := out[path[0]].(map[string]any); ok && len(path) > 1 {
		value = replaceMember(inner, path[1:], value)
	}
	out[path[0]] = value
	return out
}

func (s spiller) write(ctx context.Context, l list) (*expr.File, error) {
	description := &expr.FileList{}
	to, err := s.files.Create(ctx, action.NewFile{Name: l.path[len(l.path)-1] + ".ndjson", Type: listfile.Type, List: description})
	if err != nil {
		return nil, err
	}
	defer to.Abort()
	w := listfile.NewWriter(to, description)
	for _, item := range l.items {
		encoded, err := strictjson.Encode(item)
		if err != nil {
			return nil, err
		}
		if err := w.Add(encoded); err != nil {
			return nil, err
		}
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return to.Finish()
}

// outputMask removes from an output what must not be stored: secrets, what the mask of
// the step selects, and what the masks of earlier steps have selected. What is written to
// a file has no sealed copy, so later steps do not see these values either.
type outputMask struct {
	values   stepMask
	selected []mask.Path
}

func (m outputMask) apply(output map[string]any) (map[string]any, error) {
	if m.values == (stepMask{}) && m.selected == nil {
		return output, nil
	}
	hidden, _ := mask.Hide(output, m.selected).(map[string]any)
	files := expr.FilePointers(hidden)
	encoded, err := strictjson.Encode(hidden)
	if err != nil {
		return nil, err
	}
	value, err := expr.FromJSONWithFiles(m.values.JSON(encoded), files)
	if err != nil {
		return nil, err
	}
	masked, _ := value.(map[string]any)
	return masked, nil
}

// outputMask returns the mask for the output of a step.
func (s *runState) outputMask(p stepRef) outputMask {
	return outputMask{values: s.secrets.maskOf(p.step()), selected: p.compiled().Masked}
}

// spillOutputs makes a list file of the outputs of the rounds of a loop that succeeded,
// if they are too large. It returns false if the run was aborted or the engine stops.
func (d *driver) spillOutputs(ctx context.Context, b block) bool {
	r := b.ofRounds()
	if r.failure != nil || r.outputBytes <= d.state.limits.OutputBytes || d.engine.files == nil {
		return true
	}
	var failed error
	s := spiller{mask: d.state.outputMask(r.of), limit: d.state.limits.OutputBytes}
	done := d.retryFiles(ctx, "store the outputs of a loop", func() error {
		files := d.newCallFiles()
		s.files = files
		output, err := s.spill(ctx, map[string]any{"items": r.outputs}, r.outputBytes)
		if err != nil {
			files.drop()
			return err
		}
		r.spilled = output
		d.state.offer(files.end())
		return nil
	}, &failed)
	if failed != nil {
		r.fail(d.state.failureOf(r.of.step(), failed))
	}
	return done
}
