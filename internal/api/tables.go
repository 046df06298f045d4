package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/jsonpointer"
	"github.com/stepmill/stepmill/internal/paging"
	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type tables struct {
	tables  *table.Service
	cursors *paging.Codec
}

type tableBody struct {
	ID        string         `json:"id"`
	Name      string         `json:"name"`
	Key       *string        `json:"key"`
	Columns   []table.Column `json:"columns"`
	Rows      int            `json:"rows"`
	Bytes     int            `json:"bytes"`
	CreatedAt string         `json:"created_at"`
	CreatedBy *string        `json:"created_by"`
	UpdatedAt string         `json:"updated_at"`
	UpdatedBy *string        `json:"updated_by"`
}

func showTable(t table.Table) tableBody {
	body := tableBody{
		ID: t.ID, Name: t.Name, Columns: t.Columns, Rows: t.Rows, Bytes: t.Bytes,
		CreatedAt: clock.Format(t.CreatedAt), CreatedBy: orNull(t.CreatedBy), UpdatedAt: clock.Format(t.UpdatedAt), UpdatedBy: orNull(t.UpdatedBy),
	}
	if key := t.KeyColumn(); key != nil {
		body.Key = &key.Name
	}
	return body
}

func (h *tables) list(ctx context.Context, in *transport.Page) (*transport.Reply, error) {
	return transport.Paginate(ctx, h.cursors, *in, []string{"tables"},
		func(p paging.Request) (paging.Page[table.Table], error) {
			return h.tables.List(ctx, transport.Actor(ctx), p)
		}, showTable)
}

type createTableRequest struct {
	Body struct {
		Name    *string         `json:"name"`
		Key     *string         `json:"key" null:"ok"`
		Columns []newColumnBody `json:"columns"`
	} `body:"required"`
}

type newColumnBody struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Required bool   `json:"required"`
	Indexed  bool   `json:"indexed"`
}

func (h *tables) create(ctx context.Context, tx txn.Tx, in *createTableRequest) (*transport.Reply, error) {
	if in.Body.Name == nil {
		return nil, fault.Field("/name", "is required")
	}
	key := ""
	if in.Body.Key != nil {
		if key = *in.Body.Key; key == "" {
			return nil, fault.Field("/key", "must be the name of a column; leave it out for a table without a key")
		}
	}
	columns := showAll(in.Body.Columns, func(c newColumnBody) table.NewColumn {
		return table.NewColumn{Name: c.Name, Type: table.Type(c.Type), Required: c.Required, Indexed: c.Indexed}
	})
	t, err := h.tables.In(tx).Create(ctx, transport.Actor(ctx), *in.Body.Name, columns, key)
	if err != nil {
		return nil, err
	}
	return transport.OK(showTable(t)).WithHeader("Location", "/v1/tables/"+t.ID), nil
}

func (h *tables) get(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	t, err := h.tables.Get(ctx, transport.Actor(ctx), in.ID)
	return transport.Respond(showTable, t, err)
}

type updateTableRequest struct {
	ID   string `path:"id"`
	Body struct {
		Name    *string                    `json:"name"`
		Columns map[string]json.RawMessage `json:"columns"`
	} `body:"required"`
}

type columnPatchBody struct {
	Name     *string `json:"name"`
	Type     *string `json:"type"`
	Required *bool   `json:"required"`
	Indexed  *bool   `json:"indexed"`
}

func (h *tables) update(ctx context.Context, in *updateTableRequest) (*transport.Reply, error) {
	patch := table.Patch{Name: in.Body.Name, Columns: map[string]*table.ColumnPatch{}}
	for name, raw := range in.Body.Columns {
		if string(raw) == "null" {
			patch.Columns[name] = nil
			continue
		}
		var body columnPatchBody
		if err := strictjson.DecodeBody(raw, &body); err != nil {
			return nil, columnError(name, err)
		}
		patch.Columns[name] = &table.ColumnPatch{Name: body.Name, Type: (*table.Type)(body.Type), Required: body.Required, Indexed: body.Indexed}
	}
	t, err := h.tables.Update(ctx, transport.Actor(ctx), in.ID, patch)
	return transport.Respond(showTable, t, err)
}

