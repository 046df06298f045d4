package integration

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// The manifest as it is written.

type manifest struct {
	ID         string             `json:"id"`
	Name       string             `json:"name"`
	Category   string             `json:"category"`
	Docs       string             `json:"docs"`
	Keywords   []string           `json:"keywords"`
	BaseURL    string             `json:"base_url"`
	Headers    map[string]string  `json:"headers"`
	Connection manifestConnection `json:"connection"`

	Errors     []manifestErrorRule      `json:"errors"`
	Rate       []manifestRate           `json:"rate"`
	Operations named[manifestOperation] `json:"operations"`
	Hooks      named[manifestHook]      `json:"hooks"`
	Triggers   named[manifestTrigger]   `json:"triggers"`
}

type manifestConnection struct {
	Of     string   `json:"of"`
	Scopes []string `json:"scopes"`

	Fields manifestFields    `json:"fields"`
	Auth   []manifestAuth    `json:"auth"`
	Hosts  []manifestHost    `json:"hosts"`
	Test   *manifestCall     `json:"test"`
	Learn  map[string]string `json:"learn"`
}

type manifestAuth struct {
	ID        string            `json:"id"`
	Kind      string            `json:"kind"`
	Label     string            `json:"label"`
	Help      string            `json:"help"`
	Fields    manifestFields    `json:"fields"`
	AppFields manifestFields    `json:"app_fields"`
	Apply     *manifestApply    `json:"apply"`
	Test      *manifestCall     `json:"test"`
	Learn     map[string]string `json:"learn"`
	Service   string            `json:"service"`

	AuthorizeURL   string            `json:"authorize_url"`
	TokenURL       string            `json:"token_url"`
	RevokeURL      string            `json:"revoke_url"`
	Scopes         []string          `json:"scopes"`
	ScopeSeparator string            `json:"scope_separator"`
	ScopeParam     string            `json:"scope_param"`
	Params         map[string]string `json:"params"`
	TokenParams    map[string]string `json:"token_params"`
	ClientAuth     string            `json:"client_auth"`
	TokenBody      string            `json:"token_body"`
	RevokeBody     string            `json:"revoke_body"`
	RevokeParam    string            `json:"revoke_param"`
	PKCE           *bool             `json:"pkce"`
	TokenAt        string            `json:"token_at"`
	Refusals       []string          `json:"refusals"`
	Exchange       *manifestExchange `json:"exchange"`

	members []string // the members that are written
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *manifestAuth) UnmarshalJSON(data []byte) error {
	type plain manifestAuth
	err := strictjson.Decode(data, (*plain)(a))
	a.members = keys(data)
	return err
}

type manifestExchange struct {
	URL    string            `json:"url"`
	Params map[string]string `json:"params"`
}

type manifestApply struct {
	Headers map[string]string `json:"headers"`
	Query   map[string]string `json:"query"`
	Basic   *manifestBasic    `json:"basic"`
	Path    string            `json:"path"`
}

type manifestBasic struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

type manifestOperation struct {
	Title      string               `json:"title"`
	Summary    string               `json:"summary"`
	Hidden     bool                 `json:"hidden"`
	Timeout    string               `json:"timeout"`
	Input      named[manifestInput] `json:"input"`
	Request    *manifestCall        `json:"request"`
	Do         []manifestCall       `json:"do"`
	Output     any                  `json:"output"`
	Rate       []manifestRate       `json:"rate"`
	Option     *manifestOption      `json:"option"`
	Field      *manifestMember      `json:"field"`
	Deprecated *Deprecation         `json:"deprecated"`
}

type manifestTrigger struct {
	Title      string               `json:"title"`
	Summary    string               `json:"summary"`
	Input      named[manifestInput] `json:"input"`
	Hook       string               `json:"hook"`
	Poll       *manifestPoll        `json:"poll"`
	When       string               `json:"when"`
	Key        string               `json:"key"`
	Output     any                  `json:"output"`
	Deprecated *Deprecation         `json:"deprecated"`
}

type manifestPoll struct {
	Operation string         `json:"operation"`
	Every     string         `json:"every"`
	Start     *manifestStart `json:"start"`
	Cursor    string         `json:"cursor"`
	More      string         `json:"more"`
	Reset     string         `json:"reset"`
}

// manifestStart is a call, if it is an object, or a text with expressions.
type manifestStart struct {
	value string
	call  *manifestCall
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *manifestStart) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return strictjson.Decode(data, &s.value)
	}
	return strictjson.Decode(data, &s.call)
}

type manifestHook struct {
	Scope      string             `json:"scope"`
	Setup      string             `json:"setup"`
	Register   *manifestCalls     `json:"register"`
	Renew      *manifestCalls     `json:"renew"`
	Unregister *manifestCalls     `json:"unregister"`
	Expires    string             `json:"expires"`
	Verify     *manifestVerify    `json:"verify"`
	Challenge  *manifestChallenge `json:"challenge"`
	Items      string             `json:"items"`
	Account    string             `json:"account"`
	Key        string             `json:"key"`
	Reply      any                `json:"reply"`
}

