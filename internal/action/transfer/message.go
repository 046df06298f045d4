package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/stepmill/stepmill/internal/expr"
)

// Message is an e-mail message (RFC 5322).
type Message struct {
	// Key identifies the message: equal messages with the same key have equal bytes. It is
	// a part of the Message-ID if there is a sender.
	Key                        string
	Date                       time.Time
	From, ReplyTo, To, CC, BCC []*mail.Address
	Subject, Text, HTML        string
	Headers                    map[string]string // beside those of the other members
	Attachments                []*expr.File
}

// ParseMessage reads the description of a message: an object with the members from, reply_to,
// to, cc, bcc, subject, text, html, attachments and headers. Addresses are a list or a text,
// in which commas separate them.
func ParseMessage(given map[string]any) (*Message, error) {
	out := &Message{Headers: map[string]string{}}
	for name, into := range map[string]*[]*mail.Address{"from": &out.From, "reply_to": &out.ReplyTo, "to": &out.To, "cc": &out.CC, "bcc": &out.BCC} {
		var err error
		if *into, err = parseAddresses(given[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, into := range map[string]*string{"subject": &out.Subject, "text": &out.Text, "html": &out.HTML} {
		text, ok := given[name].(string)
		if given[name] != nil && !ok {
			return nil, fmt.Errorf("%s: must be text", name)
		}
		*into = text
	}
	if err := out.parseHeaders(given["headers"]); err != nil {
		return nil, err
	}
	if err := out.parseAttachments(given["attachments"]); err != nil {
		return nil, err
	}
	return out, nil
}

func (m *Message) parseHeaders(given any) error {
	headers, ok := given.(map[string]any)
	if given != nil && !ok {
		return errors.New("headers: must be an object")
	}
	for name, value := range headers {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		text, err := Scalar(value)
		switch {
		case value == nil:
			continue
		case err != nil:
			return fmt.Errorf("headers/%s: %w", name, err)
		case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == ':' }) || name == "":
			return fmt.Errorf("headers/%s: is not the name of a header", name)
		case slices.Contains(composed, canonical) || strings.HasPrefix(canonical, "Content-"):
			return fmt.Errorf("headers/%s: cannot be set, because the other members say what it is", name)
		}
		m.Headers[canonical] = text
	}
	return nil
}

// composed are the headers that Body writes itself.
var composed = []string{"Bcc", "Cc", "Date", "From", "Message-Id", "Mime-Version", "Reply-To", "Subject", "To"}

func (m *Message) parseAttachments(given any) error {
	list, ok := given.([]any)
	if given != nil && !ok {
		list = []any{given}
	}
	for i, item := range list {
		file, ok := item.(*expr.File)
		if !ok {
			return fmt.Errorf("attachments/%d: must be a file", i)
		}
		m.Attachments = append(m.Attachments, file)
	}
	return nil
}

func parseAddresses(given any) ([]*mail.Address, error) {
	list, isList := given.([]any)
	if given != nil && !isList {
		list = []any{given}
	}
	var out []*mail.Address
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil, errors.New("must be an address, or a list of addresses")
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		parsed, err := mail.ParseAddressList(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not an e-mail address", text)
		}
		for _, address := range parsed {
			if address.Address, err = asciiAddress(address.Address); err != nil {
				return nil, err
			}
		}
		out = append(out, parsed...)
	}
	return out, nil
}

// asciiAddress returns an address whose domain is in ASCII. Most servers accept no other
// letters before the @ either.
func asciiAddress(address string) (string, error) {
	at := strings.LastIndexByte(address, '@')
	domain, err := idna.Lookup.ToASCII(address[at+1:])
	if err != nil || strings.ContainsFunc(address[:at], func(r rune) bool { return r > unicode.MaxASCII }) {
		return "", fmt.Errorf("%q is not an e-mail address that mail servers accept", address)
	}
	return address[:at+1] + domain, nil
}

