package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"google.golang.org/api/gmail/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
)

// gmailInput has the inputs of all operations of Gmail.
type gmailInput struct {
	To          []string `json:"to"`
	CC          []string `json:"cc"`
	BCC         []string `json:"bcc"`
	From        string   `json:"from"`
	ReplyTo     string   `json:"reply_to"`
	Subject     string   `json:"subject"`
	Text        string   `json:"text"`
	HTML        string   `json:"html"`
	Attachments []file   `json:"attachments"`
	Message     string   `json:"message"`
	Everyone    bool     `json:"everyone"`
	Thread      string   `json:"thread"`
	Attachment  string   `json:"attachment"`
	Download    bool     `json:"download"`
	Search      string   `json:"search"`
	Labels      []string `json:"labels"`
	Max         int64    `json:"max"`
	Spam        bool     `json:"spam"`
	Unread      bool     `json:"unread"`
	Name        string   `json:"name"`
	Label       string   `json:"label"`
	Cursor      string   `json:"cursor"`
}

// gmailCall is an operation with its input.
type gmailCall struct {
	gmailInput
	ctx    context.Context
	client *http.Client
	*gmail.Service
}

var gmailOperations = operations{
	"send_message": gmailOperation(func(c *gmailCall) error { return c.send(&gmail.Draft{}, c.compose(c.To, c.CC, c.Subject)) }),
	"create_draft": gmailOperation(func(c *gmailCall) error {
		_, err := c.upload(&gmail.Draft{Message: &gmail.Message{ThreadId: c.Thread}}, c.compose(c.To, c.CC, c.Subject))
		return err
	}),
	"reply_to_message": gmailOperation((*gmailCall).reply),
	"get_message": gmailOperation(func(c *gmailCall) error {
		message, err := c.Users.Messages.Get("me", c.Message).Format("full").Do()
		if err != nil || !c.Download {
			return err
		}
		for _, part := range parts(message.Payload) {
			if part.Filename == "" {
				continue
			}
			if _, err := c.Users.Messages.Attachments.Get("me", c.Message, part.Body.AttachmentId).Do(); err != nil {
				return err
			}
		}
		return nil
	}),
	"list_messages":        gmailOperation((*gmailCall).list),
	"triggers/new_message": gmailOperation((*gmailCall).added),
	"get_attachment": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Messages.Attachments.Get("me", c.Message, c.Attachment).Do()
		return err
	}),
	"get_thread": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Threads.Get("me", c.Thread).Format("full").Do()
		return err
	}),
	"add_labels": gmailOperation(func(c *gmailCall) error {
		return c.modify(&gmail.ModifyMessageRequest{AddLabelIds: c.Labels})
	}),
	"remove_labels": gmailOperation(func(c *gmailCall) error {
		return c.modify(&gmail.ModifyMessageRequest{RemoveLabelIds: c.Labels})
	}),
	"mark_as_read": gmailOperation(func(c *gmailCall) error {
		if c.Unread {
			return c.modify(&gmail.ModifyMessageRequest{AddLabelIds: []string{"UNREAD"}})
		}
		return c.modify(&gmail.ModifyMessageRequest{RemoveLabelIds: []string{"UNREAD"}})
	}),
	"archive_message": gmailOperation(func(c *gmailCall) error {
		return c.modify(&gmail.ModifyMessageRequest{RemoveLabelIds: []string{"INBOX"}})
	}),
	"trash_message": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Messages.Trash("me", c.Message).Do()
		return err
	}),
	"list_labels": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Labels.List("me").Do()
		return err
	}),
	"create_label": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Labels.Create("me", &gmail.Label{Name: c.Name, LabelListVisibility: "labelShow", MessageListVisibility: "show"}).Do()
		return err
	}),
	"list_senders": gmailOperation(func(c *gmailCall) error {
		_, err := c.Users.Settings.SendAs.List("me").Do()
		return err
	}),
}

