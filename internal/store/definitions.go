package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/workflow"
)

var runDraftsTable = Table{Name: "run_drafts", Key: "run_id", Text: "run_id definition pinned files pinned_files", Int: "level"}

// insertDraft stores the definition that the run of a draft executes.
func insertDraft(tx *transaction, runID string, draft workflow.Unsaved) error {
	definition, err := draft.Definition.Canonical()
	if err != nil {
		return err
	}
	pinned, err := json.Marshal(draft.Pinned)
	if err != nil {
		return err
	}
	files, err := pointersOrNil(draft.Definition.Files.Pointers())
	if err != nil {
		return err
	}
	pinnedFiles, err := pointersOrNil(draft.Pinned.FilePointers())
	if err != nil {
		return err
	}
	return tx.Do(`INSERT INTO run_drafts (run_id, definition, pinned, files, pinned_files, level) VALUES ($1, $2, $3, $4, $5, $6)`,
		runID, string(definition), string(pinned), files, pinnedFiles, draft.Definition.Level)
}

// definitionReader reads what runs execute, for runs and for workflows.
type definitionReader struct{ db *DB }

// Draft reads the definition that the run of a draft executes. It returns nil if
// the run does not exist or executes a version.
func (s definitionReader) Draft(ctx context.Context, runID string) (*workflow.Unsaved, error) {
	return view(ctx, s.db, func(c database.Conn) (found *workflow.Unsaved, err error) {
		var files filePointers
		found, err = database.One(c, `SELECT definition, pinned, files, pinned_files, level FROM run_drafts WHERE run_id = $1`, []any{runID},
			func(r database.Row) (workflow.Unsaved, error) { return scanDraft(r, &files) })
		if err != nil || found == nil {
			return found, err
		}
		return found, files.readFiles(c, &found.Definition)
	})
}

func scanDraft(r database.Row, files *filePointers) (workflow.Unsaved, error) {
	var (
		draft              workflow.Unsaved
		definition, pinned []byte
		pinnedFiles        filePointers
		level              int
	)
	if err := r.Scan(&definition, &pinned, (*[]byte)(files), (*[]byte)(&pinnedFiles), &level); err != nil {
		return draft, err
	}
	if err := json.Unmarshal(pinned, &draft.Pinned); err != nil {
		return draft, fmt.Errorf("%w: %w", workflow.ErrCorrupt, err)
	}
	if err := pinnedFiles.decodePins(draft.Pinned); err != nil {
		return draft, fmt.Errorf("%w: %w", workflow.ErrCorrupt, err)
	}
	var err error
	draft.Definition, err = workflow.ParseStored(definition, level)
	return draft, err
}

// Definition reads the version that a run is pinned to. It returns nil if that
// does not exist.
func (s definitionReader) Definition(ctx context.Context, workflowID string, version int) (*workflow.Definition, error) {
	return view(ctx, s.db, func(c database.Conn) (found *workflow.Definition, err error) {
		var files filePointers
		found, err = database.One(c, `SELECT definition, files, level FROM workflow_versions WHERE workflow_id = $1 AND version = $2`,
			[]any{workflowID, version}, func(r database.Row) (workflow.Definition, error) {
				definition, level := []byte(nil), 0
				if err := r.Scan(&definition, (*[]byte)(&files), &level); err != nil {
					return workflow.Definition{}, err
				}
				return workflow.ParseStored(definition, level)
			})
		if err != nil || found == nil {
			return found, err
		}
		return found, files.readFiles(c, found)
	})
}
