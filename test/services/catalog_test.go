package services_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
	"github.com/stepmill/stepmill/test/flow"
	"github.com/stepmill/stepmill/test/harness"
	"github.com/stepmill/stepmill/test/lane"
)

// testTime is the time in tests.yaml.
var testTime = time.Date(2026, 11, 18, 9, 0, 0, 0, time.UTC)

// operationCase is a test of an operation that a run repeats.
type operationCase struct {
	action, connection string
	test               replay.Test
}

// Every operation runs in the real server, with the input of one of its tests: it sends
// the requests of the test to servers that answer as it says, and has its output. The gate
// runs one operation of each integration.
func TestCatalogOperations(t *testing.T) {
	lane.NotShort(t)
	t.Parallel()
	services := &replayed{cases: map[string]*replayedCase{}}
	s := newInternet(t, services.ServeHTTP).startAt(t, testTime)
	connectCatalog(t, s.Client, services)
	groups := operationGroups(t)
	var count int
	for connection, group := range groups {
		count += len(group)
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			for _, one := range group {
				if err := one.run(t, s.Client, services); err != nil {
					t.Errorf("%s, %s: %v", one.action, one.test.Name, err)
				}
			}
		})
	}
	t.Logf("%d operations with %d connections", count, len(groups))
}

// operationGroups returns the cases of those that share hosts or a connection, by
// connection. They run one after the other.
func operationGroups(t *testing.T) map[string][]operationCase {
	t.Helper()
	catalog, err := integration.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	out, owner := map[string][]operationCase{}, map[string]string{}
	for _, i := range catalog.List() {
		if len(i.OperationOutlines()) == 0 {
			continue
		}
		tests, connection := testsOf(t, i.ID), i.ConnectedAs()
		for _, name := range lane.Pick(operationNames(i)[:1], operationNames(i)) {
			at := slices.IndexFunc(tests.Operations[name], func(test replay.Test) bool { return test.Error == nil && !test.Interrupted })
			if at < 0 {
				t.Errorf("%s.%s has no test of a success", i.ID, name)
				continue
			}
			one := operationCase{i.FullName(name), connection, tests.Operations[name][at]}
			for _, host := range hostsOf(one.test.Exchanges) {
				if other := owner[host]; other != "" && other != connection {
					t.Errorf("the tests of %s and of %s use the host %s: they would get the answers of each other", other, connection, host)
				}
				owner[host] = connection
			}
			out[connection] = append(out[connection], one)
		}
	}
	return out
}

// operationNames returns the operations that steps can use. The others list values for
// forms, or what is new for polls.
func operationNames(i *integration.Integration) []string {
	var out []string
	for _, one := range i.OperationOutlines() {
		if !one.Hidden {
			out = append(out, one.Name)
		}
	}
	return out
}

// run runs a workflow with the operation as its only step.
func (c operationCase) run(t *testing.T, client *harness.Client, services *replayed) error {
	files := map[string]string{}
	with, err := c.with(t, client, files)
	if err != nil {
		return err
	}
	step := map[string]any{"id": "step", "uses": c.action, "connection": c.connection, "with": with}
	workflow := flow.Define(t, client, step)
	exchange := &replayedCase{exchanges: c.test.Exchanges}
	services.begin(exchange)
	var run struct {
		ID, Status string
		Steps      []struct {
			Output map[string]any
			Error  json.RawMessage
		}
	}
	client.Expect(t, http.StatusCreated, "POST", "/v1/workflows/"+workflow+"/runs", map[string]any{"files": files}).Decode(t, &run)
	harness.Eventually(t, c.action+" ends", func() bool {
		client.Expect(t, http.StatusOK, "GET", "/v1/runs/"+run.ID, nil).Decode(t, &run)
		return run.Status == "succeeded" || run.Status == "failed"
	})
	if err := services.compare(exchange, run.ID); err != nil {
		return fmt.Errorf("%w\n%s: %s", err, run.Status, run.Steps[0].Error)
	}
	if run.Status != "succeeded" {
		return fmt.Errorf("the run has %s: %s", run.Status, run.Steps[0].Error)
	}
	got, err := json.Marshal(describeFiles(t, client, run.Steps[0].Output))
	if err != nil {
		return err
	}
	return c.test.CompareOutput(json.RawMessage(exchange.textAsInTests(string(got), string(c.test.Output), run.ID)))
}