func gmailOperation(do func(*gmailCall) error) func(context.Context, *http.Client, []byte) error {
	return func(ctx context.Context, client *http.Client, input []byte) error {
		service, err := gmail.NewService(ctx, option.WithHTTPClient(client))
		if err != nil {
			return err
		}
		c := &gmailCall{gmailInput{Max: 20}, ctx, client, service}
		if err := json.Unmarshal(input, &c.gmailInput); err != nil {
			return err
		}
		return do(c)
	}
}

func (c *gmailCall) modify(request *gmail.ModifyMessageRequest) error {
	_, err := c.Users.Messages.Modify("me", c.Message, request).Do()
	return err
}

// parts returns the parts of a message, level by level.
func parts(payload *gmail.MessagePart) []*gmail.MessagePart {
	var out []*gmail.MessagePart
	for level := []*gmail.MessagePart{payload}; len(level) > 0; {
		out = append(out, level...)
		var next []*gmail.MessagePart
		for _, part := range level {
			next = append(next, part.Parts...)
		}
		level = next
	}
	return out
}

func (c *gmailCall) list() error {
	request := c.Users.Messages.List("me").Q(c.Search).MaxResults(c.Max)
	if c.Labels != nil {
		request.LabelIds(c.Labels...)
	}
	if c.Spam {
		request.IncludeSpamTrash(true)
	}
	found, err := request.Do()
	if err != nil {
		return err
	}
	for _, message := range found.Messages {
		_, err := c.Users.Messages.Get("me", message.Id).Format("metadata").MetadataHeaders("From", "To", "Cc", "Subject").Do()
		if err != nil && !failed(err, http.StatusNotFound) {
			return err
		}
	}
	return nil
}

func (c *gmailCall) reply() error {
	original, err := c.Users.Messages.Get("me", c.Message).Format("metadata").
		MetadataHeaders("From", "To", "Cc", "Reply-To", "Subject", "Message-ID", "References").Do()
	if err != nil {
		return err
	}
	header := map[string]string{}
	for _, h := range original.Payload.Headers {
		header[strings.ToLower(h.Name)] = h.Value
	}
	to := header["reply-to"]
	if to == "" {
		to = header["from"]
	}
	var cc []string
	if c.Everyone {
		profile, err := c.Users.GetProfile("me").Do()
		if err != nil {
			return err
		}
		for _, address := range addresses(header["to"] + "," + header["cc"]) {
			if address != profile.EmailAddress && !strings.Contains(to, address) {
				cc = append(cc, address)
			}
		}
	}
	subject := header["subject"]
	if !strings.HasPrefix(strings.ToLower(subject), "re:") {
		subject = "Re: " + subject
	}
	message := c.compose([]string{to}, cc, subject)
	message.SetGenHeader(mail.HeaderInReplyTo, header["message-id"])
	message.SetGenHeader(mail.HeaderReferences, strings.TrimSpace(header["references"]+" "+header["message-id"]))
	return c.send(&gmail.Draft{Message: &gmail.Message{ThreadId: original.ThreadId}}, message)
}

// addresses returns the addresses of a header without their names.
func addresses(header string) []string {
	return slices.Compact(regexp.MustCompile(`[\w.]+@[\w.]+`).FindAllString(strings.ToLower(header), -1))
}

// compose returns a message. Its date and its id do not count.
func (c *gmailCall) compose(to, cc []string, subject string) *mail.Msg {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	m.SetDateWithValue(time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC))
	m.SetMessageIDWithValue("1@oracle.example")
	m.ToIgnoreInvalid(to...)
	if cc != nil {
		m.CcIgnoreInvalid(cc...)
	}
	if c.BCC != nil { // the library leaves them to SMTP, but Gmail reads them here
		m.SetGenHeader("Bcc", "<"+strings.Join(c.BCC, ">, <")+">")
	}
	if c.From != "" {
		_ = m.From(c.From)
	}
	if c.ReplyTo != "" {
		_ = m.ReplyTo(c.ReplyTo)
	}
	m.Subject(subject)
	switch {
	case c.HTML == "":
		m.SetBodyString(mail.TypeTextPlain, c.Text)
	case c.Text == "":
		m.SetBodyString(mail.TypeTextHTML, c.HTML)
	default:
		m.SetBodyString(mail.TypeTextPlain, c.Text)
		m.AddAlternativeString(mail.TypeTextHTML, c.HTML)
	}
	for _, f := range c.Attachments {
		m.AttachReadSeeker(f.Name, bytes.NewReader(f.Content))
	}
	return m
}

