package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/drive/v3"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

const (
	folderType = "application/vnd.google-apps.folder"
	fileFields = "id,name,mimeType,size,parents,createdTime,modifiedTime,webViewLink,md5Checksum"
)

// driveInput has the inputs of all operations of Google Drive. A file can be one of Drive or
// one of the run.
type driveInput struct {
	File         json.RawMessage `json:"file"`
	Content      file            `json:"content"`
	Folder       string          `json:"folder"`
	Name         *string         `json:"name"`
	Description  *string         `json:"description"`
	Starred      *bool           `json:"starred"`
	Convert      bool            `json:"convert"`
	Text         string          `json:"text"`
	Format       string          `json:"format"`
	Type         string          `json:"type"`
	ChangedSince time.Time       `json:"changed_since"`
	Trash        bool            `json:"trash"`
	Query        string          `json:"query"`
	Reuse        bool            `json:"reuse"`
	With         string          `json:"with"`
	Email        string          `json:"email"`
	Role         string          `json:"role"`
	Notify       bool            `json:"notify"`
	Message      string          `json:"message"`
	Search       string          `json:"search"`
	Limit        int64           `json:"limit"`
	All          bool            `json:"all"`
	hookInput
	Cursor struct {
		Token string `json:"token"`
	} `json:"cursor"`
}

// driveCall is an operation with its input.
type driveCall struct {
	driveInput
	ctx context.Context
	id  string // of the file in Drive
	*drive.Service
}

var driveOperations = operations{
	"hooks/channel":         driveOperation((*driveCall).channel),
	"triggers/new_file":     driveOperation((*driveCall).changes),
	"triggers/file_changed": driveOperation((*driveCall).changes),
	"upload_file":           driveOperation((*driveCall).uploadFile),
	"replace_file":          driveOperation((*driveCall).replaceFile),
	"create_text_file":      driveOperation((*driveCall).createTextFile),
	"download_file":         driveOperation((*driveCall).downloadFile),
	"get_file": driveOperation(func(c *driveCall) error {
		_, err := c.Files.Get(c.id).SupportsAllDrives(true).Fields("id,name,mimeType,description,size,parents,starred,trashed,createdTime,modifiedTime,webViewLink,webContentLink,md5Checksum,shared,owners(displayName,emailAddress),lastModifyingUser(displayName,emailAddress)").Do()
		return err
	}),
	"list_files":    driveOperation((*driveCall).listFiles),
	"create_folder": driveOperation((*driveCall).createFolder),
	"copy_file": driveOperation(func(c *driveCall) error {
		copied := &drive.File{Parents: c.parents(), AppProperties: map[string]string{"stepmill_step": requestID}}
		if c.Name != nil {
			copied.Name = *c.Name
		}
		_, err := c.Files.Copy(c.id, copied).SupportsAllDrives(true).Fields(fileFields).Do()
		return err
	}),
	"move_file": driveOperation((*driveCall).moveFile),
	"update_file": driveOperation(func(c *driveCall) error {
		_, err := c.Files.Update(c.id, &drive.File{Name: *c.Name, Description: *c.Description, Starred: *c.Starred, ForceSendFields: []string{"Description"}}).
			SupportsAllDrives(true).Fields(fileFields).Do()
		return err
	}),
	"share_file": driveOperation((*driveCall).shareFile),
	"trash_file": driveOperation(func(c *driveCall) error {
		_, err := c.Files.Update(c.id, &drive.File{Trashed: true}).SupportsAllDrives(true).Fields("id,name,trashed").Do()
		return err
	}),
	"delete_file": driveOperation(func(c *driveCall) error { return c.Files.Delete(c.id).SupportsAllDrives(true).Do() }),
	"list_choices": driveOperation(func(c *driveCall) error {
		return c.choices("trashed = false", "modifiedTime desc", "nextPageToken,files(id,name,mimeType,modifiedTime)")
	}),
	"list_folders": driveOperation(func(c *driveCall) error {
		return c.choices("mimeType = '"+folderType+"' and trashed = false", "name", "nextPageToken,files(id,name,modifiedTime)")
	}),
}

