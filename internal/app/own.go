package app

import (
	"context"
	"strings"

	"github.com/stepmill/stepmill/internal/action"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation"
	"github.com/stepmill/stepmill/internal/ownintegration"
	"github.com/stepmill/stepmill/internal/store"
	"github.com/stepmill/stepmill/internal/trigger/service"
	"github.com/stepmill/stepmill/internal/workflow"
)

// ownSource lets definitions name what workspaces have described themselves. It implements
// workflow.OwnSource.
type ownSource struct {
	integrations *ownintegration.Service
	store        *store.DB
	operations   *operation.Actions
	// actions and types are those that ship with Stepmill.
	actions *action.Catalog
	types   *workflow.TriggerTypes
}

func (ownSource) IsOwn(name string) bool { return integration.IsOwn(name) }

func (o ownSource) Workspace(ctx context.Context, id string) (string, error) {
	return o.store.OwnIntegrations.WorkspaceOf(ctx, id)
}

func (o ownSource) Version(ctx context.Context, workspaceID string, ids []string) (string, error) {
	digests, err := o.integrations.Digests(ctx, workspaceID, ids)
	return strings.Join(digests, " "), err
}

func (o ownSource) Vocabulary(ctx context.Context, workspaceID string, ids []string) (v workflow.Vocabulary, version string, size int, err error) {
	digests := make([]string, len(ids))
	var found []*integration.Integration
	for i, id := range ids {
		one, err := o.integrations.Find(ctx, workspaceID, id)
		if err != nil {
			return v, "", 0, err
		}
		if one != nil {
			digests[i], size = one.Digest(), size+one.Size()
			found = append(found, one)
		}
	}
	operations := o.operations.With(found...)
	v = workflow.Vocabulary{Actions: o.actions.With(operations), Types: o.types.With(service.NewTypes(operations))}
	return v, strings.Join(digests, " "), size, nil
}