func (c *gmailCall) send(draft *gmail.Draft, message *mail.Msg) error {
	made, err := c.upload(draft, message)
	if err != nil {
		return err
	}
	_, err = c.Users.Drafts.Send("me", &gmail.Draft{Id: made.Id}).Do()
	return err
}

// randomBoundary is what the library puts between the parts of a message.
var randomBoundary = regexp.MustCompile(`boundary=([0-9a-f]{60})`)

// upload makes a draft of a message. The client uploads messages of up to 16 MiB in another
// way, with the message and what describes it in one body, and longer ones in parts. This is
// what the guide to resumable uploads does with a whole message. If the address of the
// upload has expired, it begins anew.
func (c *gmailCall) upload(draft *gmail.Draft, message *mail.Msg) (*gmail.Draft, error) {
	var text bytes.Buffer
	if _, err := message.WriteTo(&text); err != nil {
		return nil, err
	}
	if text.Len() > 10_000 {
		return nil, errNotRecorded
	}
	content := text.String()
	for i, found := range randomBoundary.FindAllStringSubmatch(content, -1) {
		content = strings.ReplaceAll(content, found[1], "boundary"+strconv.Itoa(i))
	}
	described, err := json.Marshal(draft)
	if err != nil {
		return nil, err
	}
	for {
		session, err := c.request(http.MethodPost, c.BasePath+"upload/gmail/v1/users/me/drafts?uploadType=resumable", "application/json", string(described))
		if err != nil {
			return nil, err
		}
		if len(c.To) > 0 && !strings.Contains(strings.Join(c.To, ""), "@") {
			return nil, fmt.Errorf("there is no address in %q", c.To)
		}
		sent, err := c.request(http.MethodPut, session.Header.Get("Location"), "message/rfc822", content)
		if sent != nil && sent.StatusCode == http.StatusNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		var made gmail.Draft
		return &made, json.NewDecoder(sent.Body).Decode(&made)
	}
}

func (c *gmailCall) request(method, url, contentType, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(c.ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	response, err := c.client.Do(request)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(content))
	if err == nil && response.StatusCode > 299 {
		err = fmt.Errorf("%s: %s", response.Status, content)
	}
	return response, err
}

// added reads the messages that were added after a point in the history.
func (c *gmailCall) added() error {
	if c.Cursor == "" {
		_, err := c.Users.GetProfile("me").Do()
		return err
	}
	since, err := strconv.ParseUint(c.Cursor, 10, 64)
	if err != nil {
		return err
	}
	found, err := c.Users.History.List("me").StartHistoryId(since).HistoryTypes("messageAdded").LabelId(cmp.Or(c.Label, "INBOX")).MaxResults(20).Do()
	if isGone(err) {
		return nil // the history begins later
	}
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, change := range found.History {
		for _, added := range change.MessagesAdded {
			if seen[added.Message.Id] {
				continue
			}
			seen[added.Message.Id] = true
			if _, err := c.Users.Messages.Get("me", added.Message.Id).Format("full").Do(); err != nil && !isGone(err) {
				return err
			}
		}
	}
	return nil
}

// isGone reports whether an answer says that something does not exist, or no longer.
func isGone(err error) bool {
	answer, ok := errors.AsType[*googleapi.Error](err)
	return ok && (answer.Code == http.StatusNotFound || answer.Code == http.StatusGone)
}
