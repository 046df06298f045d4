package transfer_test

import (
	"encoding/base64"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stepmill/stepmill/internal/action/actiontest"
	"github.com/stepmill/stepmill/internal/action/transfer"
)

// entity is a part of a message as a reader sees it.
type entity struct {
	Type, Disposition, Content string
	Parts                      []entity
}

// compose returns a message as it is sent, and checks its length and its lines.
func compose(t rapid.TB, files *actiontest.Files, given map[string]any) string {
	t.Helper()
	m, err := transfer.ParseMessage(given)
	if err != nil {
		t.Fatal(err)
	}
	m.Key, m.Date = "run_1/a", time.Date(2026, 11, 18, 9, 30, 0, 0, time.UTC)
	body, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	from, err := transfer.Open(body, files)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(text)) != body.Length() {
		t.Errorf("the length is %d, but %d bytes are sent", body.Length(), len(text))
	}
	for line := range strings.SplitSeq(string(text), "\r\n") {
		if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
			t.Errorf("not a line of e-mail: %q", line)
		}
	}
	return string(text)
}

func readEntity(t rapid.TB, header interface{ Get(string) string }, body io.Reader) entity {
	t.Helper()
	mediaType, params, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	out := entity{Type: mediaType}
	if d := header.Get("Content-Disposition"); d != "" {
		disposition, params, err := mime.ParseMediaType(d)
		if err != nil {
			t.Fatal(err)
		}
		out.Disposition = disposition + " " + params["filename"]
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if err == io.EOF {
				return out
			}
			if err != nil {
				t.Fatal(err)
			}
			out.Parts = append(out.Parts, readEntity(t, p.Header, p))
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
		t.Fatal(err)
	}
	out.Content = string(content)
	return out
}

func read(t rapid.TB, text string) (*mail.Message, entity) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m, readEntity(t, m.Header, m.Body)
}

func TestMessage(t *testing.T) {
	t.Parallel()
	files := actiontest.NewFiles()
	text := compose(t, files, map[string]any{
		"from": "Zoë Müller <zoe@shop.example>", "to": []any{"ada@example.org", "Bob <bob@bücher.example>"}, "cc": "c@example.org, d@example.org",
		"bcc": []any{}, "reply_to": "help@shop.example", "subject": "Rechnung für März – " + strings.Repeat("sehr ", 30) + "wichtig",
		"text": "Hallo!\n\nGrüße = alles gut", "html": "<p>Grüße</p>",
		"attachments": []any{files.Add("Übersicht \"1\".pdf", "application/pdf", strings.Repeat("%PDF", 100)), files.Add("a.txt", "text/plain; charset=utf-8", "")},
		"headers":     map[string]any{"In-Reply-To": "<1@example.org>", "X-Order": 7, "X-None": nil},
	})
	m, got := read(t, text)
	for name, want := range map[string]string{
		"From": "Zoë Müller <zoe@shop.example>", "To": "<ada@example.org>, \"Bob\" <bob@xn--bcher-kva.example>", "Cc": "<c@example.org>, <d@example.org>",
		"Reply-To": "<help@shop.example>", "Subject": "Rechnung für März – " + strings.Repeat("sehr ", 30) + "wichtig", "Date": "Wed, 18 Nov 2026 09:30:00 +0000",
		"In-Reply-To": "<1@example.org>", "X-Order": "7", "X-None": "", "Bcc": "", "Mime-Version": "1.0",
	} {
		value, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get(name))
		if err != nil || value != want {
			t.Errorf("%s: %q, %v, want %q", name, value, err, want)
		}
	}
	if id := m.Header.Get("Message-Id"); !strings.HasSuffix(id, "@shop.example>") {
		t.Errorf("the id is %q", id)
	}
	want := entity{Type: "multipart/mixed", Parts: []entity{
		{Type: "multipart/alternative", Parts: []entity{
			{Type: "text/plain", Content: "Hallo!\r\n\r\nGrüße = alles gut\r\n"},
			{Type: "text/html", Content: "<p>Grüße</p>\r\n"},
		}},
		{Type: "application/pdf", Disposition: "attachment Übersicht \"1\".pdf", Content: strings.Repeat("%PDF", 100)},
		{Type: "text/plain", Disposition: "attachment a.txt"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if again := compose(t, files, map[string]any{"text": "Hello"}); !strings.Contains(again, "Content-Type: text/plain; charset=utf-8\r\n") || strings.Contains(again, "Message-ID") {
		t.Errorf("a message of text only:\n%s", again)
	}
}

// Whatever a message says, a reader gets the same back.
func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		files := actiontest.NewFiles()
		printable := rapid.StringOfN(rapid.RuneFrom([]rune("ab =?_.,\"<>@é日🙂")), 0, 120, -1)
		subject := strings.TrimSpace(printable.Draw(t, "subject"))
		body := "t" + rapid.StringOfN(rapid.RuneFrom([]rune("ab =.-_\n\té日")), 0, 300, -1).Draw(t, "text")
		content := string(rapid.SliceOfN(rapid.Byte(), 0, 500).Draw(t, "content"))
		name := "x" + strings.TrimSpace(printable.Draw(t, "name"))
		m, got := read(t, compose(t, files, map[string]any{
			"subject": subject, "text": body, "html": "<p>", "attachments": files.Add(name, "image/png", content),
		}))
		decoded, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
		if err != nil || strings.Join(strings.Fields(decoded), " ") != strings.Join(strings.Fields(subject), " ") {
			t.Errorf("the subject is %q, %v, want %q", decoded, err, subject)
		}
		want := []entity{
			{Type: "multipart/alternative", Parts: []entity{
				{Type: "text/plain", Content: strings.ReplaceAll(body, "\n", "\r\n") + "\r\n"}, {Type: "text/html", Content: "<p>\r\n"},
			}},
			{Type: "image/png", Disposition: "attachment " + name, Content: content},
		}
		if diff := cmp.Diff(want, got.Parts); diff != "" {
			t.Error(diff)
		}
	})
}

