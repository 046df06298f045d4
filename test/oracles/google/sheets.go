package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/sheets/v4"
)

// sheetsInput has the inputs of all operations of Google Sheets.
type sheetsInput struct {
	Spreadsheet string           `json:"spreadsheet"`
	Sheet       int64            `json:"sheet"`
	Row         map[string]any   `json:"row"`
	Rows        []map[string]any `json:"rows"`
	Column      string           `json:"column"`
	Value       any              `json:"value"`
	Raw         bool             `json:"raw"`
	Show        string           `json:"show"`
	RowNumber   int64            `json:"row_number"`
	Count       int64            `json:"count"`
	KeepHeader  *bool            `json:"keep_header"`
	Range       string           `json:"range"`
	Values      [][]any          `json:"values"`
	Title       string           `json:"title"`
	Sheets      []string         `json:"sheets"`
	Locale      string           `json:"locale"`
	TimeZone    string           `json:"time_zone"`
	Search      string           `json:"search"`
	Limit       int64            `json:"limit"`
	All         bool             `json:"all"`
	hookInput
	Cursor struct {
		Row int64 `json:"row"`
	} `json:"cursor"`
}

// sheetsCall is an operation with its input.
type sheetsCall struct {
	sheetsInput
	ctx    context.Context
	client *http.Client
	*sheets.Service
}

var sheetsOperations = operations{
	"hooks/channel": sheetsOperation((*sheetsCall).channel),
	"append_row": sheetsOperation(func(c *sheetsCall) error {
		c.Rows = []map[string]any{c.Row}
		return c.appendRows()
	}),
	"append_rows":          sheetsOperation((*sheetsCall).appendRows),
	"get_rows":             sheetsOperation((*sheetsCall).getRows),
	"triggers/new_row":     sheetsOperation((*sheetsCall).rowsAfter),
	"find_row":             sheetsOperation((*sheetsCall).findRow),
	"update_row":           sheetsOperation((*sheetsCall).updateRow),
	"append_or_update_row": sheetsOperation((*sheetsCall).appendOrUpdateRow),
	"delete_rows": sheetsOperation(func(c *sheetsCall) error {
		from := c.RowNumber - 1
		return c.batchUpdate(&sheets.Request{DeleteDimension: &sheets.DeleteDimensionRequest{Range: &sheets.DimensionRange{
			SheetId: c.Sheet, Dimension: "ROWS", StartIndex: from, EndIndex: from + max(c.Count, 1), ForceSendFields: []string{"SheetId", "StartIndex"},
		}}})
	}),
	"clear_sheet": sheetsOperation((*sheetsCall).clear),
	"get_range": sheetsOperation(func(c *sheetsCall) error {
		_, err := c.Spreadsheets.Values.Get(c.Spreadsheet, c.Range).MajorDimension("ROWS").ValueRenderOption(c.render()).DateTimeRenderOption("FORMATTED_STRING").Do()
		return err
	}),
	"update_range": sheetsOperation(func(c *sheetsCall) error {
		values := &sheets.ValueRange{MajorDimension: "ROWS", Values: c.Values}
		_, err := c.Spreadsheets.Values.Update(c.Spreadsheet, c.Range, values).ValueInputOption(c.mode()).Do()
		return err
	}),
	"create_spreadsheet": sheetsOperation(func(c *sheetsCall) error {
		made := &sheets.Spreadsheet{Properties: &sheets.SpreadsheetProperties{Title: c.Title, Locale: c.Locale, TimeZone: c.TimeZone}}
		for _, title := range c.Sheets {
			made.Sheets = append(made.Sheets, &sheets.Sheet{Properties: &sheets.SheetProperties{Title: title}})
		}
		_, err := c.Spreadsheets.Create(made).Fields("spreadsheetId", "spreadsheetUrl", "properties.title", "sheets.properties(sheetId,title)").Do()
		return err
	}),
	"add_sheet": sheetsOperation(func(c *sheetsCall) error {
		return c.batchUpdate(&sheets.Request{AddSheet: &sheets.AddSheetRequest{Properties: &sheets.SheetProperties{Title: c.Title}}})
	}),
	"delete_sheet": sheetsOperation(func(c *sheetsCall) error {
		return c.batchUpdate(&sheets.Request{DeleteSheet: &sheets.DeleteSheetRequest{SheetId: c.Sheet, ForceSendFields: []string{"SheetId"}}})
	}),
	"list_spreadsheets": sheetsOperation((*sheetsCall).listSpreadsheets),
	"list_sheets": sheetsOperation(func(c *sheetsCall) error {
		_, err := c.Spreadsheets.Get(c.Spreadsheet).Fields("sheets.properties(sheetId,title,gridProperties(rowCount,columnCount))").Do()
		return err
	}),
	"list_columns": sheetsOperation(func(c *sheetsCall) error {
		_, err := c.read(&sheets.BatchGetValuesByDataFilterRequest{}, c.rows(0, 1))
		return err
	}),
}

