package reference

import (
	"slices"
	"strings"

	"github.com/stepmill/stepmill/internal/integration"
)

// connect writes how to connect.
func (p *page) connect() {
	p.heading(2, "Connect")
	if p.provider != nil {
		p.printf("%s uses connections of [%s](%s.md), with %s among their services. ", prose(p.Name), label(p.provider.Name), p.provider.ID, code(p.ID))
		p.printf("That page says how to authenticate. To make such a connection, choose %s in the [dashboard](../dashboard.md), or give %s as the [`integration`](../connections.md#making-a-connection).\n\n", label(p.Name), code(p.ID))
		p.scopes("In addition to those of every connection of "+label(p.provider.Name)+", it asks for", p.of.Scopes)
		return
	}
	p.printf("[Connections](../connections.md) says how to make one, in the dashboard or with a request. Ways to authenticate:\n\n")
	for n := range p.of.Connection.Auth {
		p.auth(&p.of.Connection.Auth[n])
	}
	p.services()
}

// auth writes about a way to authenticate.
func (p *page) auth(a *integration.Auth) {
	p.heading(3, a.Label)
	p.printf("`auth`: %s\n\n", code(a.ID))
	if a.Help != "" {
		p.printf("%s\n\n", prose(a.Help))
	}
	if a.NeedsConsent() {
		p.printf("A person signs in at the service. This needs an [OAuth app](../connections.md#oauth-apps) of your own, registered at the service with the [redirect URL](../connections.md#oauth-2) of your server.\n\n")
	}
	p.scopes("It asks for", a.Scopes)
	p.fields("field", p.of.Fields(a))
	if len(a.AppFields) > 0 {
		p.printf("Beside the client id and secret, the OAuth app has:\n\n")
		p.fields("field of the app", a.AppFields)
	}
}

// scopes writes which OAuth scopes a connection asks for.
func (p *page) scopes(lead string, scopes []string) {
	if len(scopes) > 0 {
		p.printf("%s the scopes %s.\n\n", lead, codes(scopes))
	}
}

// fields writes what people enter as a table.
func (p *page) fields(heading string, fields []integration.Field) {
	if len(fields) == 0 {
		return
	}
	p.printf("| %s | | |\n|---|---|---|\n", heading)
	for _, f := range fields {
		kind := []string{"required"}
		if f.Optional || f.Default != "" {
			kind = nil
		}
		if f.Secret {
			kind = append(kind, "secret")
		}
		p.printf("| %s | %s | %s |\n", code(f.Name), strings.Join(kind, ", "), noteText(f.Title, fieldNotes(f)))
	}
	p.printf("\n")
}

// fieldNotes returns sentences about the values of a field.
func fieldNotes(f integration.Field) []Note {
	var out []Note
	if f.Help != "" {
		out = append(out, Note{Text: f.Help})
	}
	switch {
	case f.Format == integration.FormatServices:
		return append(out, Note{Text: "One or more of the services below, separated by spaces."})
	case f.Help != "": // it says what to enter
	case f.Format == integration.FormatHost:
		out = append(out, Note{Text: "A host name."})
	case f.Format == integration.FormatHostLabel:
		out = append(out, Note{Text: "A part of a host name."})
	case f.Format == integration.FormatJSON:
		out = append(out, Note{Text: "A JSON object."})
	case f.Format == integration.FormatPEM:
		out = append(out, Note{Text: "In PEM format."})
	}
	if len(f.Enum) > 0 {
		note := Note{Text: "One of", End: "."}
		for _, choice := range f.Enum {
			note.Values = append(note.Values, choice.Value)
		}
		out = append(out, note)
	}
	if f.Pattern != "" {
		out = append(out, Note{Text: "Must match", Values: []string{f.Pattern}, End: "."})
	}
	if f.Default != "" {
		out = append(out, Note{Text: "Default:", Values: []string{f.Default}, End: "."})
	}
	if f.Example != "" {
		out = append(out, Note{Text: "Example:", Values: []string{f.Example}})
	}
	return out
}

// services writes which integrations use the connections, and what these ask for.
func (p *page) services() {
	field, ok := p.of.ServicesField()
	if !ok || len(field.Enum) == 0 {
		return
	}
	p.heading(3, "Services")
	p.printf("These services use the connections. A connection asks for the scopes of the services that it has in %s.", code(field.Name))
	if slices.ContainsFunc(p.of.Connection.Auth, func(a integration.Auth) bool { return a.Kind == integration.OAuth2 && !a.NeedsConsent() }) {
		p.printf(" Without a sign-in, it can do what was granted to the app.")
	}
	p.printf("\n\n")
	p.printf("| service | value | scopes |\n|---|---|---|\n")
	for _, choice := range field.Enum {
		if service, ok := p.catalog.Find(choice.Value); ok {
			p.printf("| [%s](%s.md) | %s | %s |\n", label(choice.Label), choice.Value, code(choice.Value), codes(service.Scopes))
		}
	}
	p.printf("\n")
}

// hosts writes which hosts receive the credential.
func (p *page) hosts() {
	p.heading(2, "Hosts")
	p.printf("Only these hosts receive the credential: %s.", codes(p.Hosts))
	if strings.Contains(strings.Join(p.Hosts, " "), "{") {
		p.printf(" A name in braces is a field of the connection, or what the connection learns from the service.")
	}
	p.printf("\n\n")
}
