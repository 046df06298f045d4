package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/docs/v1"
	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// What Stepmill makes of the keys of the requests that create a document, which are the
// same in all tests.
const (
	createdBy = "cbfd4979-e063-8522-b018-8b1fe290cb0b"
	copiedBy  = "09dd7ebb-668c-8fc5-a258-36ef80f52e6c"
)

// docsInput has the inputs of all operations of Google Docs.
type docsInput struct {
	Document      string          `json:"document"`
	Template      string          `json:"template"`
	Title         string          `json:"title"`
	Text          string          `json:"text"`
	Folder        string          `json:"folder"`
	Values        map[string]any  `json:"values"`
	Replacements  map[string]any  `json:"replacements"`
	MatchCase     bool            `json:"match_case"`
	SameParagraph bool            `json:"same_paragraph"`
	Tab           string          `json:"tab"`
	Index         int64           `json:"index"`
	URL           string          `json:"url"`
	Width         float64         `json:"width"`
	Format        string          `json:"format"`
	Requests      []*docs.Request `json:"requests"`
	Search        string          `json:"search"`
	Limit         int64           `json:"limit"`
}

// docsCall is an operation with its input.
type docsCall struct {
	docsInput
	ctx  context.Context
	docs *docs.Service
	*drive.Service
}

var docsOperations = operations{
	"create_document":      docsOperation((*docsCall).create),
	"create_from_template": docsOperation((*docsCall).createFromTemplate),
	"get_document": docsOperation(func(c *docsCall) error {
		return c.export("id", "name", "webViewLink")
	}),
	"export_document": docsOperation(func(c *docsCall) error { return c.export("name") }),
	"append_text": docsOperation(func(c *docsCall) error {
		if !c.SameParagraph {
			c.Text = "\n" + c.Text
		}
		return c.update(c.Document, &docs.Request{InsertText: &docs.InsertTextRequest{EndOfSegmentLocation: &docs.EndOfSegmentLocation{TabId: c.Tab}, Text: c.Text}})
	}),
	"insert_text": docsOperation(func(c *docsCall) error {
		return c.update(c.Document, &docs.Request{InsertText: &docs.InsertTextRequest{Location: &docs.Location{Index: max(c.Index, 1), TabId: c.Tab}, Text: c.Text}})
	}),
	"replace_text": docsOperation(func(c *docsCall) error {
		requests := c.replace(c.Replacements, "%s")
		for _, request := range requests {
			if c.Tab != "" {
				request.ReplaceAllText.TabsCriteria = &docs.TabsCriteria{TabIds: []string{c.Tab}}
			}
		}
		return c.update(c.Document, requests...)
	}),
	"insert_image": docsOperation((*docsCall).insertImage),
	"update_document": docsOperation(func(c *docsCall) error {
		return c.update(c.Document, c.Requests...)
	}),
	"list_documents": docsOperation(func(c *docsCall) error { return c.list("document") }),
	"list_folders":   docsOperation(func(c *docsCall) error { return c.list("folder") }),
}

func docsOperation(do func(*docsCall) error) func(context.Context, *http.Client, []byte) error {
	return func(ctx context.Context, client *http.Client, input []byte) error {
		documents, err := docs.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		files, err := drive.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		c := &docsCall{ctx: ctx, docs: documents, Service: files, docsInput: docsInput{MatchCase: true, Limit: 100}}
		if err := json.Unmarshal(input, &c.docsInput); err != nil {
			return err
		}
		return do(c)
	}
}

func (c *docsCall) update(id string, requests ...*docs.Request) error {
	_, err := c.docs.Documents.BatchUpdate(id, &docs.BatchUpdateDocumentRequest{Requests: requests}).Do()
	return err
}

// newFile returns what is set of a file that is created.
func (c *docsCall) newFile(step string) *drive.File {
	out := &drive.File{Name: c.Title, AppProperties: map[string]string{"stepmill_step": step}}
	if c.Folder != "" {
		out.Parents = []string{c.Folder}
	}
	return out
}

func (c *docsCall) create() error {
	file := c.newFile(createdBy)
	file.MimeType = "application/vnd.google-apps.document"
	created, err := c.Files.Create(file).SupportsAllDrives(true).Fields("id", "name", "webViewLink").Do()
	if err != nil || c.Text == "" {
		return err
	}
	return c.update(created.Id, &docs.Request{InsertText: &docs.InsertTextRequest{Location: &docs.Location{Index: 1}, Text: c.Text}})
}

func (c *docsCall) createFromTemplate() error {
	copied, err := c.Files.Copy(c.Template, c.newFile(copiedBy)).SupportsAllDrives(true).Fields("id", "name", "webViewLink").Do()
	if err != nil || len(c.Values) == 0 {
		return err
	}
	return c.update(copied.Id, c.replace(c.Values, "{{%s}}")...)
}

// replace returns the requests that replace texts, which have a form.
func (c *docsCall) replace(values map[string]any, form string) []*docs.Request {
	var out []*docs.Request
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text := ""
		if value := values[name]; value != nil {
			text = fmt.Sprint(value)
		}
		out = append(out, &docs.Request{ReplaceAllText: &docs.ReplaceAllTextRequest{
			ContainsText: &docs.SubstringMatchCriteria{Text: fmt.Sprintf(form, name), MatchCase: c.MatchCase, ForceSendFields: []string{"MatchCase"}},
			ReplaceText:  text, ForceSendFields: []string{"ReplaceText"},
		}})
	}
	return out
}

// export reads a document in a format, after some of its metadata.
func (c *docsCall) export(fields ...googleapi.Field) error {
	if _, err := c.Files.Get(c.Document).SupportsAllDrives(true).Fields(fields...).Do(); err != nil {
		return err
	}
	types := map[string]string{"": "text/plain", "markdown": "text/markdown", "epub": "application/epub+zip"}
	if len(fields) == 1 {
		types[""] = "application/pdf"
	}
	got, err := c.Files.Export(c.Document, types[c.Format]).Download()
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, got.Body)
	return errors.Join(err, got.Body.Close())
}

func (c *docsCall) insertImage() error {
	image := &docs.InsertInlineImageRequest{Uri: c.URL}
	if c.Index > 0 {
		image.Location = &docs.Location{Index: c.Index, TabId: c.Tab}
	} else {
		image.EndOfSegmentLocation = &docs.EndOfSegmentLocation{TabId: c.Tab}
	}
	if c.Width > 0 {
		image.ObjectSize = &docs.Size{Width: &docs.Dimension{Magnitude: c.Width, Unit: "PT"}}
	}
	return c.update(c.Document, &docs.Request{InsertInlineImage: image})
}

func (c *docsCall) list(kind string) error {
	query := "mimeType = 'application/vnd.google-apps." + kind + "' and trashed = false"
	if c.Search != "" {
		query += " and name contains '" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.Search) + "'"
	}
	list := c.Files.List().Q(query).OrderBy("modifiedTime desc").PageSize(min(c.Limit, 100)).IncludeItemsFromAllDrives(true).SupportsAllDrives(true).
		Fields("nextPageToken", googleapi.Field("files(id,name,modifiedTime,webViewLink)"))
	return list.Pages(c.ctx, func(*drive.FileList) error { return nil })
}