// columnError moves the first problem of a column to its place in the body.
func columnError(name string, err error) error {
	var problems strictjson.Errors
	if !errors.As(err, &problems) {
		return err
	}
	return fault.Field(jsonpointer.Of("columns", name)+problems[0].Pointer, "%s", problems[0].Message)
}

func (h *tables) remove(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.tables.Delete(ctx, transport.Actor(ctx), in.ID)
}

type rowBody struct {
	ID        string       `json:"id"`
	Values    table.Values `json:"values"`
	CreatedAt string       `json:"created_at"`
	UpdatedAt string       `json:"updated_at"`
}

func showRow(r table.Row) rowBody {
	return rowBody{ID: r.ID, Values: r.Values, CreatedAt: clock.Format(r.CreatedAt), UpdatedAt: clock.Format(r.UpdatedAt)}
}

type listRowsRequest struct {
	transport.Page
	ID     string `path:"id"`
	Filter string `query:"filter"`
	Sort   string `query:"sort"`
}

func (h *tables) listRows(ctx context.Context, in *listRowsRequest) (*transport.Reply, error) {
	find := table.Find{Sort: in.Sort}
	if in.Filter != "" {
		find.Filter = json.RawMessage(in.Filter)
	}
	return transport.Paginate(ctx, h.cursors, in.Page, []string{"rows", in.ID, in.Filter, in.Sort}, func(p paging.Request) (paging.Page[table.Row], error) {
		find.Limit, find.After = p.Limit, p.After
		found, err := h.tables.Find(ctx, transport.Actor(ctx), in.ID, find)
		return paging.Page[table.Row]{Items: found.Rows, Next: found.Next}, err
	}, showRow)
}

type putRowRequest struct {
	ID   string `path:"id"`
	Body struct {
		Values table.Values `json:"values"`
	} `body:"required"`
}

func (r *putRowRequest) check() error {
	if r.Body.Values == nil {
		return fault.Field("/values", "is required")
	}
	return nil
}

func (h *tables) createRow(ctx context.Context, tx txn.Tx, in *putRowRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	row, err := h.tables.In(tx).Insert(ctx, transport.Actor(ctx), in.ID, in.Body.Values)
	if err != nil {
		return nil, err
	}
	return transport.OK(showRow(row)).WithHeader("Location", "/v1/tables/"+in.ID+"/rows/"+row.ID), nil
}

// upsertRow responds with 201 and the location if it created the row.
func (h *tables) upsertRow(ctx context.Context, in *putRowRequest) (*transport.Reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	done, err := h.tables.Upsert(ctx, transport.Actor(ctx), in.ID, in.Body.Values)
	if err != nil {
		return nil, err
	}
	response := transport.OK(showRow(done.Row))
	if done.Created {
		response.Status = http.StatusCreated
		response.WithHeader("Location", "/v1/tables/"+in.ID+"/rows/"+done.Row.ID)
	}
	return response, nil
}

type rowRequest struct {
	ID    string `path:"id"`
	RowID string `path:"row_id"`
}

func (h *tables) getRow(ctx context.Context, in *rowRequest) (*transport.Reply, error) {
	row, err := h.tables.Row(ctx, transport.Actor(ctx), in.ID, in.RowID)
	return transport.Respond(showRow, row, err)
}

type updateRowRequest struct {
	rowRequest
	Body struct {
		Values table.Values `json:"values"`
	} `body:"required"`
}

func (h *tables) updateRow(ctx context.Context, in *updateRowRequest) (*transport.Reply, error) {
	row, err := h.tables.UpdateRow(ctx, transport.Actor(ctx), in.ID, in.RowID, in.Body.Values)
	return transport.Respond(showRow, row, err)
}

func (h *tables) removeRow(ctx context.Context, in *rowRequest) (*transport.Reply, error) {
	return &transport.Reply{}, h.tables.DeleteRow(ctx, transport.Actor(ctx), in.ID, in.RowID)
}