func driveOperation(do func(*driveCall) error) func(context.Context, *http.Client, []byte) error {
	return func(ctx context.Context, client *http.Client, input []byte) error {
		service, err := drive.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		c := &driveCall{driveInput{With: "user", Role: "reader", Notify: true, Limit: 100, Format: "pdf"}, ctx, "", service}
		if err := json.Unmarshal(input, &c.driveInput); err != nil {
			return err
		}
		_ = json.Unmarshal(c.File, &c.id) // unless it is a file of the run
		return do(c)
	}
}

func (c *driveCall) parents() []string {
	if c.Folder == "" {
		return nil
	}
	return []string{c.Folder}
}

// media returns the options of an upload: in parts of 8 MiB, or at least not together with
// what describes the file.
func media(content []byte) (io.Reader, []googleapi.MediaOption) {
	return bytes.NewReader(content), []googleapi.MediaOption{googleapi.ChunkSize(8 << 20)}
}

// resumable reports whether the client uploads a file in parts. It sends smaller ones in one
// request, together with what describes them.
func resumable(content []byte) bool { return len(content) > 8<<20 }

func (c *driveCall) uploadFile() error {
	var given file
	if err := json.Unmarshal(c.File, &given); err != nil {
		return err
	}
	if !resumable(given.Content) {
		return errNotRecorded
	}
	described := &drive.File{Name: given.Name, Description: *c.Description, Parents: c.parents()}
	if c.Name != nil {
		described.Name = *c.Name
	}
	reader, options := media(given.Content)
	_, err := c.Files.Create(described).Media(reader, options...).SupportsAllDrives(true).Fields(fileFields).Do()
	return err
}

func (c *driveCall) replaceFile() error {
	if !resumable(c.Content.Content) {
		return errNotRecorded
	}
	reader, options := media(c.Content.Content)
	_, err := c.Files.Update(c.id, &drive.File{}).Media(reader, options...).SupportsAllDrives(true).Fields(fileFields).Do()
	return err
}

func (c *driveCall) createTextFile() error { return errNotRecorded }

func (c *driveCall) downloadFile() error {
	meta, err := c.Files.Get(c.id).SupportsAllDrives(true).Fields("id,name,mimeType").Do()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(meta.MimeType, "application/vnd.google-apps.") {
		_, err := c.Files.Get(c.id).SupportsAllDrives(true).Download()
		return err
	}
	types := map[string]string{"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document"}
	_, err = c.Files.Export(c.id, types[c.Format]).Download()
	return err
}

// quote returns a text in the language of queries.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

func (c *driveCall) listFiles() error {
	terms := []string{"trashed = false"}
	if c.Trash {
		terms[0] = "trashed = true"
	}
	if c.Name != nil {
		terms = append(terms, "name contains "+quote(*c.Name))
	}
	if c.Folder != "" {
		terms = append(terms, quote(c.Folder)+" in parents")
	}
	if c.Text != "" {
		terms = append(terms, "fullText contains "+quote(c.Text))
	}
	if !c.ChangedSince.IsZero() {
		terms = append(terms, "modifiedTime > "+quote(c.ChangedSince.Format("2006-01-02T15:04:05.000Z07:00")))
	}
	if kind, ok := map[string]string{"pdf": "= 'application/pdf'", "image": "contains 'image/'", "folder": "= '" + folderType + "'"}[c.Type]; ok {
		terms = append(terms, "mimeType "+kind)
	}
	if c.Query != "" {
		terms = append(terms, "("+c.Query+")")
	}
	request := c.Files.List().Q(strings.Join(terms, " and ")).Fields("nextPageToken,files(" + fileFields + ")")
	if c.Text == "" {
		request.OrderBy("modifiedTime desc")
	}
	return c.pages(request, 1000)
}

