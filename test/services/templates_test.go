package services_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/internal/template"
	"github.com/stepmill/stepmill/test/harness"
)

// templateRun says how a template is run.
type templateRun struct {
	// answers are the tests of operations whose answers its steps get, in order, each as
	// "service.operation: name of the test".
	answers []string
	// adjust has texts of answers to replace, such as the columns of a sheet.
	adjust []string
	// sent are texts that requests have, beside the values of the inputs.
	sent []string
	// approve is the step to approve.
	approve string
}

const (
	slackText  = "slack.post_message: text"
	mailText   = "gmail.send_message: text"
	appendRow  = "google_sheets.append_row: a row with some of the columns"
	botMessage = "telegram.send_message: text"
)

var templateRuns = map[string]templateRun{
	"mail-to-slack":          {answers: []string{slackText}, sent: []string{"The new engine", "Hello, the drawings are ready."}},
	"form-to-sheet":          {answers: []string{appendRow, botMessage}, adjust: []string{`"Amount"`, `"Message"`}, sent: []string{`["Ada Lovelace","ada@acme.test","Please call me back."]`, "Row 5: Ada Lovelace wrote"}},
	"github-issue-to-linear": {answers: []string{"linear.create_issue: with everything", "github.add_comment: a comment"}, sent: []string{"It does not start", "ENG-123: https://linear.app/acme/issue/ENG-123"}},
	"payment-to-hubspot":     {answers: []string{"hubspot.upsert_record: a contact by e-mail address"}, sent: []string{`"id":"ada@acme.test"`, `"firstname":"Ada"`}},
	"sheet-row-to-mail":      {answers: []string{mailText}, sent: []string{"To: <ada@acme.test>", "Hello Ada Lovelace,"}},
	"event-reminder":         {answers: []string{slackText}, sent: []string{"*Planning* begins in 10 minutes.", "https://meet.google.com/abc-defg-hij"}},
	"airtable-to-notion":     {answers: []string{"notion.create_database_page: properties of every kind"}, sent: []string{"Ada Lovelace", "Wants the drawings.", "18 November 2026"}},
	"typeform-to-airtable":   {answers: []string{"airtable.create_record: with conversion"}, sent: []string{`"Name":"Ada Lovelace"`, "How do you like it? Very much"}},
	"notion-to-discord":      {answers: []string{"discord.send_message: text"}, sent: []string{"New: **Launch**"}},
	"jira-to-teams":          {answers: []string{"teams.send_channel_message: text"}, sent: []string{"/browse/WEB-1", "It does not start", "Bug, High"}},
	"drive-to-slack":         {answers: []string{slackText}, sent: []string{"New file: Drawings.pdf"}},
	"attachments-to-drive":   {answers: []string{"gmail.get_attachment: a file", "google_drive.upload_file: a small file"}, sent: []string{`"name":"report.pdf"`, "%PDF-1.7", "From ada@acme.test, The invoice"}},
	"sheet-report":           {answers: []string{"google_sheets.get_rows: rows with gaps", mailText}, sent: []string{"2 rows, 12.5 in total", "Ada: 12.5"}},
	"release-to-discord":     {answers: []string{"discord.send_message: text"}, sent: []string{"**Version 3** is out", "Faster and smaller."}},
	"moderate-comments":      {answers: []string{"openai.moderate: text and an image", slackText}, sent: []string{"may be harmful: violence", "> Look"}},
	"picture-to-telegram":    {answers: []string{"openai.create_image: an image", "telegram.send_photo: a file with a caption"}, sent: []string{"not really a picture"}},
	"supabase-to-sendgrid":   {answers: []string{"sendgrid.send_email: text"}, sent: []string{`"email":"ada@acme.test"`, "Hello Ada,"}},
	"approve-in-slack":       {answers: []string{slackText, appendRow, slackText}, approve: "decide", sent: []string{"Approve or reject: http", `["Ada Lovelace",null,12.5]`, "thread_ts=1700000000.000100", "Approved."}},
	"daily-agenda":           {answers: []string{"google_calendar.list_events: from now on", botMessage}, sent: []string{"1 events today"}},
	"slack-to-jira":          {answers: []string{"jira.create_issue: only a summary", slackText}, sent: []string{`"summary":"Broken"`, "WEB-42", "thread_ts=1795000060.000200"}},
}

