package api

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stepmill/stepmill/internal/clock"
	"github.com/stepmill/stepmill/internal/fault"
	"github.com/stepmill/stepmill/internal/run"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

// pages draws the page of a link: no script, nothing from elsewhere.
type pages struct {
	template *template.Template
	policy   string
}

func newPages() pages {
	sum := sha256.Sum256([]byte(pageStyle))
	return pages{
		template: template.Must(template.New("page").Parse(pageText)),
		policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; img-src data:; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	}
}

// pageView is what the page shows.
type pageView struct {
	Style template.CSS
	// Title and Text say how things stand, Mood how that is drawn.
	Title, Text, Mood string
	// What is asked, where that is known.
	Workspace, Workflow, Step, Message string
	Since, Until, Left                 string
	// Open says that there is something to decide, Soon that there will be.
	Open, Soon bool
}

// maxForm bounds what the page sends: a comment, with room for its encoding.
const maxForm = 64 << 10

// enterPage shows what a link asks for, and takes the decision. Opening it
// decides nothing.
func (s *Server) enterPage(w http.ResponseWriter, r *http.Request, c *caller, token string) {
	if r.Method == http.MethodPost {
		if err := s.takeDecision(w, r, c, token); err != nil {
			s.failPage(w, c, s.turnAway(w, r, err))
			return
		}
		// Loading the page again must not send the decision again. The address is
		// relative: the page may be served below a path of somebody else.
		w.Header().Set("Location", url.PathEscape(token))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	asked, err := s.Links.Show(r.Context(), run.PageLink, token)
	if err != nil {
		s.failPage(w, c, s.turnAway(w, r, err))
		return
	}
	s.drawPage(w, http.StatusOK, viewOf(asked))
}

func (s *Server) takeDecision(w http.ResponseWriter, r *http.Request, c *caller, token string) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
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
	return s.decide(r, c, run.PageLink, token, in)
}

func viewOf(a run.Asked) pageView {
	view := pageView{Workspace: a.Workspace.Name, Workflow: a.WorkflowName, Message: a.Message()}
	verdict := a.Verdict()
	if a.Step != nil {
		view.Step, view.Since = a.Step.Name, shownTime(&a.Step.StartedAt)
	}
	switch verdict.Standing {
	case run.Open:
		view.Title, view.Open = "Your decision is needed", true
		view.Until = shownTime(a.Step.Until())
		if until := a.Step.Until(); until != nil {
			view.Left = left(until.Sub(clock.Now()))
		}
	case run.NotYetOpen:
		view.Title, view.Text, view.Soon = "Nothing to decide yet", "The workflow has not come to this point. This page looks again by itself.", true
	case run.Decided:
		view.Title, view.Text, view.Mood = "Rejected", "This has been decided. Thank you: there is nothing left to do.", "no"
		if verdict.Approved {
			view.Title, view.Mood = "Approved", "yes"
		}
	case run.RanOut:
		view.Title, view.Text = "The time ran out", "Nobody decided in time. There is nothing left to do."
	case run.Closed:
		view.Title, view.Text = "No longer needed", "The run has ended without this decision. There is nothing left to do."
	}
	return view
}

func shownTime(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2 January 2006, 15:04 UTC")
}

// left is how much time is left, roughly.
func left(d time.Duration) string {
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

// failPage tells a person what went wrong.
func (s *Server) failPage(w http.ResponseWriter, c *caller, err error) {
	f := s.explain(c, err)
	view := pageView{Title: "Something went wrong", Text: "Please try again in a moment."}
	switch f.Code {
	case fault.NotFound:
		view.Title, view.Text = "This link leads nowhere", "It is not complete, or what it was for is gone."
	case fault.StepNotWaiting:
		view.Title, view.Text = "Your decision did not count", "The reason: "+f.Message+"."
	case fault.RateLimited:
		view.Title, view.Text = "Too many wrong links", "Please wait a minute and try again."
	case fault.InvalidRequest, fault.MethodNotAllowed, fault.PayloadTooLarge:
		view.Title, view.Text = "That did not work", "Please go back and try again: "+f.Message+"."
	}
	setRetryAfter(w.Header(), f)
	s.drawPage(w, f.Code.Status(), view)
}

func (s *Server) drawPage(w http.ResponseWriter, status int, view pageView) {
	view.Style = template.CSS(pageStyle) //nolint:gosec // it is our own file
	var out bytes.Buffer
	if err := s.pages.template.Execute(&out, view); err != nil {
		panic(err) // the template and what it shows are ours
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", s.pages.policy)
	if view.Soon {
		h.Set("Refresh", "5")
	}
	writeBytes(w, status, out.Bytes())
}
