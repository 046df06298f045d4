package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/transport"
)

//go:embed decision_page.html
var pageText string

//go:embed decision_page.css
var pageStyle string

// decisionPage renders the page of a link, without scripts or external resources.
type decisionPage struct {
	template *template.Template
	policy   string
}

func newDecisionPage() decisionPage {
	sum := sha256.Sum256([]byte(pageStyle))
	return decisionPage{
		template: template.Must(template.New("page").Parse(pageText)),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

type pageView struct {
	Style template.CSS
	// Title and Text describe the state of the decision; Mood is its CSS class.
	Title, Text, Mood string
	// The request for a decision, where it is known.
	Workspace, Workflow, Step, Message string
	Since, Until, Left                 string
	// Open shows the form. Pending means that the step has not been reached yet.
	Open, Pending bool
}

// maxForm limits the size of the form: a comment, with room for its encoding.
const maxForm = 64 << 10

// servePage shows the request behind a link and accepts the decision. Opening the
// page decides nothing.
func (h *decisionLinks) servePage(call *transport.Call, token string) {
	if call.R.Method == http.MethodPost {
		if err := h.submitForm(call, token); err != nil {
			h.failPage(call, call.Reject(err))
			return
		}
		// Reloading the page must not submit the decision again. The location is
		// relative because a proxy may serve the page below a prefix.
		call.W.Header().Set("Location", url.PathEscape(token))
		call.W.WriteHeader(http.StatusSeeOther)
		return
	}
	link, err := h.links.Show(call.R.Context(), run.PageLink, token)
	if err != nil {
		h.failPage(call, call.Reject(err))
		return
	}
	h.page.render(call, http.StatusOK, viewOf(link))
}

func (h *decisionLinks) submitForm(call *transport.Call, token string) error {
	r := call.R
	if _, err := h.links.Show(r.Context(), run.PageLink, token); err != nil {
		return err
	}
	reserved, err := call.ReserveBody(transport.NetworkBodies(call.Network()))
	if err != nil {
		return err
	}
	defer reserved.Release()
	body, err := call.ReadBody(maxForm, reserved, fault.New(fault.InvalidRequest, "the form is larger than %d bytes: write a shorter comment", maxForm))
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.ParseForm(); err != nil {
		return fault.New(fault.InvalidRequest, "the form could not be read").Because(err)
	}
	in := run.Resumption{Comment: r.PostForm.Get("comment")}
	switch r.PostForm.Get("decision") {
	case "approve":
		in.Approved = true
	case "reject":
	default:
		return fault.New(fault.InvalidRequest, "choose to approve or to reject")
	}
	return h.submit(call, run.PageLink, token, in)
}

func viewOf(a run.LinkedStep) pageView {
	view := pageView{Workspace: a.Workspace.Name, Workflow: a.WorkflowName, Message: a.Message()}
	status := a.AnswerStatus()
	if a.Step != nil {
		view.Step, view.Since = a.Step.Name, formatTime(&a.Step.StartedAt)
	}
	switch status.State {
	case run.Open:
		view.Title, view.Open = "Your decision is needed", true
		view.Until = formatTime(a.Step.WaitsUntil())
		if until := a.Step.WaitsUntil(); until != nil {
			view.Left = timeLeft(until.Sub(clock.Now()))
		}
	case run.NotYetOpen:
		view.Title, view.Text, view.Pending = "Nothing to decide yet", "The workflow has not reached this step. This page reloads automatically.", true
	case run.Decided:
		view.Title, view.Text, view.Mood = "Rejected", "This decision has been made. Thank you, there is nothing left to do.", "no"
		if status.Approved {
			view.Title, view.Mood = "Approved", "yes"
		}
	case run.RanOut:
		view.Title, view.Text = "The deadline has passed", "No decision was made in time. There is nothing left to do."
	case run.Closed:
		view.Title, view.Text = "No longer needed", "The run ended without this decision. There is nothing left to do."
	}
	return view
}

func formatTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// timeLeft returns the remaining time, roughly.
func timeLeft(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return "less than a minute left"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min left"
	case d < 2*day:
		return strconv.Itoa(int(d/time.Hour)) + " hours left"
	}
	return strconv.Itoa(int(d/day)) + " days left"
}

func (h *decisionLinks) failPage(call *transport.Call, err error) {
	f := call.Problem(err)
	view := pageView{Title: "Something went wrong", Text: "Please try again in a moment."}
	switch f.Code {
	case fault.NotFound:
		view.Title, view.Text = "This link does not work", "It is incomplete, or the decision it was for no longer exists. Check that you copied the whole link."
	case fault.StepNotWaiting:
		view.Title, view.Text = "Your decision was not recorded", "Reason: "+f.Message+"."
	case fault.RateLimited:
		view.Title, view.Text = "Too many invalid links", "Please wait a minute and try again."
	case fault.InvalidRequest, fault.MethodNotAllowed, fault.PayloadTooLarge:
		view.Title, view.Text = "That did not work", "Please go back and try again: "+f.Message+"."
	}
	h.page.render(call, f.Code.Status(), view)
}

func (p decisionPage) render(call *transport.Call, status int, view pageView) {
	view.Style = template.CSS(pageStyle) //nolint:gosec // our own file
	var out bytes.Buffer
	if err := p.template.Execute(&out, view); err != nil {
		panic(err) // a bug: the template and its data are ours
	}
	header := call.W.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", p.policy)
	if view.Pending {
		header.Set("Refresh", "5")
	}
	call.Bytes(status, out.Bytes())
}
