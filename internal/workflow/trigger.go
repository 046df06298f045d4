package workflow

import (
	"encoding/json"
	"slices"
	"strings"
)

// Names of the types of triggers that ship with Stepmill.
const (
	ManualTrigger   = "manual"
	ScheduleTrigger = "schedule"
	WebhookTrigger  = "webhook"
	EventTrigger    = "event"
	PollTrigger     = "poll"
	// ServiceTrigger stands for all types that belong to a service, such as
	// gmail.new_message. It is not a type itself.
	ServiceTrigger = "service"
)

// FamilyOf returns what the triggers of a type are stored as: ServiceTrigger for a type of a
// service, otherwise the type.
func FamilyOf(triggerType string) string {
	if strings.Contains(triggerType, ".") {
		return ServiceTrigger
	}
	return triggerType
}

// Trigger is an entry of `triggers`. Its type decides which members are allowed.
type Trigger struct {
	ID   string `json:"id"`
	Type string `json:"type"`

	// A schedule fires at the times of Cron in a time zone, or at an interval.
	Cron     string `json:"cron,omitempty"`
	Every    string `json:"every,omitempty"` // also of a poll
	Timezone string `json:"timezone,omitempty"`
	Missed   Missed `json:"missed,omitempty"`
	Jitter   string `json:"jitter,omitempty"`

	// A webhook fires when its URL is called.
	Methods []string  `json:"methods,omitempty"`
	Verify  *Verify   `json:"verify,omitempty"`
	Dedupe  string    `json:"dedupe,omitempty"`
	Respond Respond   `json:"respond,omitempty"`
	Rate    PerMinute `json:"rate,omitempty"`

	// An event trigger fires on events of other workflows and their runs.
	Events    []string `json:"events,omitempty"`
	Workflows []string `json:"workflows,omitempty"`

	// A poll sends a request and fires for each new item in the response.
	Request json.RawMessage `json:"request,omitempty"`
	Items   string          `json:"items,omitempty"`
	Key     string          `json:"key,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`

	// Connection is the name of the connection that the trigger uses.
	Connection string `json:"connection,omitempty"`
	// With has the settings of types that declare an input, like that of an action.
	With json.RawMessage `json:"with,omitempty"`
}

// Missed says what happens to scheduled times that passed while the service was
// stopped.
type Missed string

// The values of Missed.
const (
	Skip   Missed = "skip"   // they are skipped
	Latest Missed = "latest" // the trigger fires once for the latest
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
func (m *Missed) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(m)) }

// Respond says when the caller of a webhook gets the response.
type Respond string

// The values of Respond.
const (
	RespondNow    Respond = "now"    // once the run has started
	RespondResult Respond = "result" // once it has ended, with its result
)

// UnmarshalJSON reads a name. It rejects "", which means that the member is absent.
func (r *Respond) UnmarshalJSON(data []byte) error { return unmarshalName(data, (*string)(r)) }

// PerMinute is a rate limit per minute.
type PerMinute int

// UnmarshalJSON reads a number. It rejects zero, which means that the member is absent.
func (p *PerMinute) UnmarshalJSON(data []byte) error { return (*SlotCount)(p).UnmarshalJSON(data) }

// Verify says how a webhook trigger verifies the caller.
type Verify struct {
	Scheme string `json:"scheme"`
	// Secret is an expression for the shared secret: the key of a signature, the
	// password of basic, the token of bearer.
	Secret   string `json:"secret,omitempty"`
	Username string `json:"username,omitempty"`
	// Header contains the signature of hmac, or the token of bearer if it is not in
	// Authorization. The other fields describe the signature of hmac.
	Header    string `json:"header,omitempty"`
	Algorithm string `json:"algorithm,omitempty"`
	Encoding  string `json:"encoding,omitempty"`
	Prefix    string `json:"prefix,omitempty"`
	// Signed is the signed text, in which {body} is replaced by the body and {name}
	// by the header of that name.
	Signed string `json:"signed,omitempty"`
	// Timestamp is the header that contains the time of the call in Unix seconds.
	Timestamp string `json:"timestamp,omitempty"`
	// Tolerance is how old a signed call may be.
	Tolerance string `json:"tolerance,omitempty"`
}

// Schemes for verifying calls.
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

// members returns the names of the members that are set, besides id and type.
func (t Trigger) members() []string {
	return presentNames(map[string]bool{
		"cron": t.Cron != "", "every": t.Every != "", "timezone": t.Timezone != "", "missed": t.Missed != "", "jitter": t.Jitter != "",
		"methods": t.Methods != nil, "verify": t.Verify != nil, "dedupe": t.Dedupe != "", "respond": t.Respond != "", "rate": t.Rate != 0,
		"events": t.Events != nil, "workflows": t.Workflows != nil,
		"request": t.Request != nil, "items": t.Items != "", "key": t.Key != "", "cursor": t.Cursor != "",
		"with": t.With != nil,
	})
}

// Members returns the sorted names of the members that are set, besides scheme.
func (v Verify) Members() []string {
	return presentNames(map[string]bool{
		"secret": v.Secret != "", "username": v.Username != "", "header": v.Header != "", "algorithm": v.Algorithm != "", "encoding": v.Encoding != "",
		"prefix": v.Prefix != "", "signed": v.Signed != "", "timestamp": v.Timestamp != "", "tolerance": v.Tolerance != "",
	})
}

func presentNames(has map[string]bool) []string {
	var names []string
	for name, there := range has {
		if there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
