package store

import (
	"cmp"
	"context"
	"slices"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/connection"
	"github.com/stepmill/stepmill/internal/database"
	"github.com/stepmill/stepmill/internal/runqueue"
	"github.com/stepmill/stepmill/internal/workflow"
)

var connectionUsersTable = Table{Name: "connection_users", Key: "workflow_id connection", Text: "workflow_id connection workspace_id"}

// ConnectionUsage implements connection.Store.
func (s Connections) ConnectionUsage(ctx context.Context, workspaceID string, names []string) (map[string]connection.Usage, error) {
	found := map[string]connection.Usage{}
	if len(names) == 0 {
		return found, nil
	}
	err := s.db.read(ctx, func(c database.Conn) error {
		clear(found) // the transaction may be retried
		aliases, err := earlierNames(c, workspaceID, names)
		if err != nil {
			return err
		}
		users, err := connectionUsers(c, workspaceID, names, aliases)
		if err != nil {
			return err
		}
		waiting, err := waitingRuns(c, workspaceID, names, aliases)
		if err != nil {
			return err
		}
		for _, name := range names {
			usage := connection.Usage{Aliases: aliases[name], Workflows: users[name], Waiting: waiting[name]}
			if len(usage.Aliases)+len(usage.Workflows)+usage.Waiting > 0 {
				found[name] = usage
			}
		}
		return nil
	})
	return found, err
}

// earlierNames returns the names that connections had before, sorted, by their present
// names.
func earlierNames(c database.Conn, workspaceID string, names []string) (map[string][]string, error) {
	aliases, args := map[string][]string{}, []any{workspaceID}
	for _, name := range names {
		args = append(args, name)
	}
	err := c.Query(`SELECT c.name, a.name FROM connections c JOIN connection_aliases a ON a.connection_id = c.id AND a.workspace_id = c.workspace_id
		WHERE c.workspace_id = $1 AND c.name IN (`+database.Placeholders(2, len(names))+`) ORDER BY a.name`, args, func(r database.Row) error {
		var name, alias string
		err := r.Scan(&name, &alias)
		aliases[name] = append(aliases[name], alias)
		return err
	})
	return aliases, err
}

// waitingRuns counts the runs that wait for connections, also under earlier names, by the
// present names.
func waitingRuns(c database.Conn, workspaceID string, names []string, aliases map[string][]string) (map[string]int, error) {
	waiting, present, all := map[string]int{}, map[string]string{}, []string(nil)
	for _, now := range names {
		for _, name := range append([]string{now}, aliases[now]...) {
			present[name] = now
			all = append(all, name)
		}
	}
	found, err := runqueue.CountAwaiting(c, workspaceID, awaitsConnections(all))
	for awaits, runs := range found {
		name, _ := action.Awaits(awaits).Connection()
		waiting[present[name]] += runs
	}
	return waiting, err
}

// connectionUsers returns the first workflows that use each of the connections, also
// under earlier names, the active ones before the others.
func connectionUsers(c database.Conn, workspaceID string, names []string, aliases map[string][]string) (map[string][]connection.User, error) {
	present, args := map[string]string{}, []any{workspaceID, connection.MaxUsers}
	for _, now := range names {
		for _, name := range append([]string{now}, aliases[now]...) {
			present[name] = now
			args = append(args, name)
		}
	}
	users := map[string][]connection.User{}
	err := c.Query(`SELECT connection, id, name, active FROM (
			SELECT u.connection, w.id, w.name, w.state = 'active' AS active,
				row_number() OVER (PARTITION BY u.connection ORDER BY CASE w.state WHEN 'active' THEN 0 ELSE 1 END, w.name, w.id) AS place
			FROM connection_users u JOIN workflows w ON w.id = u.workflow_id AND w.workspace_id = u.workspace_id AND w.deleted_at IS NULL
			WHERE u.workspace_id = $1 AND u.connection IN (`+database.Placeholders(3, len(present))+`)) AS users
		WHERE place <= $2 ORDER BY connection, place`, args, func(r database.Row) error {
		var name string
		var user connection.User
		err := r.Scan(&name, &user.ID, &user.Name, &user.Active)
		users[present[name]] = append(users[present[name]], user)
		return err
	})
	for name := range aliases {
		users[name] = mergeUsers(users[name])
	}
	return users, err
}

// mergeUsers puts the workflows that use a connection under several names in order.
func mergeUsers(users []connection.User) []connection.User {
	slices.SortFunc(users, func(a, b connection.User) int {
		if a.Active != b.Active {
			return map[bool]int{true: -1, false: 1}[a.Active]
		}
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	users = slices.Compact(users)
	return users[:min(len(users), connection.MaxUsers)]
}

// ConnectionPlaces implements connection.Store.
func (s Connections) ConnectionPlaces(ctx context.Context, workspaceID, workflowID string, names []string) (connection.Places, error) {
	w, err := s.db.Workflows.Workflow(ctx, workspaceID, workflowID)
	if err != nil || w == nil {
		return connection.Places{}, err
	}
	uses := func(name string) bool { return slices.Contains(names, name) }
	return connection.Places{Steps: w.Definition.StepsUsing(uses), Triggers: w.Definition.TriggersUsing(uses)}, nil
}

func updateConnectionUsers(tx *transaction, w workflow.Workflow) error {
	if err := tx.Do(`DELETE FROM connection_users WHERE workflow_id = $1`, w.ID); err != nil {
		return err
	}
	for _, name := range w.Definition.Connections() {
		if err := tx.Do(`INSERT INTO connection_users (workflow_id, connection, workspace_id) VALUES ($1, $2, $3)`, w.ID, name, w.WorkspaceID); err != nil {
			return err
		}
	}
	return nil
}
