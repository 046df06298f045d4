package store

import (
	"encoding/json"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/file"
	"github.com/stepmill/stepmill/internal/run"
)

// filePointers scans the JSON pointers of references to files: a JSON array, or NULL.
type filePointers []byte

func (p filePointers) decode(into *[]string) error {
	if p == nil {
		return nil
	}
	return json.Unmarshal(p, into)
}

// pointersOrNil returns JSON pointers as they are stored.
func pointersOrNil(pointers []string) (any, error) {
	if len(pointers) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(pointers)
	return string(text), err
}

// writeStepFiles stores which parts of a step refer to files. Most steps have none, and
// upsertStep has cleared those of an earlier attempt.
func writeStepFiles(tx *transaction, runID string, step run.Step) error {
	if len(step.InputFiles)+len(step.OutputFiles) == 0 {
		return nil
	}
	input, err := pointersOrNil(step.InputFiles)
	if err != nil {
		return err
	}
	output, err := pointersOrNil(step.OutputFiles)
	if err != nil {
		return err
	}
	return tx.Do(`UPDATE steps SET input_files = $1, output_files = $2 WHERE run_id = $3 AND path = $4`, input, output, runID, step.Path)
}

// writeRunFiles records the files that came with the payload of a new run, and makes the
// run hold the others that it refers to.
func writeRunFiles(tx *transaction, start run.Start) error {
	r := start.Run
	if pointers, err := pointersOrNil(r.Trigger.Files); err != nil {
		return err
	} else if pointers != nil {
		if err := tx.Do(`UPDATE runs SET files = $1 WHERE id = $2`, pointers, r.ID); err != nil {
			return err
		}
	}
	for _, f := range start.Files {
		if _, err := recordFile(tx, file.Recording{File: f, Plan: start.Plan, RunID: r.ID}, file.HeldByRun(r.ID)); err != nil {
			return err
		}
	}
	if start.HoldsOf != "" {
		// The outputs that a retry reuses can refer to files that their masked form does
		// not show.
		held, err := refsOf(tx, file.HeldByRun(start.HoldsOf), -1)
		if err != nil {
			return err
		}
		for _, ref := range held {
			start.Holds = append(start.Holds, ref.file)
		}
	}
	return holdFiles(tx, r.WorkspaceID, file.HeldByRun(r.ID), start.Holds, r.StartedAt)
}

// writeDecisionFiles records the files that steps have created, makes the run hold the
// others that they refer to, and releases those that it does not need any more. The
// limits were checked when the files were written, so that the step has failed instead
// of the commit.
func writeDecisionFiles(tx *transaction, r run.Run, d run.Decision) error {
	holder := file.HeldByRun(r.ID)
	for _, f := range d.Files {
		there, err := database.Number(tx, `SELECT count(*) FROM files WHERE id = $1`, f.ID)
		if err != nil {
			return err
		}
		if there == 1 {
			continue // this commit is repeated
		}
		if _, err := recordFile(tx, file.Recording{File: f, RunID: r.ID, Checked: true}, holder); err != nil {
			return err
		}
	}
	for _, id := range d.Holds {
		// A file that was deleted since the step got it cannot be read any more.
		if err := holdFiles(tx, r.WorkspaceID, holder, []string{id}, clock.Now()); err != nil && !fault.Is(err, fault.FileNotFound) {
			return err
		}
	}
	released := make([]fileRef, len(d.Releases))
	for i, id := range d.Releases {
		released[i] = fileRef{holder: string(holder), file: id}
	}
	return dropRefs(tx, released, clock.Now())
}

// writeAnswerFiles stores which parts of the answer to an operation refer to files, and
// makes the run hold them.
func writeAnswerFiles(tx *transaction, r run.Run, path string, answer run.StepAnswer) error {
	pointers, err := pointersOrNil(answer.Files)
	if err != nil {
		return err
	}
	if err := tx.Do(`UPDATE steps SET answer_files = $1 WHERE run_id = $2 AND path = $3`, pointers, r.ID, path); err != nil {
		return err
	}
	ids, err := run.FileIDs(answer.Value, answer.Files)
	if err != nil {
		return err
	}
	return holdFiles(tx, r.WorkspaceID, file.HeldByRun(r.ID), ids, clock.Now())
}

// passFiles makes the parent of a run hold the files in the output of the run.
func passFiles(tx *transaction, r run.Run, f run.Finish) error {
	inside := make([]string, len(f.OutputFiles))
	for i, pointer := range f.OutputFiles {
		inside[i] = "/output" + pointer // see run.Outcome
	}
	pointers, err := pointersOrNil(inside)
	if err != nil {
		return err
	}
	if err := tx.Do(`UPDATE steps SET answer_files = $1 WHERE run_id = $2 AND path = $3`, pointers, r.Parent.RunID, r.Parent.StepID); err != nil {
		return err
	}
	ids, err := run.FileIDs(f.Output, f.OutputFiles)
	if err != nil {
		return err
	}
	return holdFiles(tx, r.WorkspaceID, file.HeldByRun(r.Parent.RunID), ids, f.At)
}
