package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/workflow"
)

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
	return tx.Do(`INSERT INTO run_drafts (run_id, definition, pinned) VALUES ($1, $2, $3)`, runID, string(definition), string(pinned))
}

// Draft reads the definition that the run of a draft executes. It returns nil if
// the run does not exist or executes a version.
func (s *Store) Draft(ctx context.Context, runID string) (*workflow.Unsaved, error) {
	var found *workflow.Unsaved
	err := s.read(ctx, func(c database.Conn) (err error) {
		found, err = database.One(c, `SELECT definition, pinned FROM run_drafts WHERE run_id = $1`, []any{runID}, scanDraft)
		return err
	})
	return found, err
}

func scanDraft(r database.Row) (workflow.Unsaved, error) {
	var (
		draft              workflow.Unsaved
		definition, pinned []byte
	)
	if err := r.Scan(&definition, &pinned); err != nil {
		return draft, err
	}
	if err := json.Unmarshal(pinned, &draft.Pinned); err != nil {
		return draft, fmt.Errorf("%w: %w", workflow.ErrCorrupt, err)
	}
	var err error
	draft.Definition, err = workflow.ParseDefinition(definition)
	return draft, err
}
