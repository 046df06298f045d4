package integration

import (
	"slices"
	"strconv"
	"strings"
)

// The connections of one integration can be used by several, such as those of Google by
// Sheets and Gmail: their manifests name it with connection.of, and the scopes that they
// need. Whoever connects chooses among these services in the field with FormatServices.

// ServicesField returns the field in which people choose services.
func (i *Integration) ServicesField() (Field, bool) {
	for _, f := range i.Connection.Fields {
		if f.Format == FormatServices {
			return f, true
		}
	}
	return Field{}, false
}

// ScopesOf returns the OAuth scopes of a connection: those of its way to authenticate, and
// those of the services that were chosen in its fields. Client credentials have only the
// former: what an application may do is granted at the service, and scopes are those of
// people.
func (i *Integration) ScopesOf(a *Auth, fields map[string]string) []string {
	out := slices.Concat(a.Scopes, i.Scopes)
	field, ok := i.ServicesField()
	if !ok || a.Kind == OAuth2 && !a.NeedsConsent() {
		return out
	}
	chosen := splitServices(fields[field.Name])
	for _, service := range i.services {
		if !slices.Contains(chosen, service.ID) {
			continue
		}
		for _, scope := range service.Connection.Scopes {
			if !slices.Contains(out, scope) {
				out = append(out, scope)
			}
		}
	}
	return out
}

func splitServices(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ' ' || r == ',' })
}

// share makes an integration use the connections of another one, and what that says
// about every call.
func (p *parser) share(m *manifest, of, out *Integration) {
	c := &m.Connection
	if c.Auth != nil || c.Fields != nil || c.Hosts != nil || c.Test != nil || c.Learn != nil {
		p.failf("/connection", "with of, it has no other members than scopes: %s has them", of.Name)
	}
	out.Of, out.Connection, out.Errors, out.Rates = of.ID, of.Connection, of.Errors, slices.Clone(of.Rates)
	p.shared = of.variables
	for _, h := range of.Connection.Hosts {
		p.hosts = append(p.hosts, h.Name.Source())
	}
	if _, ok := of.ServicesField(); c.Scopes != nil && !ok {
		p.failf("/connection/scopes", "nobody could choose them: %s needs a field with the format %s", of.Name, FormatServices)
	}
	for i, scope := range c.Scopes {
		p.require(at("/connection/scopes", strconv.Itoa(i)), scope)
	}
	out.Scopes = c.Scopes
}

// linkServices tells the integrations whose connections others use about these.
func (c *Catalog) linkServices() {
	for _, one := range c.entries {
		if i, ok := c.search(one.Connection.Of); ok {
			c.entries[i].services = append(c.entries[i].services, one.head)
		}
	}
}

// offerServices lets people choose the services that use the connections of an
// integration. In the field of a service itself, that service is the default.
func (c *Catalog) offerServices(e *entry, out *Integration) {
	chosen := ""
	services := e.services
	if i, ok := c.search(out.Of); ok {
		services, chosen = c.entries[i].services, out.ID
	} else {
		out.services = services
	}
	if len(services) == 0 {
		return
	}
	var choices []Choice
	for _, service := range services {
		choices = append(choices, Choice{service.ID, service.Name})
	}
	out.Connection.offer(choices, chosen)
}

// offer sets the choices of the field with FormatServices.
func (c *Connection) offer(choices []Choice, chosen string) {
	c.Fields = slices.Clone(c.Fields) // shared by all services
	for i := range c.Fields {
		if f := &c.Fields[i]; f.Format == FormatServices {
			f.Enum, f.Default = choices, chosen
		}
	}
}
