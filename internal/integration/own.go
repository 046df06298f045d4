package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// OwnPrefix is what the ids of a workspace's own integrations begin with, and those of no
// integration that is part of the product.
const OwnPrefix = "x_"

// IsOwn reports whether an id, or the name of an operation, a trigger or a hook, is that of
// a workspace's own integration.
func IsOwn(name string) bool { return strings.HasPrefix(name, OwnPrefix) }

// ParseOwn reads the manifest of a workspace's own integration. The error is an [Errors].
func ParseOwn(data []byte) (*Integration, error) {
	d, err := decode(data)
	if err != nil {
		return nil, err
	}
	p := &parser{document: d.document, text: d.text}
	if !IsOwn(d.manifest.ID) {
		p.failf("/id", "must begin with %s, as in %sacme: the other ids are those of the integrations that are part of Stepmill", OwnPrefix, OwnPrefix)
	}
	out := p.compile(&d.manifest, func(string) (*Integration, bool) { return nil, false })
	if p.errs != nil {
		p.errs.Sort()
		return nil, p.errs
	}
	sum := sha256.Sum256(data)
	out.digest, out.size = hex.EncodeToString(sum[:]), len(data)
	out.use, err = useOf(d.document.JSON)
	return out, err
}

// Digest identifies the text of an own manifest. It is "" for an integration that is part
// of the product.
func (i *Integration) Digest() string { return i.digest }

// Size returns the length of an own manifest.
func (i *Integration) Size() int { return i.size }

// Use identifies everything in an own manifest that decides where and how the credential of
// a connection is used. Two manifests with the same Use differ, as far as connections are
// concerned, only in texts for people. It is "" for an integration that is part of the product.
func (i *Integration) Use() string { return i.use }

// ConfirmHosts returns the hosts that whoever connects to an own integration has to
// confirm, as HostPatterns does: those that receive the credential, and those where people
// consent and tokens are issued and revoked.
func (i *Integration) ConfirmHosts() []string {
	out := i.HostPatterns()
	for _, a := range i.Connection.Auth {
		endpoints := []Template{a.AuthorizeURL, a.TokenURL, a.RevokeURL}
		if a.Exchange != nil {
			endpoints = append(endpoints, a.Exchange.URL)
		}
		for _, endpoint := range endpoints {
			if !endpoint.IsZero() {
				out = append(out, hostPattern(authority(endpoint.Source())))
			}
		}
	}
	out = slices.DeleteFunc(out, func(host string) bool { return host == "" })
	slices.Sort(out)
	return slices.Compact(out)
}

func useOf(manifest json.RawMessage) (string, error) {
	var parts struct {
		BaseURL    any            `json:"base_url"`
		Headers    any            `json:"headers"`
		Connection map[string]any `json:"connection"`
	}
	if err := json.Unmarshal(manifest, &parts); err != nil {
		return "", err
	}
	dropTexts(parts.Connection["fields"])
	ways, _ := parts.Connection["auth"].([]any)
	for _, one := range ways {
		way, _ := one.(map[string]any)
		delete(way, "label")
		delete(way, "help")
		dropTexts(way["fields"])
		dropTexts(way["app_fields"])
	}
	text, err := strictjson.Encode(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// dropTexts removes the texts for people from fields.
func dropTexts(fields any) {
	members, _ := fields.(map[string]any)
	for _, one := range members {
		field, _ := one.(map[string]any)
		for _, name := range []string{"title", "help", "example"} {
			delete(field, name)
		}
	}
}

// checkOwn checks what only holds for a workspace's own manifests. Other people read them
// than those who have written them, and they must not reach the credential of anything else.
func (p *parser) checkOwn(m *manifest) {
	p.checkCharacters()
	p.shortText("/name", m.Name, maxTitle)
	p.shortText("/docs", m.Docs, maxHelp)
	if len(m.Keywords) > maxKeywords {
		p.failf("/keywords", "has at most %d entries", maxKeywords)
	}
	for i, word := range m.Keywords {
		p.shortText(at("/keywords", fmt.Sprint(i)), word, maxTitle)
	}
	p.shortFields("/connection/fields", m.Connection.Fields)
	p.learnsNoField("/connection/learn", m.Connection.Learn, m.Connection.Fields)
	for i, a := range m.Connection.Auth {
		pointer := at("/connection/auth", fmt.Sprint(i))
		p.shortText(at(pointer, "label"), a.Label, maxTitle)
		p.shortText(at(pointer, "help"), a.Help, maxHelp)
		p.shortFields(at(pointer, "fields"), a.Fields)
		p.shortFields(at(pointer, "app_fields"), a.AppFields)
		fields := slices.Concat(m.Connection.Fields, a.Fields)
		p.learnsNoField("/connection/learn", m.Connection.Learn, a.Fields)
		p.learnsNoField(at(pointer, "learn"), a.Learn, fields)
	}
	for _, o := range m.Operations {
		pointer := at("/operations", o.name)
		p.shortText(at(pointer, "title"), o.value.Title, maxTitle)
		p.shortText(at(pointer, "summary"), o.value.Summary, maxHelp)
		p.shortInputs(at(pointer, "input"), o.value.Input)
	}
	for _, t := range m.Triggers {
		pointer := at("/triggers", t.name)
		p.shortText(at(pointer, "title"), t.value.Title, maxTitle)
		p.shortText(at(pointer, "summary"), t.value.Summary, maxHelp)
		p.shortInputs(at(pointer, "input"), t.value.Input)
	}
	for _, h := range m.Hooks {
		p.shortText(at("/hooks", h.name, "setup"), h.value.Setup, maxHelp)
	}
}

// learnsNoField reports a learned variable that would replace what a person has entered:
// hosts can be built from it, which that person has confirmed.
func (p *parser) learnsNoField(pointer string, learn map[string]string, fields manifestFields) {
	for _, f := range fields {
		if _, ok := learn[f.name]; ok {
			p.failf(at(pointer, f.name), "is the name of a field, which people enter: give the variable another name")
		}
	}
}
