package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/vault"
)

// Vault seals the states of steps. They can contain anything that an action knows,
// and unlike an output, a state with masked values would be of no use. It also signs
// the ids of runs, for the seeds of their random values.
type Vault interface {
	Sign(ctx context.Context, workspaceID, purpose string, text []byte) ([]byte, error)
	Seal(ctx context.Context, ref vault.Ref, plain []byte) ([]byte, error)
	Open(ctx context.Context, ref vault.Ref, sealed []byte) ([]byte, error)
}

// checkpoint stores the state of a step that continues, and starts counting its
// attempts anew. It is committed before the step is executed again.
func (s *runState) checkpoint(p stepRef, checkpoint action.Checkpoint) error {
	step := p.step()
	if p.compiled().Pure {
		return fmt.Errorf("the pure action %s returned a checkpoint", step.Type)
	}
	state, err := strictjson.Encode(checkpoint.State)
	if err != nil {
		return err
	}
	size := len(state) + len(checkpoint.Chunk)
	if !checkpoint.Restart {
		size += stateSize(step) - len(step.State)
	}
	if limit := s.limits.OutputBytes; size > limit {
		return &action.Failure{Code: run.CodeOutputTooLarge, Message: fmt.Sprintf("the state of the step has %d bytes; the %s plan allows at most %d", size, s.snap.Plan, limit)}
	}
	s.size -= stateSize(step)
	s.addSize(size)
	if checkpoint.Restart {
		s.changes.dropChunks(step)
	}
	if checkpoint.Chunk != nil {
		s.changes.addChunk(step, checkpoint.Chunk)
	}
	step.Status, step.State, step.CheckpointAttempt = run.StepRunning, state, step.Attempt
	step.StateFiles = nil
	for _, f := range checkpoint.Files {
		step.StateFiles = append(step.StateFiles, f.ID)
	}
	s.hold(checkpoint.Files)
	delete(s.interrupted, step)
	step.WakeAt, step.Deadline, step.Awaits, step.Reason = nil, nil, "", ""
	s.changes.progress = true
	return nil
}

// dropState removes the state of a step.
func (s *runState) dropState(step *run.Step) {
	s.size -= stateSize(step)
	s.changes.dropChunks(step)
	step.State, step.StateFiles, step.CheckpointAttempt = nil, nil, 0
}

// stateSize returns the size of the state of a step with its chunks.
func stateSize(step *run.Step) int {
	size := len(step.State)
	for _, chunk := range step.Chunks {
		size += len(chunk)
	}
	return size
}

// sealStates replaces the states and chunks of steps that are about to be stored.
func (d *driver) sealStates(ctx context.Context, decision *run.Decision) error {
	steps, chunks := decision.Steps, slices.Clone(decision.Chunks)
	for i, chunk := range chunks {
		data, err := d.engine.vault.Seal(ctx, d.chunkRef(chunk), chunk.Data)
		if err != nil {
			return err
		}
		chunks[i].Data = data
	}
	var sealed map[int][]byte
	for i, step := range steps {
		if step.State == nil {
			continue
		}
		plain, err := withStateFiles(step)
		if err != nil {
			return err
		}
		state, err := d.engine.vault.Seal(ctx, d.stateRef(step), plain)
		if err != nil {
			return err
		}
		if sealed == nil {
			sealed = map[int][]byte{}
		}
		sealed[i] = state
	}
	for i, state := range sealed {
		steps[i].State = state
	}
	decision.Chunks = chunks
	return nil
}

// openStates replaces the sealed states of stored steps, and adds their chunks.
func (d *driver) openStates(ctx context.Context, snap *run.Snapshot) error {
	steps, i := snap.Steps, -1
	for _, chunk := range snap.Chunks {
		if i < 0 || steps[i].Path != chunk.Path {
			i = slices.IndexFunc(steps, func(step run.Step) bool { return step.Path == chunk.Path })
		}
		if i < 0 || chunk.Number != len(steps[i].Chunks) {
			return &corruptError{fmt.Errorf("chunk %d of the state of step %q does not follow another", chunk.Number, chunk.Path)}
		}
		data, err := d.open(ctx, d.chunkRef(chunk), chunk.Path, chunk.Data)
		if err != nil {
			return err
		}
		steps[i].Chunks = append(steps[i].Chunks, data)
	}
	for i, step := range steps {
		if step.State == nil {
			continue
		}
		state, err := d.open(ctx, d.stateRef(step), step.Path, step.State)
		if err != nil {
			return err
		}
		if steps[i].State, steps[i].StateFiles, err = splitStateFiles(state); err != nil {
			return &corruptError{fmt.Errorf("the state of step %q: %w", step.Path, err)}
		}
	}
	return nil
}

// open opens a part of the state of a step.
func (d *driver) open(ctx context.Context, ref vault.Ref, path string, sealed []byte) ([]byte, error) {
	plain, err := d.engine.vault.Open(ctx, ref, sealed)
	if errors.Is(err, vault.ErrSealed) {
		return nil, &corruptError{fmt.Errorf("the state of step %q: %w", path, err)}
	}
	return plain, err
}

// stateFilesMark begins a stored state that has files. JSON never begins with it.
const stateFilesMark = "\x00"

// withStateFiles returns the state of a step as it is stored: after a line with the ids
// of its files, if there are any.
func withStateFiles(step run.Step) ([]byte, error) {
	if len(step.StateFiles) == 0 {
		return step.State, nil
	}
	ids, err := json.Marshal(step.StateFiles)
	return slices.Concat([]byte(stateFilesMark), ids, []byte("\n"), step.State), err
}

// splitStateFiles is the opposite of withStateFiles.
func splitStateFiles(stored []byte) (state []byte, files []string, err error) {
	rest, marked := bytes.CutPrefix(stored, []byte(stateFilesMark))
	if !marked {
		return stored, nil, nil
	}
	ids, state, _ := bytes.Cut(rest, []byte("\n"))
	err = json.Unmarshal(ids, &files)
	return state, files, err
}

// stateRef returns the location that the state of a step is sealed for. That of a
// settled step is its real output, which a retry of the run copies.
func (d *driver) stateRef(step run.Step) vault.Ref {
	if step.Status.Settled() {
		return vault.Ref{Workspace: d.state.snap.WorkspaceID, Table: "steps", ID: d.state.snap.WorkflowID + "/" + step.Path}
	}
	return vault.Ref{Workspace: d.state.snap.WorkspaceID, Table: "steps", ID: d.lease.RunID + "/" + step.Path}
}

// chunkRef returns the location that a chunk is sealed for.
func (d *driver) chunkRef(c run.Chunk) vault.Ref {
	return vault.Ref{Workspace: d.state.snap.WorkspaceID, Table: "step_chunks", ID: fmt.Sprintf("%s/%s/%d", d.lease.RunID, c.Path, c.Number)}
}
