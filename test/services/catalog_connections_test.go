package services_test

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/test/harness"
)

// connectCatalog makes a connection for each integration that has operations and connections
// of its own.
func connectCatalog(t *testing.T, client *harness.Client) {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range catalog.List() {
		if _, used := variablesOf(t, catalog, i.ID); used {
			connect(t, client, catalog, i)
		}
	}
}

// connect makes a connection with the name of its integration, and with what the manifest and
// the tests say about the fields.
func connect(t *testing.T, client *harness.Client, catalog *integration.Catalog, i *integration.Integration) {
	t.Helper()
	auth := unattended(i)
	if auth == nil {
		services, _ := i.ServicesField()
		connectGoogleAs(t, client, i.ID, fieldValue(t, i, services, ""))
		return
	}
	variables, _ := variablesOf(t, catalog, i.ID)
	fields := map[string]string{}
	for _, f := range i.Fields(auth) {
		fields[f.Name] = fieldValue(t, i, f, variables[f.Name])
	}
	var made struct{ ID string }
	client.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{"name": i.ID, "integration": i.ID, "auth": auth.ID, "fields": fields}).Decode(t, &made)
	if learnsHost(auth) {
		client.Expect(t, http.StatusOK, "POST", "/v1/connections/"+made.ID+"/test", nil)
	}
}

// variablesOf returns the variables that tests have of the connections of an integration, and
// whether operations use these connections.
func variablesOf(t *testing.T, catalog *integration.Catalog, id string) (out map[string]string, used bool) {
	t.Helper()
	out = map[string]string{}
	for _, i := range catalog.List() {
		if i.ConnectedAs() == id && len(i.OperationOutlines()) > 0 {
			maps.Copy(out, testsOf(t, i.ID).Connection)
			used = true
		}
	}
	return out, used
}

// unattended returns a way to authenticate that needs no person at the service and no key
// file, if possible one without tokens that have to be requested.
func unattended(i *integration.Integration) (found *integration.Auth) {
	for n := range i.Connection.Auth {
		a := &i.Connection.Auth[n]
		if a.NeedsConsent() || a.Kind == integration.ServiceAccount {
			continue
		}
		if a.TokenURL.IsZero() {
			return a
		}
		found = a
	}
	return found
}

// learnsHost reports whether a connection learns what its tests then use.
func learnsHost(a *integration.Auth) bool {
	for name := range a.Learn {
		if name != integration.Label && name != integration.Account {
			return true
		}
	}
	return false
}

// fieldValue returns a value for a field: the one that the tests have, or one that it can have.
func fieldValue(t *testing.T, i *integration.Integration, f integration.Field, given string) string {
	t.Helper()
	if i.ID == "telegram" {
		return token // it is part of every path
	}
	if f.Format == integration.FormatServices {
		var ids []string
		for _, choice := range f.Enum {
			ids = append(ids, choice.Value)
		}
		return strings.Join(ids, ",")
	}
	values := []string{cmp.Or(given, f.Default)}
	for _, choice := range f.Enum {
		values = append(values, choice.Value)
	}
	values = append(values, f.Example, "a-"+f.Name, "a1b2c3")
	at := slices.IndexFunc(values, func(value string) bool { return value != "" && f.Check(value) == nil })
	if at < 0 {
		t.Fatalf("%s: the field %s needs an example", i.ID, f.Name)
	}
	return values[at]
}
