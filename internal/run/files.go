package run

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// Stored JSON shows references to files as objects. Which objects are references is
// known from the JSON pointers that are stored beside it; everything else is data.

// filesWithin returns the JSON pointers that point into the part of a value at the given
// pointer, relative to it.
func filesWithin(pointers []string, at string) []string {
	var inside []string
	for _, pointer := range pointers {
		if rest, ok := strings.CutPrefix(pointer, at); ok && (rest == "" || rest[0] == '/') {
			inside = append(inside, rest)
		}
	}
	return inside
}

// FileIDs returns the ids of the files that stored JSON refers to, each once.
func FileIDs(value json.RawMessage, pointers []string) ([]string, error) {
	if len(pointers) == 0 || value == nil {
		return nil, nil
	}
	decoded, err := expr.FromJSONWithFiles(value, pointers)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, f := range expr.Files(decoded) {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// HasFiles reports whether the row of the step refers to files.
func (s Step) HasFiles() bool { return len(s.InputFiles)+len(s.OutputFiles)+len(s.AnswerFiles) > 0 }

// HasFiles reports whether the run refers to files from the beginning.
func (s Start) HasFiles() bool { return len(s.Files)+len(s.Holds) > 0 || s.HoldsOf != "" }

// hold sets which files a new run refers to from the beginning: those of its payload and
// of the steps that it reuses, and those of a draft.
func (s *Start) hold() error {
	if s.Draft != nil {
		s.Holds = s.Draft.FileIDs()
	}
	if s.Run.RetryOf != "" {
		if len(s.Run.Trigger.Files) > 0 || slices.ContainsFunc(s.Steps, Step.HasFiles) {
			s.HoldsOf = s.Run.RetryOf
		}
		return nil
	}
	ids, err := FileIDs(s.Run.Trigger.Payload, s.Run.Trigger.Files)
	if err != nil {
		return err
	}
	s.Holds = append(s.Holds, slices.DeleteFunc(ids, func(id string) bool {
		return slices.ContainsFunc(s.Files, func(f file.File) bool { return f.ID == id })
	})...)
	return nil
}

// addFiles adds references to files to the payload of a run.
func (s *Service) addFiles(ctx context.Context, workspaceID string, t *Trigger, files map[string]string) error {
	if len(files) == 0 {
		return nil
	}
	payload := map[string]json.RawMessage{}
	if t.Payload != nil && json.Unmarshal(t.Payload, &payload) != nil || payload == nil {
		return fault.Field("/payload", "must be an object")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		at := jsonpointer.Of(name)
		if _, taken := payload[name]; taken {
			return fault.Field("/files"+at, "is also a member of the payload")
		}
		found, err := s.store.File(ctx, workspaceID, files[name], clock.Now())
		if err != nil {
			return err
		}
		if found == nil {
			return fault.New(fault.FileNotFound, "there is no file %q", files[name]).With(fault.Detail{Pointer: "/files" + at, Message: "does not exist"})
		}
		if payload[name], err = strictjson.Encode(found.Value()); err != nil {
			return err
		}
		t.Files = append(t.Files, at)
	}
	var err error
	t.Payload, err = strictjson.Encode(payload)
	return err
}