// Every template that needs connections is used with values for its inputs and run by the
// real server: each step sends its requests to servers that answer as the tests of the
// integrations say, and the triggers of services look for something new once.
func TestTemplates(t *testing.T) {
	t.Parallel()
	services := &templateServices{t: t}
	s := newInternet(t, services.ServeHTTP).start(t)
	all, err := template.All()
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(slices.Clone(all), func(one template.Template) bool { return !one.Connects() })
	if len(all) != len(templateRuns) {
		t.Errorf("%d templates need connections, and there are runs for %d", len(all), len(templateRuns))
	}
	connectTemplates(t, s.Client, all)
	for _, one := range all {
		t.Run(one.Name, func(t *testing.T) {
			want, ok := templateRuns[one.Name]
			if !ok {
				t.Fatal("say how it is run")
			}
			services.expect(t, want)
			workflow := useTemplate(t, s.Client, one)
			runTemplate(t, s.Client, workflow, one, want)
			services.check(t, one, want)
			poll(t, s.Client, services, workflow, one)
		})
	}
}

// connectTemplates makes a connection for every integration that templates use.
func connectTemplates(t *testing.T, c *harness.Client, all []template.Template) {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	connected := map[string]bool{}
	for _, one := range all {
		for _, in := range one.Inputs {
			if in.Type != template.Connection || connected[in.Integration] {
				continue
			}
			i, err := catalog.Get(in.Integration)
			if err != nil {
				t.Fatal(err)
			}
			connect(t, c, catalog, i)
			connected[in.Integration] = true
		}
	}
}

// inputsOf returns values for the inputs of a template: the connections, and the examples.
func inputsOf(one template.Template) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, in := range one.Inputs {
		switch {
		case in.Type == template.Connection:
			out[in.Name] = json.RawMessage(`"` + in.Integration + `"`)
		case in.Required():
			out[in.Name] = one.TextValue(in.Name, in.Example)
		}
	}
	return out
}

func useTemplate(t *testing.T, c *harness.Client, one template.Template) string {
	t.Helper()
	var made struct {
		ID          string
		Description string
		Warnings    []any
	}
	c.Expect(t, http.StatusCreated, "POST", "/v1/templates/"+one.Name+"/workflows", map[string]any{"inputs": inputsOf(one)}).Decode(t, &made)
	if made.Description != one.Description || len(made.Warnings) > 0 {
		t.Errorf("it is described as %q, with the warnings %v", made.Description, made.Warnings)
	}
	return made.ID
}

// runTemplate runs a workflow with the sample payload of its template.
func runTemplate(t *testing.T, c *harness.Client, workflow string, one template.Template, want templateRun) {
	t.Helper()
	var run struct {
		ID         string
		Status     string
		WaitingFor struct{ Kind string } `json:"waiting_for"`
	}
	c.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"payload": one.Payload}).Decode(t, &run)
	var shown harness.Response
	harness.Eventually(t, "the run ends", func() bool {
		shown = c.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil)
		shown.Decode(t, &run)
		if want.approve != "" && run.WaitingFor.Kind == "answer" {
			c.Expect(t, http.StatusOK, "POST", "/v1/runs/"+run.ID+"/steps/"+want.approve+"/resume", map[string]any{"approved": true})
			want.approve = ""
		}
		return run.Status == "succeeded" || run.Status == "failed"
	})
	if run.Status != "succeeded" {
		t.Fatalf("the run: %s", shown.Body)
	}
}

// poll activates a workflow whose trigger looks for something new at a service, until it
// has looked once.
func poll(t *testing.T, c *harness.Client, services *templateServices, workflow string, one template.Template) {
	t.Helper()
	at := slices.IndexFunc(one.Triggers, func(kind string) bool { return strings.Contains(kind, ".") })
	if at < 0 {
		return
	}
	services.expectPoll(t, one.Triggers[at])
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "active"})
	// It is paused only once the poll is recorded: the next poll is due in a minute or more.
	harness.Eventually(t, "the trigger has looked", func() bool {
		var triggers struct {
			Data []struct {
				NextRunAt time.Time `json:"next_run_at"`
				LastError any       `json:"last_error"`
			}
		}
		c.Expect(t, http.StatusOK, "GET", "/v1/workflows/"+workflow+"/triggers", nil).Decode(t, &triggers)
		one := triggers.Data[0]
		if one.LastError != nil {
			t.Fatalf("the trigger fails: %v", one.LastError)
		}
		return services.left() == 0 && time.Until(one.NextRunAt) > 20*time.Second
	})
	c.Expect(t, http.StatusOK, "PATCH", "/v1/workflows/"+workflow, map[string]any{"state": "paused"})
}

// testsOf reads the tests of an integration.
func testsOf(t *testing.T, service string) *replay.Tests {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "integrations", service, "tests.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	tests, err := replay.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// addressOf returns the host and the path of an expected request.
func addressOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(strings.ReplaceAll(text, "{auth}", "bot"+token))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(u.Host, u.Path)
}
