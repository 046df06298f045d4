package api

import (
	"context"
	"encoding/csv"
	"io"

	"github.com/stepmill/stepmill/internal/table"
	"github.com/stepmill/stepmill/internal/transport"
	"github.com/stepmill/stepmill/internal/txn"
)

type importRowsRequest struct {
	ID   string `path:"id"`
	Body []byte `body:"csv"`
}

type importBody struct {
	Created int `json:"created"`
	Updated int `json:"updated"`
}

type preparedRows struct {
	tableID string
	rows    table.Import
}

// prepareRows reads the file before the transaction that writes its rows.
func (h *tables) prepareRows(ctx context.Context, in *importRowsRequest) (preparedRows, error) {
	rows, err := h.tables.PrepareImport(ctx, transport.Actor(ctx), in.ID, in.Body)
	return preparedRows{in.ID, rows}, err
}

func (h *tables) importRows(ctx context.Context, tx txn.Tx, p preparedRows) (*transport.Reply, error) {
	done, err := h.tables.In(tx).Import(ctx, transport.Actor(ctx), p.tableID, p.rows)
	if err != nil {
		return nil, err
	}
	return transport.OK(importBody{done.Created, done.Updated}), nil
}

func (h *tables) exportRows(ctx context.Context, in *idRequest) (*transport.Reply, error) {
	actor := transport.Actor(ctx)
	t, err := h.tables.Get(ctx, actor, in.ID)
	if err != nil {
		return nil, err
	}
	response := &transport.Reply{Download: func(w io.Writer) error {
		out := csv.NewWriter(w)
		if err := out.Write(t.CSVHeader()); err != nil {
			return err
		}
		err := h.tables.Export(ctx, actor, t, func(r table.Row) error { return out.Write(t.CSVFields(r)) })
		out.Flush()
		if err == nil {
			err = out.Error()
		}
		return err
	}}
	return response.WithHeader("Content-Type", transport.MediaCSV+"; charset=utf-8").
		WithHeader("Content-Disposition", `attachment; filename="`+t.Name+`.csv"`), nil
}
