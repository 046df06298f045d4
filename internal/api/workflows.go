package api

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/etag"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictyaml"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
	"github.com/stepmill/stepmill/internal/workflow"
)

type workflows struct {
	workflows *workflow.Service
	cursors   *paging.Codec
}

type workflowBody struct {
	ID          string             `json:"id"`
	Name        string             `json:"name"`
	Description *string            `json:"description"`
	State       workflow.State     `json:"state"`
	Version     int                `json:"version"`
	Triggers    []workflow.Trigger `json:"triggers"`
	Steps       []workflow.Step    `json:"steps"`
	Settings    workflow.Settings  `json:"settings"`
	Layout      workflow.Layout    `json:"layout"`
	Pinned      workflow.Pins      `json:"pinned"`
	Source      *string            `json:"source"`
	SourceStale bool               `json:"source_stale"`
	Warnings    []workflow.Problem `json:"warnings"`
	CreatedAt   string             `json:"created_at"`
	UpdatedAt   string             `json:"updated_at"`
}

func showWorkflow(w workflow.Workflow) *transport.Reply {
	return transport.OK(workflowBody{
		ID: w.ID, Name: w.Name, Description: w.Description, State: w.State, Version: w.Version,
		Triggers: orEmpty(w.Definition.Triggers), Steps: orEmpty(w.Definition.Steps),
		Settings: w.Definition.Settings, Layout: w.Layout, Pinned: w.Pinned, Source: w.Source, SourceStale: w.SourceStale,
		Warnings: orEmpty(w.Definition.Warnings()), CreatedAt: clock.Format(w.CreatedAt), UpdatedAt: clock.Format(w.UpdatedAt),
	}).WithHeader("ETag", w.ETag())
}

type workflowItem struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	State     workflow.State `json:"state"`
	CreatedAt string         `json:"created_at"`
	UpdatedAt string         `json:"updated_at"`
}

type listWorkflowsRequest struct {
	transport.Page
	State   string `query:"state"`
	Text    string `query:"text"`
	Include string `query:"include"`
}

func (in *listWorkflowsRequest) filter() (f workflow.Filter, err error) {
	f.State = workflow.State(in.State)
	if in.State != "" && !f.State.Known() {
		return f, transport.Parameter("state", "must be one of draft, active, paused")
	}
	if in.Text != "" {
		f.Words, err = words("text", in.Text)
	}
	return f, err
}

// name identifies the list in its cursors.
func (in *listWorkflowsRequest) name() []string {
	return []string{"workflows", in.State, strconv.Quote(in.Text)}
}

func (h *workflows) list(ctx context.Context, in *listWorkflowsRequest) (*transport.Reply, error) {
	filter, err := in.filter()
	if err != nil {
		return nil, err
	}
	switch in.Include {
	case "":
	case "activity":
		return h.listActivity(ctx, in, filter)
	default:
		return nil, transport.Parameter("include", "must be activity")
	}
	return transport.Paginate(ctx, h.cursors, in.Page, in.name(),
		func(p paging.Request) (paging.Page[workflow.Item], error) {
			return h.workflows.List(ctx, transport.Actor(ctx), filter, p)
		},
		showWorkflowItem)
}

func showWorkflowItem(i workflow.Item) workflowItem {
	return workflowItem{i.ID, i.Name, i.State, clock.Format(i.CreatedAt), clock.Format(i.UpdatedAt)}
}

type createWorkflowRequest struct {
	Body struct {
		Name        *string `json:"name"`
		Description *string `json:"description" null:"ok"`
		// Decoded only to tell the caller where steps and triggers belong.
		Steps    json.RawMessage `json:"steps"`
		Triggers json.RawMessage `json:"triggers"`
	} `body:"required"`
}

func (h *workflows) create(ctx context.Context, tx txn.Tx, in *createWorkflowRequest) (*transport.Reply, error) {
	switch {
	case in.Body.Steps != nil:
		return nil, fault.Field("/steps", "a workflow starts without steps; add them with PATCH /v1/workflows/{id}")
	case in.Body.Triggers != nil:
		return nil, fault.Field("/triggers", "a workflow starts without triggers; add them with PATCH /v1/workflows/{id}")
	case in.Body.Name == nil:
		return nil, fault.Field("/name", "is required")
	}
	w, err := h.workflows.In(tx).Create(ctx, transport.Actor(ctx), workflow.New{Name: *in.Body.Name, Description: in.Body.Description})
	if err != nil {
		return nil, err
	}
	return showNewWorkflow(w), nil
}

type workflowRequest struct {
	ID     string `path:"id"`
	Accept string `header:"Accept"`
}

// workflowDocument is a workflow as YAML. A patch accepts it unchanged.
type workflowDocument struct {
	Name        string  `json:"name"`
	Description *string `json:"description,omitempty"`
	definitionDocument
	Layout workflow.Layout `json:"layout,omitempty"`
}

type definitionDocument struct {
	Triggers []workflow.Trigger `json:"triggers"`
	Steps    []workflow.Step    `json:"steps"`
	Settings workflow.Settings  `json:"settings,omitzero"`
}

func documentOf(d workflow.Definition) definitionDocument {
	return definitionDocument{orEmpty(d.Triggers), orEmpty(d.Steps), d.Settings}
}

