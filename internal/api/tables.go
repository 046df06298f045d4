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
)

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

func (s *Server) listTables(ctx context.Context, in *page) (*reply, error) {
	return paginate(ctx, s, *in, []string{"tables"},
		func(p paging.Request) (paging.Page[table.Table], error) { return s.Tables.List(ctx, actorOf(ctx), p) }, showTable)
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

func (s *Server) createTable(ctx context.Context, in *createTableRequest) (*reply, error) {
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
	t, err := s.Tables.Create(ctx, actorOf(ctx), *in.Body.Name, columns, key)
	if err != nil {
		return nil, err
	}
	return ok(showTable(t)).withHeader("Location", "/v1/tables/"+t.ID), nil
}

type tableRequest struct {
	ID string `path:"id"`
}

func (s *Server) getTable(ctx context.Context, in *tableRequest) (*reply, error) {
	t, err := s.Tables.Get(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return ok(showTable(t)), nil
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

func (s *Server) updateTable(ctx context.Context, in *updateTableRequest) (*reply, error) {
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
	t, err := s.Tables.Update(ctx, actorOf(ctx), in.ID, patch)
	if err != nil {
		return nil, err
	}
	return ok(showTable(t)), nil
}

// columnError moves the first problem of a column to its place in the body.
func columnError(name string, err error) error {
	var problems strictjson.Errors
	if !errors.As(err, &problems) {
		return err
	}
	return fault.Field(jsonpointer.Of("columns", name)+problems[0].Pointer, "%s", problems[0].Message)
}

func (s *Server) deleteTable(ctx context.Context, in *tableRequest) (*reply, error) {
	return &reply{}, s.Tables.Delete(ctx, actorOf(ctx), in.ID)
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
	page
	ID     string `path:"id"`
	Filter string `query:"filter"`
	Sort   string `query:"sort"`
}

func (s *Server) listRows(ctx context.Context, in *listRowsRequest) (*reply, error) {
	find := table.Find{Sort: in.Sort}
	if in.Filter != "" {
		find.Filter = json.RawMessage(in.Filter)
	}
	return paginate(ctx, s, in.page, []string{"rows", in.ID, in.Filter, in.Sort}, func(p paging.Request) (paging.Page[table.Row], error) {
		find.Limit, find.After = p.Limit, p.After
		found, err := s.Tables.Find(ctx, actorOf(ctx), in.ID, find)
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

func (s *Server) createRow(ctx context.Context, in *putRowRequest) (*reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	row, err := s.Tables.Insert(ctx, actorOf(ctx), in.ID, in.Body.Values)
	if err != nil {
		return nil, err
	}
	return ok(showRow(row)).withHeader("Location", "/v1/tables/"+in.ID+"/rows/"+row.ID), nil
}

// upsertRow responds with 201 and the location if it created the row.
func (s *Server) upsertRow(ctx context.Context, in *putRowRequest) (*reply, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	done, err := s.Tables.Upsert(ctx, actorOf(ctx), in.ID, in.Body.Values)
	if err != nil {
		return nil, err
	}
	response := ok(showRow(done.Row))
	if done.Created {
		response.status = http.StatusCreated
		response.withHeader("Location", "/v1/tables/"+in.ID+"/rows/"+done.Row.ID)
	}
	return response, nil
}

type rowRequest struct {
	ID    string `path:"id"`
	RowID string `path:"row_id"`
}

func (s *Server) getRow(ctx context.Context, in *rowRequest) (*reply, error) {
	row, err := s.Tables.Row(ctx, actorOf(ctx), in.ID, in.RowID)
	if err != nil {
		return nil, err
	}
	return ok(showRow(row)), nil
}

type updateRowRequest struct {
	rowRequest
	Body struct {
		Values table.Values `json:"values"`
	} `body:"required"`
}

func (s *Server) updateRow(ctx context.Context, in *updateRowRequest) (*reply, error) {
	row, err := s.Tables.UpdateRow(ctx, actorOf(ctx), in.ID, in.RowID, in.Body.Values)
	if err != nil {
		return nil, err
	}
	return ok(showRow(row)), nil
}

func (s *Server) deleteRow(ctx context.Context, in *rowRequest) (*reply, error) {
	return &reply{}, s.Tables.DeleteRow(ctx, actorOf(ctx), in.ID, in.RowID)
}
