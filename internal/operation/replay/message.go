package replay

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// Message is an e-mail message as its reader sees it.
type Message struct {
	Headers     map[string]string `json:"headers,omitempty"`
	Text        string            `json:"text,omitempty"`
	HTML        string            `json:"html,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
}

// Attachment is a file that is attached to a message.
type Attachment struct {
	Filename string `json:"filename"`
	Type     string `json:"type"`
	Text     string `json:"text"`
}

const messageType = "message/rfc822"

// compareMessage compares a body with the expected message, whose text a recording has.
func (want Request) compareMessage(body []byte) error {
	got, err := readMessage(body)
	if err != nil {
		return err
	}
	expected := want.Message
	if expected == nil {
		if expected, err = readMessage([]byte(*want.Text)); err != nil {
			return err
		}
	}
	one, err := strictjson.Encode(got)
	if err != nil {
		return err
	}
	other, err := strictjson.Encode(expected)
	if err != nil {
		return err
	}
	return equalJSON("the message", one, other)
}

// uncompared are the headers that say nothing about the message itself.
var uncompared = []string{"Content-Transfer-Encoding", "Content-Type", "Date", "Message-Id", "Mime-Version"}

func readMessage(text []byte) (*Message, error) {
	m, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the body is not an e-mail message: %w", err)
	}
	out := &Message{Headers: map[string]string{}}
	for name, values := range m.Header {
		if slices.Contains(uncompared, name) {
			continue
		}
		if out.Headers[name], err = new(mime.WordDecoder).DecodeHeader(strings.Join(values, ", ")); err != nil {
			return nil, err
		}
	}
	if err := out.add(m.Header, m.Body); err != nil {
		return nil, err
	}
	return out, nil
}

// add adds an entity of a message: its text, an attachment, or several of them.
func (m *Message) add(header interface{ Get(name string) string }, body io.Reader) error {
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return err
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			part, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = m.add(part.Header, part)
			}
			if err != nil {
				return err
			}
		}
	}
	switch header.Get("Content-Transfer-Encoding") {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
	switch _, params, _ := mime.ParseMediaType(header.Get("Content-Disposition")); {
	case params["filename"] != "":
		m.Attachments = append(m.Attachments, Attachment{params["filename"], mediaType, string(content)})
	case mediaType == "text/html":
		m.HTML = text
	default:
		m.Text = text
	}
	return nil
}