func (h *workflows) get(ctx context.Context, in *workflowRequest) (*transport.Reply, error) {
	w, err := h.workflows.Get(ctx, transport.Actor(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	response := showWorkflow(w)
	if transport.PrefersYAML(in.Accept) {
		if response, err = transport.YAML(workflowDocument{w.Name, w.Description, documentOf(w.Definition), w.Layout}); err != nil {
			return nil, err
		}
		response.WithHeader("ETag", w.ETag())
	}
	return response.WithHeader("Vary", "Accept"), nil
}

type deleteWorkflowRequest struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
}

func (h *workflows) remove(ctx context.Context, in *deleteWorkflowRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.workflows.Delete(ctx, transport.Actor(ctx), in.ID, etag.ParseMatch(in.IfMatch))
}

type validateWorkflowRequest struct {
	ID   string          `path:"id"`
	Body definitionPatch `body:"optional" yaml:"ok"`
}

type validationBody struct {
	Valid    bool               `json:"valid"`
	Problems []workflow.Problem `json:"problems"`
	Warnings []workflow.Problem `json:"warnings"`
}

// Locate adds line and column to the problems.
func (b validationBody) Locate(document *strictyaml.Document) {
	for _, list := range [][]workflow.Problem{b.Problems, b.Warnings} {
		for i := range list {
			list[i].Line, list[i].Column, _ = document.At(list[i].Pointer)
		}
	}
}

func (h *workflows) validate(ctx context.Context, in *validateWorkflowRequest) (*transport.Reply, error) {
	if in.Body.Settings.Null {
		return nil, fault.Field("/settings", "must not be null")
	}
	problems, warnings, err := h.workflows.Validate(ctx, transport.Actor(ctx), in.ID, in.Body.patch())
	if err != nil {
		return nil, err
	}
	return transport.OK(validationBody{Valid: len(problems) == 0, Problems: orEmpty(problems), Warnings: orEmpty(warnings)}), nil
}

type versionItem struct {
	Version       int     `json:"version"`
	CreatedAt     string  `json:"created_at"`
	CreatedBy     *string `json:"created_by"`
	CreatedByName *string `json:"created_by_name"`
}

type versionBody struct {
	WorkflowID string             `json:"workflow_id"`
	Version    int                `json:"version"`
	Triggers   []workflow.Trigger `json:"triggers"`
	Steps      []workflow.Step    `json:"steps"`
	Settings   workflow.Settings  `json:"settings"`
	Source     *string            `json:"source"`
	CreatedAt  string             `json:"created_at"`
	CreatedBy  *string            `json:"created_by"`
}

type listVersionsRequest struct {
	transport.Page
	ID string `path:"id"`
}

func (h *workflows) listVersions(ctx context.Context, in *listVersionsRequest) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"versions", in.ID},
		func(p paging.Request) (paging.Page[workflow.Version], error) {
			return h.workflows.Versions(ctx, transport.Actor(ctx), in.ID, p)
		},
		func(v workflow.Version) versionItem {
			return versionItem{v.Number, clock.Format(v.CreatedAt), orNull(v.CreatedBy), orNull(v.CreatedByName)}
		})
}

type versionRequest struct {
	ID string `path:"id"`
	N  int    `path:"n"`
}

type getVersionRequest struct {
	versionRequest
	Accept string `header:"Accept"`
}

func (h *workflows) getVersion(ctx context.Context, in *getVersionRequest) (*transport.Reply, error) {
	if in.N < 1 {
		return nil, transport.Parameter("n", "must be a positive whole number")
	}
	v, err := h.workflows.Version(ctx, transport.Actor(ctx), in.ID, in.N)
	if err != nil {
		return nil, err
	}
	d := v.Definition
	response := transport.OK(versionBody{
		WorkflowID: v.WorkflowID, Version: v.Number, Triggers: orEmpty(d.Triggers), Steps: orEmpty(d.Steps), Settings: d.Settings, Source: v.Source,
		CreatedAt: clock.Format(v.CreatedAt), CreatedBy: orNull(v.CreatedBy),
	})
	if transport.PrefersYAML(in.Accept) {
		if response, err = transport.YAML(documentOf(d)); err != nil {
			return nil, err
		}
	}
	return response.WithHeader("Vary", "Accept"), nil
}

type restoreVersionRequest struct {
	versionRequest
	IfMatch string `header:"If-Match"`
}

func (h *workflows) prepareRestore(ctx context.Context, in *restoreVersionRequest) (workflow.Prepared, error) {
	if in.N < 1 {
		return workflow.Prepared{}, transport.Parameter("n", "must be a positive whole number")
	}
	return h.workflows.PrepareRestore(ctx, transport.Actor(ctx), in.ID, in.N, etag.ParseMatch(in.IfMatch))
}

func (h *workflows) restore(ctx context.Context, tx txn.Tx, p workflow.Prepared) (*transport.Reply, error) {
	w, err := h.commit(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return showWorkflow(w), nil
}

func (h *workflows) insert(ctx context.Context, tx txn.Tx, p workflow.Prepared) (*transport.Reply, error) {
	w, err := h.commit(ctx, tx, p)
	if err != nil {
		return nil, err
	}
	return showNewWorkflow(w), nil
}

func (h *workflows) commit(ctx context.Context, tx txn.Tx, p workflow.Prepared) (workflow.Workflow, error) {
	w, committed, err := h.workflows.In(tx).Commit(ctx, p)
	if err == nil && !committed {
		err = transport.ErrStale
	}
	return w, err
}

func showNewWorkflow(w workflow.Workflow) *transport.Reply {
	return showWorkflow(w).WithHeader("Location", "/v1/workflows/"+w.ID)
}