// with returns the input as that of a step, and adds the files that it needs to those of
// the run.
func (c operationCase) with(t *testing.T, client *harness.Client, files map[string]string) (any, error) {
	if c.test.Input == nil {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(c.test.Input))
	decoder.UseNumber()
	var input any
	if err := decoder.Decode(&input); err != nil {
		return nil, err
	}
	return mapValues(input, func(value any) any {
		switch value := value.(type) {
		case string:
			return strings.ReplaceAll(value, "${{", "$${{")
		case map[string]any:
			name, ok := value["$file"].(string)
			if !ok {
				return nil
			}
			key := "file" + strconv.Itoa(len(files))
			files[key] = upload(t, client, name, c.test.Files[name].Bytes())
			return "${{ trigger.files." + key + " }}"
		}
		return nil
	}), nil
}

// mapValues replaces the values for which replace does not return nil, from the outside.
func mapValues(value any, replace func(any) any) any {
	if replaced := replace(value); replaced != nil {
		return replaced
	}
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = mapValues(member, replace)
		}
	case []any:
		for i, item := range v {
			v[i] = mapValues(item, replace)
		}
	}
	return value
}

func upload(t *testing.T, client *harness.Client, name string, content []byte) string {
	t.Helper()
	response, err := client.Open(t.Context(), http.MethodPost, "/v1/files?name="+url.QueryEscape(name), bytes.NewReader(content), "Content-Type", mime.TypeByExtension(path.Ext(name)))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || response.StatusCode != http.StatusCreated {
		t.Errorf("upload of %s: %d %v", name, response.StatusCode, err)
	}
	return made.ID
}

// describeFiles replaces the files in an output by their names and texts, as tests have them.
func describeFiles(t *testing.T, client *harness.Client, output map[string]any) any {
	return mapValues(output, func(value any) any {
		object, _ := value.(map[string]any)
		id, isFile := object["$file"].(string)
		if !isFile {
			return nil
		}
		response, err := client.Open(t.Context(), http.MethodGet, "/v1/files/"+id, nil)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return map[string]any{"$file": object["name"], "text": string(text)}
	})
}

// connectCatalog makes a connection for each integration that has one of its own, with the
// variables that its tests have.
func connectCatalog(t *testing.T, client *harness.Client, services *replayed) {
	t.Helper()
	secret := map[string]any{"token": "a-token"}
	fields := map[string]map[string]any{
		"airtable/bearer": secret, "github/bearer": secret, "notion/bearer": secret, "openai/bearer": secret,
		"stripe/bearer": secret, "clickup/api_key": secret, "discord/api_key": secret,
		"hubspot/bearer":                {"token": "a-token", "client_secret": "a-secret"},
		"slack/bearer":                  {"token": "a-token", "signing_secret": "a-secret"},
		"gitlab/bearer":                 {"token": "a-token", "host": "gitlab.com"},
		"intercom/bearer":               {"token": "a-token", "client_secret": "a-secret", "region": "intercom"},
		"linear/api_key":                {"key": "a-key"},
		"pinecone/api_key":              {"key": "a-key", "index": "articles"},
		"qdrant/api_key":                {"key": "a-key", "host": "acme.eu-central.aws.cloud.qdrant.io:6333"},
		"salesforce/client_credentials": {"client_id": "a-client", "client_secret": "a-secret", "login_host": "login.salesforce.com"},
		"sendgrid/bearer":               {"token": "a-token", "host": "api.sendgrid.com"},
		"shopify/api_key":               {"token": "a-token", "shop": "my-store"},
		"supabase/api_key":              {"key": "a-key", "project": "acme"},
		"telegram/api_key":              {"token": token},
		"todoist/bearer":                {"token": "a-token", "client_secret": "a-secret"},
		"trello/api_key":                {"key": "0a1b2c", "token": "atoken"},
		"twilio/basic":                  {"auth_token": "a-token", "account_sid": "ACa1b2c3d4e5f60718293a4b5c6d7e8f90"},
		"whatsapp/bearer":               {"token": "a-token", "business": "102290129340398"},
		"woocommerce/basic":             {"key": "ck_madeup", "secret": "cs_madeup", "store": "shop.example.com"},
		"atlassian/basic":               {"site": "acme", "email": "ada@example.com", "token": "a-token"},
		"microsoft/client_credentials":  {"tenant": "acme.test", "client_id": "a-client", "client_secret": "a-secret", "services": "excel,onedrive,outlook,teams"},
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		id, auth, _ := strings.Cut(name, "/")
		var made struct{ ID string }
		client.Expect(t, http.StatusCreated, "POST", "/v1/connections", map[string]any{"name": id, "integration": id, "auth": auth, "fields": fields[name]}).Decode(t, &made)
		if id == "pinecone" || id == "salesforce" { // they learn the host of an index, and of an organization
			client.Expect(t, http.StatusOK, "POST", "/v1/connections/"+made.ID+"/test", nil)
		}
	}
	connectGoogleAs(t, client, "google", "gmail,google_sheets,google_drive,google_calendar,google_docs")
}