func sheetsOperation(do func(*sheetsCall) error) func(context.Context, *http.Client, []byte) error {
	return func(ctx context.Context, client *http.Client, input []byte) error {
		service, err := sheets.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		c := &sheetsCall{ctx: ctx, client: client, Service: service}
		if err := json.Unmarshal(input, &c.sheetsInput); err != nil {
			return err
		}
		return do(c)
	}
}

func (c *sheetsCall) mode() string {
	if c.Raw {
		return "RAW"
	}
	return "USER_ENTERED"
}

func (c *sheetsCall) render() string {
	switch c.Show {
	case "formatted":
		return "FORMATTED_VALUE"
	case "formula":
		return "FORMULA"
	}
	return "UNFORMATTED_VALUE"
}

// rows returns the range of some rows; those from the first one on need no end.
func (c *sheetsCall) rows(from, to int64) *sheets.GridRange {
	return &sheets.GridRange{SheetId: c.Sheet, StartRowIndex: from, EndRowIndex: to, ForceSendFields: []string{"SheetId", "StartRowIndex"}}
}

// read reads one range.
func (c *sheetsCall) read(how *sheets.BatchGetValuesByDataFilterRequest, what *sheets.GridRange) (*sheets.ValueRange, error) {
	how.DataFilters = []*sheets.DataFilter{{GridRange: what}}
	got, err := c.Spreadsheets.Values.BatchGetByDataFilter(c.Spreadsheet, how).Do()
	if err != nil {
		return nil, err
	}
	return got.ValueRanges[0].ValueRange, nil
}

// header reads the names of the columns, which must have those of the rows.
func (c *sheetsCall) header(appends bool) (where string, columns []string, err error) {
	got, err := c.read(&sheets.BatchGetValuesByDataFilterRequest{}, c.rows(0, 1))
	if err != nil {
		return "", nil, err
	}
	if len(got.Values) == 0 {
		return "", nil, errors.New("no header")
	}
	for i, cell := range got.Values[0] {
		name := fmt.Sprint(cell)
		if name != "" && slices.Contains(columns, name) || name == "" && i == 0 && appends {
			return "", nil, errors.New("the header is ambiguous")
		}
		columns = append(columns, name)
	}
	for _, row := range append(c.Rows, c.Row, map[string]any{c.Column: nil}) {
		for name := range row {
			if name != "" && !slices.Contains(columns, name) {
				return "", nil, fmt.Errorf("no column %s", name)
			}
		}
	}
	return got.Range, columns, nil
}

func cells(columns []string, row map[string]any) []any {
	out := make([]any, len(columns))
	for i, name := range columns {
		out[i] = row[name]
	}
	return out
}