// manifestCalls is a call, or an object with several of them and an output.
type manifestCalls struct {
	call   *manifestCall
	Do     []manifestCall `json:"do"`
	Output any            `json:"output"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *manifestCalls) UnmarshalJSON(data []byte) error {
	if !slices.Contains(keys(data), "do") {
		return strictjson.Decode(data, &c.call)
	}
	type plain manifestCalls
	return strictjson.Decode(data, (*plain)(c))
}

type manifestVerify struct {
	Scheme         string `json:"scheme"`
	Secret         string `json:"secret"`
	SecretEncoding string `json:"secret_encoding"`
	Given          string `json:"given"`
	Header         string `json:"header"`
	Algorithm      string `json:"algorithm"`
	Encoding       string `json:"encoding"`
	Prefix         string `json:"prefix"`
	Timestamp      string `json:"timestamp"`
	Signed         string `json:"signed"`
	Tolerance      string `json:"tolerance"`
}

type manifestChallenge struct {
	When  string `json:"when"`
	Reply any    `json:"reply"`
}

type manifestOption struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

type manifestMember struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Type     string `json:"type"`
	Required string `json:"required"`
	Options  string `json:"options"`
}

type manifestRate struct {
	Requests  int    `json:"requests"`
	Every     string `json:"every"`
	Per       string `json:"per"`
	Remaining string `json:"remaining"`
	Reset     string `json:"reset"`
}

type manifestInput struct {
	Type       string             `json:"type"`
	Title      string             `json:"title"`
	Help       string             `json:"help"`
	Required   bool               `json:"required"`
	Advanced   bool               `json:"advanced"`
	Default    any                `json:"default"`
	Example    any                `json:"example"`
	Enum       []any              `json:"enum"`
	Pattern    string             `json:"pattern"`
	Format     string             `json:"format"`
	Min        *float64           `json:"min"`
	Max        *float64           `json:"max"`
	Items      *manifestInput     `json:"items"`
	Properties manifestProperties `json:"properties"`
	Options    string             `json:"options"`
	Fields     string             `json:"fields"`
	Search     bool               `json:"search"`
}

// manifestProperties are the members of an object. Unlike inputs, they have the names
// that the service gives them, because objects are sent as they are.
type manifestProperties struct{ named[manifestInput] }

type manifestCall struct {
	ID          string               `json:"id"`
	If          string               `json:"if"`
	Method      string               `json:"method"`
	Path        string               `json:"path"`
	URL         string               `json:"url"`
	Auth        string               `json:"auth"`
	Query       any                  `json:"query"`
	Headers     any                  `json:"headers"`
	JSON        any                  `json:"json"`
	Form        any                  `json:"form"`
	Multipart   any                  `json:"multipart"`
	Raw         any                  `json:"raw"`
	GraphQL     string               `json:"graphql"`
	Variables   any                  `json:"variables"`
	Response    string               `json:"response"`
	FileName    string               `json:"file_name"`
	Blobs       []string             `json:"blobs"`
	Items       string               `json:"items"`
	Page        *manifestPage        `json:"page"`
	Batch       *manifestBatch       `json:"batch"`
	Chunk       *manifestChunk       `json:"chunk"`
	Idempotency *manifestIdempotency `json:"idempotency"`
	OnUnknown   string               `json:"on_unknown"`
	Errors      []manifestErrorRule  `json:"errors"`
	Output      any                  `json:"output"`
}

type manifestPage struct {
	Next    string `json:"next"`
	NextURL string `json:"next_url"`
	More    string `json:"more"`
	Size    int    `json:"size"`
}

type manifestBatch struct {
	Of   string `json:"of"`
	Size int    `json:"size"`
}

type manifestChunk struct {
	File string        `json:"file"`
	Size int64         `json:"size"`
	Next string        `json:"next"`
	Ask  *manifestCall `json:"ask"`
}

// manifestIdempotency is safe or none, or an object with remembered or find.
type manifestIdempotency struct {
	word       string
	Remembered string        `json:"remembered"`
	Find       *manifestCall `json:"find"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (i *manifestIdempotency) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return strictjson.Decode(data, &i.word)
	}
	type plain manifestIdempotency
	return strictjson.Decode(data, (*plain)(i))
}

type manifestErrorRule struct {
	When       string `json:"when"`
	Kind       string `json:"kind"`
	Code       string `json:"code"`
	Message    string `json:"message"`
	RetryAfter string `json:"retry_after"`
}

type manifestField struct {
	Title    string           `json:"title"`
	Help     string           `json:"help"`
	Secret   bool             `json:"secret"`
	Optional bool             `json:"optional"`
	Default  string           `json:"default"`
	Enum     []manifestChoice `json:"enum"`
	Pattern  string           `json:"pattern"`
	Format   string           `json:"format"`
	Example  string           `json:"example"`
}

// manifestFields is an object of fields that keeps their order.
type manifestFields = named[manifestField]

// named is an object whose members keep their order.
type named[T any] []namedMember[T]

type namedMember[T any] struct {
	name  string
	value T
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *named[T]) UnmarshalJSON(data []byte) error {
	var members map[string]T
	if err := strictjson.Decode(data, &members); err != nil {
		return err
	}
	for _, name := range keys(data) {
		*n = append(*n, namedMember[T]{name, members[name]})
	}
	return nil
}

// keys returns the keys of an object in the order of the document.
func keys(object []byte) []string {
	var out []string
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		name, _ := key.(string)
		out = append(out, name)
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil
		}
	}
	return out
}

// manifestChoice is a value, or an object with a value and a label.
type manifestChoice struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *manifestChoice) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return strictjson.Decode(data, &c.Value)
	}
	type plain manifestChoice
	return strictjson.Decode(data, (*plain)(c))
}

// manifestHost is a host, or an object with a host and the domains it lies within.
type manifestHost struct {
	Host   string   `json:"host"`
	Within []string `json:"within"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *manifestHost) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return strictjson.Decode(data, &h.Host)
	}
	type plain manifestHost
	return strictjson.Decode(data, (*plain)(h))
}