// pages reads the pages of a list up to the limit.
func (c *driveCall) pages(request *drive.FilesListCall, size int64) error {
	limit := c.Limit
	if c.All {
		limit = 1_000_000
	}
	read, enough := 0, errors.New("enough")
	err := request.PageSize(min(limit, size)).IncludeItemsFromAllDrives(true).SupportsAllDrives(true).Pages(c.ctx, func(page *drive.FileList) error {
		if read += len(page.Files); int64(read) >= limit {
			return enough
		}
		return nil
	})
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

func (c *driveCall) choices(query, order string, fields googleapi.Field) error {
	if c.Search != "" {
		query += " and name contains " + quote(c.Search)
	}
	return c.pages(c.Files.List().Q(query).OrderBy(order).Fields(fields), 100)
}

func (c *driveCall) createFolder() error {
	if c.Reuse {
		parent := c.Folder
		if parent == "" {
			parent = "root"
		}
		found, err := c.Files.List().Q("mimeType = '" + folderType + "' and trashed = false and name = " + quote(*c.Name) + " and " + quote(parent) + " in parents").
			OrderBy("createdTime").PageSize(1).Fields("files(id,name,webViewLink)").IncludeItemsFromAllDrives(true).SupportsAllDrives(true).Do()
		if err != nil || len(found.Files) > 0 {
			return err
		}
	}
	_, err := c.Files.Create(&drive.File{Name: *c.Name, MimeType: folderType, Parents: c.parents(), AppProperties: map[string]string{"stepmill_step": createdBy}}).
		SupportsAllDrives(true).Fields("id,name,webViewLink").Do()
	return err
}

func (c *driveCall) moveFile() error {
	before, err := c.Files.Get(c.id).SupportsAllDrives(true).Fields("parents").Do()
	if err != nil {
		return err
	}
	request := c.Files.Update(c.id, &drive.File{}).AddParents(c.Folder).SupportsAllDrives(true).Fields(fileFields)
	if others := slices.DeleteFunc(before.Parents, func(id string) bool { return id == c.Folder }); len(others) > 0 {
		request.RemoveParents(strings.Join(others, ","))
	}
	_, err = request.Do()
	return err
}

func (c *driveCall) shareFile() error {
	request := c.Permissions.Create(c.id, &drive.Permission{Type: c.With, Role: c.Role, EmailAddress: c.Email}).
		SupportsAllDrives(true).Fields("id,type,role,emailAddress,domain")
	if c.With == "user" {
		request.SendNotificationEmail(c.Notify)
	}
	if c.Message != "" {
		request.EmailMessage(c.Message)
	}
	if _, err := request.Do(); err != nil {
		return err
	}
	_, err := c.Files.Get(c.id).SupportsAllDrives(true).Fields("id,name,webViewLink").Do()
	return err
}

// channel opens the channel of a hook for six days, or stops it.
func (c *driveCall) channel() error {
	if c.Does != "register" {
		return c.stop(c.Service)
	}
	token, err := c.Changes.GetStartPageToken().SupportsAllDrives(true).Do()
	if err != nil {
		return err
	}
	channel, err := c.driveChannel(6 * 24 * time.Hour)
	if err != nil {
		return err
	}
	_, err = c.Changes.Watch(token.StartPageToken, channel).SupportsAllDrives(true).IncludeItemsFromAllDrives(true).Do()
	return err
}

// driveChannel returns the channel of a hook with the life that it has.
func (h hookInput) driveChannel(life time.Duration) (*drive.Channel, error) {
	start, err := time.Parse(time.RFC3339, startOfTests)
	return &drive.Channel{Id: h.Hook.ID, Type: "web_hook", Address: h.Hook.URL, Token: h.Hook.Secret, Expiration: start.Add(life).UnixMilli()}, err
}

// stop stops the channel of a hook.
func (h hookInput) stop(service *drive.Service) error {
	err := service.Channels.Stop(&drive.Channel{Id: h.Subscription.ID, ResourceId: h.Subscription.ResourceID}).Do()
	if failed(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// changes reads a page of what has changed.
func (c *driveCall) changes() error {
	if c.Cursor.Token == "" {
		_, err := c.Changes.GetStartPageToken().SupportsAllDrives(true).Do()
		return err
	}
	_, err := c.Changes.List(c.Cursor.Token).PageSize(100).IncludeRemoved(false).IncludeItemsFromAllDrives(true).SupportsAllDrives(true).
		Fields("nextPageToken", "newStartPageToken", "changes(file("+fileFields+",trashed))").Do()
	if isGone(err) {
		return nil // the token is not known
	}
	return err
}