func (c *sheetsCall) appendRows() error {
	where, columns, err := c.header(true)
	if err != nil {
		return err
	}
	for rows := range slices.Chunk(c.Rows, 500) {
		if err := c.append(where, columns, rows...); err != nil {
			return err
		}
	}
	return nil
}

func (c *sheetsCall) append(where string, columns []string, rows ...map[string]any) error {
	values := &sheets.ValueRange{MajorDimension: "ROWS"}
	for _, row := range rows {
		values.Values = append(values.Values, cells(columns, row))
	}
	_, err := c.Spreadsheets.Values.Append(c.Spreadsheet, where, values).ValueInputOption(c.mode()).InsertDataOption("INSERT_ROWS").Do()
	return err
}

// rowCount returns how many rows the sheet has.
func (c *sheetsCall) rowCount() (int64, error) {
	got, err := c.Spreadsheets.Get(c.Spreadsheet).Fields("sheets.properties(sheetId,gridProperties.rowCount)").Do()
	if err != nil {
		return 0, err
	}
	for _, sheet := range got.Sheets {
		if sheet.Properties.SheetId == c.Sheet {
			return sheet.Properties.GridProperties.RowCount, nil
		}
	}
	return 0, errors.New("no such sheet")
}

// getRows reads pages that overlap by one row, so that the first one begins with the
// header and none begins after the end of the sheet.
func (c *sheetsCall) getRows() error {
	count, err := c.rowCount()
	if err != nil {
		return err
	}
	if _, _, err := c.header(false); err != nil {
		return err
	}
	size, limit := c.page(1000)
	var found int64
	for from := int64(0); from == 0 || from+1 < count && found < limit; from += size {
		how := &sheets.BatchGetValuesByDataFilterRequest{MajorDimension: "ROWS", ValueRenderOption: c.render(), DateTimeRenderOption: "FORMATTED_STRING"}
		got, err := c.read(how, c.rows(from, min(from+size+1, count)))
		if err != nil {
			return err
		}
		for _, row := range got.Values[min(1, len(got.Values)):] {
			if len(row) > 0 {
				found++
			}
		}
	}
	return nil
}

// rowsAfter reads the rows around the last one of an earlier poll.
func (c *sheetsCall) rowsAfter() error {
	count, err := c.rowCount()
	if err != nil {
		return err
	}
	if _, _, err := c.header(false); err != nil {
		return err
	}
	near := min(max(c.Cursor.Row, 1), count)
	how := &sheets.BatchGetValuesByDataFilterRequest{MajorDimension: "ROWS", ValueRenderOption: c.render(), DateTimeRenderOption: "FORMATTED_STRING"}
	_, err = c.read(how, c.rows(max(near-250, 0), min(near+500, count)))
	return err
}

// page returns the size of a page and the most items.
func (c *sheetsCall) page(most int64) (size, limit int64) {
	if c.All {
		return most, 1 << 40
	}
	if c.Limit == 0 {
		c.Limit = 100
	}
	return min(most, c.Limit), c.Limit
}

// find returns the index of the first row with the value in the column, -1 if there is none.
func (c *sheetsCall) find(columns []string) (int64, error) {
	column := int64(slices.Index(columns, c.Column))
	how := &sheets.BatchGetValuesByDataFilterRequest{MajorDimension: "COLUMNS", ValueRenderOption: "UNFORMATTED_VALUE", DateTimeRenderOption: "FORMATTED_STRING"}
	got, err := c.read(how, &sheets.GridRange{
		SheetId: c.Sheet, StartColumnIndex: column, EndColumnIndex: column + 1, ForceSendFields: []string{"SheetId", "StartRowIndex", "StartColumnIndex"},
	})
	if err != nil {
		return -1, err
	}
	for i, cell := range got.Values[0] {
		if i > 0 && fmt.Sprint(cell) == fmt.Sprint(c.Value) {
			return int64(i), nil
		}
	}
	return -1, nil
}