// Body returns the message as it is sent. Attachments are encoded while they are sent.
func (m *Message) Body() (Body, error) {
	var head bytes.Buffer
	for _, h := range []struct {
		name      string
		addresses []*mail.Address
	}{{"From", m.From}, {"Reply-To", m.ReplyTo}, {"To", m.To}, {"Cc", m.CC}, {"Bcc", m.BCC}} {
		if h.addresses == nil {
			continue
		}
		var texts []string
		for _, a := range h.addresses {
			texts = append(texts, a.String())
		}
		if err := writeHeader(&head, h.name, strings.Join(texts, ", ")); err != nil {
			return nil, err
		}
	}
	fields := [][2]string{{"Subject", strings.Join(strings.Fields(m.Subject), " ")}, {"Date", m.Date.Format(time.RFC1123Z)}}
	if len(m.From) > 0 {
		fields = append(fields, [2]string{"Message-ID", "<" + m.hash("id") + m.From[0].Address[strings.LastIndexByte(m.From[0].Address, '@'):] + ">"})
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		fields = append(fields, [2]string{name, m.Headers[name]})
	}
	for _, f := range fields {
		if err := writeHeader(&head, f[0], f[1]); err != nil {
			return nil, err
		}
	}
	head.WriteString("MIME-Version: 1.0\r\n")
	return append(Body{{Data: head.Bytes()}}, m.content()...), nil
}

// hash returns text that depends on the key and on what it is for.
func (m *Message) hash(purpose string) string {
	sum := sha256.Sum256([]byte(purpose + "/" + m.Key))
	return hex.EncodeToString(sum[:16])
}

// part is an entity of a message: its header lines, and the body.
type part struct {
	header string
	body   Body
}

func (m *Message) content() Body {
	var texts []part
	if m.Text != "" || m.HTML == "" {
		texts = append(texts, textPart("text/plain", m.Text))
	}
	if m.HTML != "" {
		texts = append(texts, textPart("text/html", m.HTML))
	}
	out := texts[0]
	if len(texts) > 1 {
		out = m.multipart("alternative", texts)
	}
	if m.Attachments != nil {
		parts := []part{out}
		for _, file := range m.Attachments {
			parts = append(parts, attachmentPart(file))
		}
		out = m.multipart("mixed", parts)
	}
	return append(Body{{Data: []byte(out.header + "\r\n")}}, out.body...)
}

func textPart(mediaType, text string) part {
	var encoded bytes.Buffer
	w := quotedprintable.NewWriter(&encoded)
	_, _ = w.Write([]byte(text)) // to the buffer
	_ = w.Close()
	return part{
		"Content-Type: " + mediaType + "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n",
		Body{{Data: append(encoded.Bytes(), "\r\n"...)}},
	}
}

func attachmentPart(file *expr.File) part {
	mediaType, params, err := mime.ParseMediaType(file.Type)
	if err != nil || strings.HasPrefix(mediaType, "multipart/") {
		mediaType, params = "application/octet-stream", nil
	}
	return part{
		"Content-Type: " + mime.FormatMediaType(mediaType, params) + "\r\nContent-Transfer-Encoding: base64\r\n" +
			"Content-Disposition: " + mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}) + "\r\n",
		Body{{File: file, Encoding: Base64Lines}},
	}
}

// multipart joins entities to one. The boundary can stand in none of them: "=_" is not
// possible in either encoding.
func (m *Message) multipart(subtype string, parts []part) part {
	boundary := "=_" + m.hash(subtype)
	var body Body
	for _, p := range parts {
		body = append(body, Segment{Data: []byte("--" + boundary + "\r\n" + p.header + "\r\n")})
		body = append(body, p.body...)
		body = append(body, Segment{Data: []byte("\r\n")})
	}
	body = append(body, Segment{Data: []byte("--" + boundary + "--\r\n")})
	return part{"Content-Type: multipart/" + subtype + "; boundary=\"" + boundary + "\"\r\n", body}
}

const (
	// foldedLine is how long a header line should be at most according to RFC 5322, and longestLine
	// how long it may be.
	foldedLine  = 78
	longestLine = 998
)

// writeHeader writes a header, encoded if it is not ASCII and folded at spaces.
func writeHeader(to *bytes.Buffer, name, value string) error {
	if strings.ContainsFunc(value, unicode.IsControl) {
		return fmt.Errorf("the header %s contains a line break or another control character", name)
	}
	to.WriteString(name + ":")
	length := len(name) + 1
	for i, word := range strings.Split(mime.QEncoding.Encode("utf-8", value), " ") {
		switch {
		case len(word) >= longestLine:
			return fmt.Errorf("the header %s contains a word that is too long for a line of e-mail", name)
		case i > 0 && word != "" && length+1+len(word) > foldedLine:
			to.WriteString("\r\n")
			length = 0
		}
		to.WriteString(" " + word)
		length += 1 + len(word)
	}
	to.WriteString("\r\n")
	return nil
}
