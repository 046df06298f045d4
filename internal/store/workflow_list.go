package store

import (
	"context"

	"github.com/stepmill/stepmill/internal/auth"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/search"
	"github.com/stepmill/stepmill/internal/workflow"
)

// Workflows implements workflow.Store.
func (s Workflows) Workflows(ctx context.Context, workspaceID string, filter workflow.Filter, page paging.Request) (paging.Page[workflow.Item], error) {
	// Without a search every row is part of the page.
	maxRows, description := page.Limit+1, "NULL AS description"
	if !filter.Words.IsZero() {
		maxRows, description = maxScanned, "description"
	}
	statement := `SELECT id, name, state, created_at, updated_at, ` + description + ` FROM workflows
		WHERE workspace_id = $1 AND deleted_at IS NULL AND id < $2`
	args := []any{workspaceID, before(page.After), maxRows}
	if filter.State != "" {
		statement += ` AND state = $4`
		args = append(args, string(filter.State))
	}
	return view(ctx, s.db, func(c database.Conn) (found paging.Page[workflow.Item], err error) {
		found, err = scanPage(c, statement+` ORDER BY id DESC LIMIT $3`, args, page.Limit, func(i workflow.Item) string { return i.ID },
			func(r database.Row) (workflow.Item, bool, error) {
				item, entry, err := scanWorkflowItem(r)
				return item, filter.Words.Matches(entry), err
			})
		return found, err
	})
}

// SearchWorkflows implements workflow.Store. Databases disagree on case beyond
// ASCII, so the rows are matched here: all of a workspace, at most 10,000 in any
// plan. The conformance suite logs how long that takes.
func (s Workflows) SearchWorkflows(ctx context.Context, workspaceID string, query search.Query, limit int) ([]workflow.Item, error) {
	var best *search.Best[workflow.Item]
	err := s.db.read(ctx, func(c database.Conn) error {
		best = search.NewBest[workflow.Item](limit)
		return c.Query(`SELECT id, name, state, created_at, updated_at, description FROM workflows
			WHERE workspace_id = $1 AND deleted_at IS NULL ORDER BY id DESC LIMIT $2`,
			[]any{workspaceID, auth.Enterprise.Limits().Workflows}, func(r database.Row) error {
				item, entry, err := scanWorkflowItem(r)
				best.Add(query.Rank(entry), entry, item)
				return err
			})
	})
	if err != nil {
		return nil, err
	}
	return best.Items(), nil
}

// scanWorkflowItem reads an item of the list and its search entry.
func scanWorkflowItem(r database.Row) (item workflow.Item, entry search.Entry, err error) {
	var description *string
	err = r.Scan(&item.ID, &item.Name, (*string)(&item.State), &item.CreatedAt, &item.UpdatedAt, &description)
	entry = search.Entry{ID: item.ID, Name: item.Name}
	if description != nil {
		entry.Text = []string{*description}
	}
	return item, entry, err
}