func (c *sheetsCall) findRow() error {
	_, columns, err := c.header(false)
	if err != nil {
		return err
	}
	index, err := c.find(columns)
	if err != nil || index < 0 {
		return err
	}
	how := &sheets.BatchGetValuesByDataFilterRequest{MajorDimension: "ROWS", ValueRenderOption: c.render(), DateTimeRenderOption: "FORMATTED_STRING"}
	_, err = c.read(how, c.rows(index, index+1))
	return err
}

func (c *sheetsCall) updateRow() error {
	_, columns, err := c.header(false)
	if err != nil {
		return err
	}
	index, err := c.find(columns)
	switch {
	case err != nil:
		return err
	case index < 0:
		return errors.New("no such row")
	}
	return c.write(columns, index)
}

func (c *sheetsCall) appendOrUpdateRow() error {
	where, columns, err := c.header(true)
	if err != nil {
		return err
	}
	index, err := c.find(columns)
	switch {
	case err != nil:
		return err
	case index >= 0:
		return c.write(columns, index)
	}
	c.Row[c.Column] = c.Value
	return c.append(where, columns, c.Row)
}

// write changes the cells of a row that have a value.
func (c *sheetsCall) write(columns []string, index int64) error {
	row := c.rows(index, index+1)
	row.ForceSendFields = append(row.ForceSendFields, "StartColumnIndex")
	_, err := c.Spreadsheets.Values.BatchUpdateByDataFilter(c.Spreadsheet, &sheets.BatchUpdateValuesByDataFilterRequest{
		ValueInputOption: c.mode(),
		Data:             []*sheets.DataFilterValueRange{{DataFilter: &sheets.DataFilter{GridRange: row}, MajorDimension: "ROWS", Values: [][]any{cells(columns, c.Row)}}},
	}).Do()
	return err
}

func (c *sheetsCall) clear() error {
	count, err := c.rowCount()
	if err != nil {
		return err
	}
	from := int64(1)
	if c.KeepHeader != nil && !*c.KeepHeader {
		from = 0
	}
	if from == count {
		return nil
	}
	_, err = c.Spreadsheets.Values.BatchClearByDataFilter(c.Spreadsheet, &sheets.BatchClearValuesByDataFilterRequest{
		DataFilters: []*sheets.DataFilter{{GridRange: c.rows(from, 0)}},
	}).Do()
	return err
}

func (c *sheetsCall) batchUpdate(request *sheets.Request) error {
	_, err := c.Spreadsheets.BatchUpdate(c.Spreadsheet, &sheets.BatchUpdateSpreadsheetRequest{Requests: []*sheets.Request{request}}).Do()
	return err
}

// channel opens the channel of a hook for less than a day, or stops it.
func (c *sheetsCall) channel() error {
	files, err := drive.NewService(c.ctx, option.WithHTTPClient(c.client))
	if err != nil {
		return err
	}
	if c.Does != "register" {
		return c.stop(files)
	}
	channel, err := c.driveChannel(23 * time.Hour)
	if err != nil {
		return err
	}
	_, err = files.Files.Watch(c.Spreadsheet, channel).SupportsAllDrives(true).Do()
	return err
}

func (c *sheetsCall) listSpreadsheets() error {
	service, err := drive.NewService(c.ctx, option.WithHTTPClient(c.client))
	if err != nil {
		return err
	}
	query := "mimeType = 'application/vnd.google-apps.spreadsheet' and trashed = false"
	if c.Search != "" {
		query += " and name contains '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.Search) + "'"
	}
	size, _ := c.page(100)
	list := service.Files.List().Q(query).OrderBy("modifiedTime desc").PageSize(size).IncludeItemsFromAllDrives(true).SupportsAllDrives(true).
		Fields("nextPageToken", googleapi.Field("files(id,name,modifiedTime,webViewLink)"))
	return list.Pages(c.ctx, func(*drive.FileList) error { return nil })
}
