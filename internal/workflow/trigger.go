package workflow

import (
	"encoding/json"
	"slices"
)

// Types of triggers.
const (
	ManualTrigger   = "manual"
	ScheduleTrigger = "schedule"
	WebhookTrigger  = "webhook"
	EventTrigger    = "event"
	PollTrigger     = "poll"
)

// TriggerTypes lists the types of triggers.
func TriggerTypes() []string {
	return []string{ManualTrigger, ScheduleTrigger, WebhookTrigger, EventTrigger, PollTrigger}
}

// Trigger is an entry of `triggers`. Its type says which of the members it may
// have.
type Trigger struct {
	ID   string `json:"id"`
	Type string `json:"type"`

	// A schedule fires at the times of Cron in a time zone, or at an interval.
	Cron     string `json:"cron,omitempty"`
	Every    string `json:"every,omitempty"` // that of a poll too
	Timezone string `json:"timezone,omitempty"`
	Missed   Missed `json:"missed,omitempty"`
	Jitter   string `json:"jitter,omitempty"`

	// A webhook fires when its address is called.
	Methods []string  `json:"methods,omitempty"`
	Verify  *Verify   `json:"verify,omitempty"`
	Dedupe  string    `json:"dedupe,omitempty"`
	Respond Respond   `json:"respond,omitempty"`
	Rate    PerMinute `json:"rate,omitempty"`

	// An event fires on what happens to other workflows and their runs.
	Events    []string `json:"events,omitempty"`
	Workflows []string `json:"workflows,omitempty"`

	// A poll asks a server and fires for each new item of its answer.
	Request json.RawMessage `json:"request,omitempty"`
	Items   string          `json:"items,omitempty"`
	Key     string          `json:"key,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`
}

// Missed says what becomes of times that passed while nothing could fire.
type Missed string

// What becomes of them.
const (
	Skip   Missed = "skip"   // nothing
	Latest Missed = "latest" // the last of them is made up for
)

// UnmarshalJSON reads a name; only a member that is absent means the default.
func (m *Missed) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(m)) }

// Respond says when the caller of a webhook gets its answer.
type Respond string

// When it does.
const (
	RespondNow    Respond = "now"    // once the run has started
	RespondResult Respond = "result" // once it has ended, with its result
)

// UnmarshalJSON reads a name; only a member that is absent means the default.
func (r *Respond) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(r)) }

// PerMinute is how often something may happen in a minute.
type PerMinute int

// UnmarshalJSON reads a number; only a member that is absent means the default.
func (p *PerMinute) UnmarshalJSON(data []byte) error { return (*Places)(p).UnmarshalJSON(data) }

// Verify says how a webhook knows that a call comes from whom it should.
type Verify struct {
	Scheme string `json:"scheme"`
	// Secret is an expression for the secret that both sides know: the key of a
	// signature, the password of basic, the token of bearer.
	Secret   string `json:"secret,omitempty"`
	Username string `json:"username,omitempty"`
	// Header is where the token of bearer is, if not in Authorization, or the
	// signature of hmac. The rest describes that signature.
	Header    string `json:"header,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	// Signed is what the signature is made of: text in which {body} stands for
	// the body and {name} for the header of that name.
	Signed string `json:"signed,omitempty"`
	// Timestamp is the header with the time of the call in Unix seconds.
	Timestamp string `json:"timestamp,omitempty"`
	// Tolerance is how old a signed call may be.
	Tolerance string `json:"tolerance,omitempty"`
}

// Schemes by which calls are verified.
const (
	SchemeGitHub   = "github"
	SchemeStripe   = "stripe"
	SchemeSlack    = "slack"
	SchemeStandard = "standard-webhooks"
	SchemeHMAC     = "hmac"
	SchemeBasic    = "basic"
	SchemeBearer   = "bearer"
	SchemeNone     = "none"
)

// Schemes lists the schemes.
func Schemes() []string {
	return []string{SchemeGitHub, SchemeStripe, SchemeSlack, SchemeStandard, SchemeHMAC, SchemeBasic, SchemeBearer, SchemeNone}
}

// schemeMembers are those that a scheme may have beside its name.
func schemeMembers(scheme string) []string {
	switch scheme {
	case SchemeGitHub:
		return []string{"secret"}
	case SchemeBearer:
		return []string{"secret", "header"}
	case SchemeBasic:
		return []string{"secret", "username"}
	case SchemeStripe, SchemeSlack, SchemeStandard:
		return []string{"secret", "tolerance"}
	case SchemeHMAC:
		return []string{"secret", "header", "algorithm", "encoding", "prefix", "signed", "timestamp", "tolerance"}
	}
	return nil
}

// triggerMembers are those that a type of trigger may have beside id and type.
func triggerMembers(kind string) []string {
	switch kind {
	case ScheduleTrigger:
		return []string{"cron", "every", "timezone", "missed", "jitter"}
	case WebhookTrigger:
		return []string{"methods", "verify", "dedupe", "respond", "rate"}
	case EventTrigger:
		return []string{"events", "workflows"}
	case PollTrigger:
		return []string{"every", "request", "items", "key", "cursor"}
	}
	return nil
}

// members are the names of those that a trigger has, beside id and type.
func (t Trigger) members() []string {
	return given(map[string]bool{
		"cron": t.Cron != "", "every": t.Every != "", "timezone": t.Timezone != "", "missed": t.Missed != "", "jitter": t.Jitter != "",
		"methods": t.Methods != nil, "verify": t.Verify != nil, "dedupe": t.Dedupe != "", "respond": t.Respond != "", "rate": t.Rate != 0,
		"events": t.Events != nil, "workflows": t.Workflows != nil,
		"request": t.Request != nil, "items": t.Items != "", "key": t.Key != "", "cursor": t.Cursor != "",
	})
}

// members are the names of those that it has beside the scheme.
func (v Verify) members() []string {
	return given(map[string]bool{
		"secret": v.Secret != "", "username": v.Username != "", "header": v.Header != "", "algorithm": v.Algorithm != "", "encoding": v.Encoding != "",
		"prefix": v.Prefix != "", "signed": v.Signed != "", "timestamp": v.Timestamp != "", "tolerance": v.Tolerance != "",
	})
}

func given(has map[string]bool) []string {
	var names []string
	for name, there := range has {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