func TestInvalidMessages(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		given map[string]any
		want  string
	}{
		{map[string]any{"to": "nobody"}, `to: "nobody" is not an e-mail address`},
		{map[string]any{"cc": []any{"a@example.org", 7}}, "cc: must be an address, or a list of addresses"},
		{map[string]any{"from": "grüße@example.org"}, `from: "grüße@example.org" is not an e-mail address that mail servers accept`},
		{map[string]any{"text": 7}, "text: must be text"},
		{map[string]any{"attachments": []any{"a.txt"}}, "attachments/0: must be a file"},
		{map[string]any{"headers": "X: y"}, "headers: must be an object"},
		{map[string]any{"headers": map[string]any{"Content-Type": "text/html"}}, "headers/Content-Type: cannot be set, because the other members say what it is"},
		{map[string]any{"headers": map[string]any{"bcc": "x@example.org"}}, "headers/bcc: cannot be set, because the other members say what it is"},
		{map[string]any{"headers": map[string]any{"X:Y": "z"}}, "headers/X:Y: is not the name of a header"},
		{map[string]any{"headers": map[string]any{"X-A": "a\r\nBcc: x@example.org"}}, "the header X-A contains a line break or another control character"},
		{map[string]any{"headers": map[string]any{"X-A": strings.Repeat("a", 998)}}, "the header X-A contains a word that is too long for a line of e-mail"},
	} {
		m, err := transfer.ParseMessage(test.given)
		if err == nil {
			_, err = m.Body()
		}
		if err == nil || err.Error() != test.want {
			t.Errorf("%v: %v, want %q", test.given, err, test.want)
		}
	}
	// A subject may end with a line break, as texts of templates do. It begins no other header.
	m, _ := read(t, compose(t, actiontest.NewFiles(), map[string]any{"subject": "a\r\nBcc: x@example.org\n"}))
	if subject := m.Header.Get("Subject"); subject != "a Bcc: x@example.org" || m.Header.Get("Bcc") != "" {
		t.Errorf("the subject is %q", subject)
	}
}
