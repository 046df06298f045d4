package fuzzapi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// maxKnown is how many values of a kind are remembered.
const maxKnown = 200

// Known has values that exist in the service, so that requests find something. They
// come from the seeds and from responses. Kinds are named after path segments.
type Known struct {
	// Receiver is the URL of a server on this machine that webhooks and steps may call.
	Receiver string

	mu        sync.Mutex
	values    map[string][]string
	owners    map[string]string // ids with their workspace
	protected map[string]bool
}

// NewKnown returns a Known with values that are the same in every service.
func NewKnown(receiver string) *Known {
	return &Known{Receiver: receiver, owners: map[string]string{}, protected: map[string]bool{}, values: map[string][]string{
		"actions":   {"data.set", "http.request", "graphql.request", "code.js", "flow.wait", "flow.approval"},
		"secrets":   {"canary", "shop_token"},
		"variables": {"region", "limits"},
		"state":     {"counter", "last-alert"},
		"triggers":  {"by_hand", "call", "nightly"},
		"steps":     {"greet", "ask", "each", "each[0].inner", "bad"},
		"versions":  {"1", "2", "3"},

		"integrations": {"slack", "gitlab", "zoho"},
	}}
}

var prefixes = map[string]string{
	"wf": "workflows", "run": "runs", "wh": "webhooks", "key": "api-keys", "ws": "workspaces", "dlv": "deliveries",
	"evt": "events", "usr": "members", "ses": "sessions", "inv": "invitations", "tbl": "tables", "row": "rows",
}

// Protect keeps an id out of requests, because the fuzzer itself depends on it.
func (k *Known) Protect(ids ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, id := range ids {
		k.protected[id] = true
	}
}

// Add remembers a value.
func (k *Known) Add(kind, value string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(kind, value)
}

func (k *Known) add(kind, value string) {
	list := k.values[kind]
	switch {
	case value == "" || k.protected[value]:
	case len(list) < maxKnown:
		k.values[kind] = append(list, value)
	default:
		list[len(value)*31%maxKnown] = value
		k.values[kind] = append(list[1:], list[0])
	}
}

// one returns a remembered value of a kind, mostly one that a workspace can reach.
func (k *Known) one(r *rand.Rand, kind, workspace string) (string, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := k.values[kind]
	if r.IntN(100) < 90 {
		list = slices.DeleteFunc(slices.Clone(list), func(value string) bool {
			owner := k.owners[value]
			return owner != "" && owner != workspace
		})
	}
	if len(list) == 0 {
		return "", false
	}
	return pick(r, list), true
}

// forget removes deleted ids.
func (k *Known) forget(ids []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for kind, list := range k.values {
		k.values[kind] = slices.DeleteFunc(list, func(value string) bool { return slices.Contains(ids, value) })
	}
}

var idPattern = regexp.MustCompile(`^\^([a-z]+)_\[`)

// withPattern returns an id that a pattern of the document describes.
func (k *Known) withPattern(r *rand.Rand, pattern, workspace string) (string, bool) {
	if match := idPattern.FindStringSubmatch(pattern); match != nil {
		return k.one(r, prefixes[match[1]], workspace)
	}
	return "", false
}

// kinds lists the names of members and parameters that refer to something.
var kinds = map[string]string{
	"workflow_id": "workflows", "run_id": "runs", "workspace_id": "workspaces", "cursor": "cursors", "step_id": "steps",
	"If-Match": "etags", "If-None-Match": "etags", "block": "steps", "token": "tokens", "target_id": "workflows", "workflow": "workflows",
}

// fixed lists texts for members and parameters of these names.
var fixed = map[string][]string{
	"Prefer":          {"wait=0", "wait=1", "respond-async"},
	"email":           {"victim@example.com", "nobody@example.com", "Ada@Example.com"},
	"password":        {"correct horse battery", "wrong horse battery"},
	"code":            {"return {n: 1}", "return input", "throw new Error('x')", "return ("},
	"types":           {"run.started", "run.failed,run.succeeded", "workflow.activated", "workflows", "runs"},
	"trigger":         {"manual", "schedule"},
	"Last-Event-ID":   {"1", "1-1", "0"},
	"Idempotency-Key": {"same", "other"},
	"for":             {"1s", "10s"},
}

// named returns a value that makes sense for a member or parameter of this name.
func (k *Known) named(r *rand.Rand, name, workspace string) (string, bool) {
	if name == "url" {
		return k.Receiver + "/" + pick(r, []string{"ok", "fail", "gone"}), true
	}
	if list := fixed[name]; list != nil {
		return pick(r, list), true
	}
	if kind := kinds[name]; kind != "" {
		return k.one(r, kind, workspace)
	}
	return "", false
}

var (
	idValue   = regexp.MustCompile(`^([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}$`)
	linkValue = regexp.MustCompile(`/(approve|callback)/([^/"?#]+)$`)
	tokenLink = regexp.MustCompile(`#token=(\S+)$`)
)

// Learn remembers the ids, cursors and links in a response to a caller of a workspace.
func (k *Known) Learn(workspace string, body []byte) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := ""; ; {
		token, err := decoder.Token()
		if err != nil {
			return
		}
		text, isText := token.(string)
		if !isText {
			continue
		}
		k.learn(workspace, name, text)
		name = text
	}
}

// learn remembers a text. The previous text in the document is the name of its member.
func (k *Known) learn(workspace, name, text string) {
	if match := linkValue.FindStringSubmatch(text); match != nil && strings.Contains(text, "://") {
		k.add(match[1], match[2])
	}
	if match := tokenLink.FindStringSubmatch(text); match != nil {
		k.add("tokens", match[1])
	}
	if name == "next_cursor" {
		k.add("cursors", text)
	}
	match := idValue.FindStringSubmatch(text)
	if len(match) == 0 || prefixes[match[1]] == "" {
		return
	}
	k.add(prefixes[match[1]], text)
	if name == "id" && workspace != "" && k.owners[text] == "" {
		k.owners[text] = workspace
	}
}

// owner returns the workspace that was first seen with an id, or "".
func (k *Known) owner(id string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.owners[id]
}
