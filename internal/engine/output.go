package engine

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/expr"
	"github.com/stepmill/stepmill/internal/mask"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/workflow"
)

// output is an encoded output of a step.
type output struct {
	shown json.RawMessage // as it is stored and shown
	// unmasked is what expressions see, if it differs: it has the values that masks of
	// steps hide. It is stored sealed, as the state of the settled step.
	unmasked json.RawMessage
	// files are the JSON pointers of the references to files inside of both.
	files []string
}

// encodeOutput encodes an output, unless it is encoded already, and masks it.
func (s *runState) encodeOutput(p stepRef, value any, encoded []byte) (output, error) {
	if encoded == nil {
		var err error
		if encoded, err = strictjson.Encode(value); err != nil {
			return output{}, err
		}
	}
	masked, err := s.maskOutput(p, encoded, s.filesIn(value))
	if err != nil {
		return output{}, err
	}
	if size, limit := max(len(masked.shown), len(masked.unmasked)), s.limits.OutputBytes; size > limit {
		return output{}, &action.Failure{Code: run.CodeOutputTooLarge, Message: fmt.Sprintf("the output has %d bytes; the %s plan allows at most %d", size, s.snap.Plan, limit)}
	}
	s.addSize(len(masked.shown))
	s.refer(value)
	return masked, nil
}

// maskOutput masks an output. The values that the mask of the step selects are masked
// in the run from then on.
func (s *runState) maskOutput(p stepRef, encoded []byte, files []string) (output, error) {
	unmasked := json.RawMessage(s.secrets.maskOf(p.step()).secrets.JSON(encoded))
	shown, err := s.hideSelected(p.compiled().Masked, unmasked, files)
	if err != nil || bytes.Equal(shown, unmasked) {
		return output{shown: shown, files: files}, err
	}
	return output{shown: shown, unmasked: unmasked, files: files}, nil
}

// hideSelected masks the values that the paths select, here and in the run from now
// on, and those of earlier steps. What describes a file, such as its type, is not such a
// value, but a selected file is not shown.
func (s *runState) hideSelected(paths []mask.Path, unmasked json.RawMessage, files []string) (json.RawMessage, error) {
	shown := unmasked
	if paths != nil {
		value, err := expr.FromJSONWithFiles(unmasked, files)
		if err != nil {
			return nil, err
		}
		if err := s.secrets.addFound(mask.Values(value, paths)); err != nil {
			return nil, err
		}
		if shown, err = strictjson.Encode(mask.Hide(value, paths)); err != nil {
			return nil, err
		}
	}
	return s.secrets.foundMask.JSON(shown), nil
}

// setUnmasked keeps the real output of a settled step, or the real items of a foreach,
// which are stored masked. It is nil if there is none.
func (s *runState) setUnmasked(step *run.Step, unmasked json.RawMessage) {
	if unmasked != nil {
		step.State = unmasked
		s.addSize(len(unmasked))
	}
}

// restoreFound finds the masked values of a run that is restored. Those of rounds that
// have ended count too.
func (s *runState) restoreFound(program *workflow.Program) error {
	var values []string
	for _, step := range s.snap.Steps {
		paths := program.Masks[run.LastOf(step.Path)]
		if paths == nil || step.State == nil || !step.Status.Settled() {
			continue
		}
		unmasked, err := expr.FromJSONWithFiles(step.State, step.OutputFiles)
		if err != nil {
			return err
		}
		values = append(values, mask.Values(unmasked, paths)...)
	}
	return s.secrets.addFound(values)
}
