package api

import (
	"context"

	"github.com/stepmill/stepmill/internal/audit"
	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/transport"
)

type auditLog struct {
	audit   *audit.Service
	cursors *paging.Codec
}

type auditBody struct {
	ID         string         `json:"id"`
	At         string         `json:"at"`
	Actor      auditActor     `json:"actor"`
	Action     string         `json:"action"`
	TargetType string         `json:"target_type"`
	TargetID   string         `json:"target_id"`
	TargetName *string        `json:"target_name"`
	Details    map[string]any `json:"details"`
	RequestID  *string        `json:"request_id"`
}

type auditActor struct {
	Type string  `json:"type"`
	ID   *string `json:"id"`
	Name *string `json:"name"`
}

type listAuditRequest struct {
	transport.Page
	Action   string `query:"action"`
	TargetID string `query:"target_id"`
}

func (h *auditLog) list(ctx context.Context, in *listAuditRequest) (*transport.Reply, error) {
	filter := audit.Filter{Action: in.Action, TargetID: in.TargetID}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"audit", in.Action, in.TargetID},
		func(p paging.Request) (paging.Page[audit.Entry], error) {
			return h.audit.List(ctx, transport.Actor(ctx).Workspace.ID, filter, p)
		},
		func(e audit.Entry) auditBody {
			return auditBody{
				ID: e.ID, At: clock.Format(e.At), Actor: auditActor{e.ActorType, orNull(e.ActorID), orNull(e.ActorName)}, Action: e.Action,
				TargetType: e.TargetType, TargetID: e.TargetID, TargetName: orNull(e.TargetName), Details: e.Details, RequestID: orNull(e.RequestID),
			}
		})
}
