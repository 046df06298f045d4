package event_test

import (
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stepmill/stepmill/internal/event"
	"github.com/stepmill/stepmill/test/generated"
)

var update = flag.Bool("update", false, "rewrite the lists of event types")

// TestGenerated checks that the OpenAPI document, the documentation and the dashboard have
// the declared event types.
func TestGenerated(t *testing.T) {
	var names []string
	var oneOf, stream, notifications, schemas, table, dashboard strings.Builder
	for _, d := range event.Declarations() {
		names = append(names, string(d.Type))
		schema := pascal(d.Type) + "Notification"
		fmt.Fprintf(&oneOf, "    - {$ref: '#/components/schemas/%s'}\n", schema)
		fmt.Fprintf(&stream, "%s:\n  data: {$ref: '#/components/schemas/%s'}\n", d.Type, schema)
		notifications.WriteString(notification(t, d))
		fmt.Fprintf(&schemas, schemaTemplate, schema, d.Type, d.Schema)
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", d.Type, description(t, d), strings.Join(members(t, d), ", "))
		fmt.Fprintf(&dashboard, "{ name: %q, when: %q },\n", d.Type, d.When)
	}
	list := strings.Join(names, ", ")
	one := "(" + strings.ReplaceAll(strings.Join(names, "|"), ".", "[.]") + ")"
	generated.Sections(t, "../../openapi/openapi.yaml", map[string]string{
		"events of the stream": stream.String(),
		"notifications":        notifications.String(),
		"schemas of events": "EventName:\n  type: string\n  enum: [" + list + "]\n" +
			"EventType:\n  type: string\n  x-extensible-enum: [" + list + "]\n" +
			"EventTypes:\n  type: string\n  pattern: '^" + one + "(," + one + ")*$'\n" +
			"AnyNotification:\n  oneOf:\n" + oneOf.String() + schemas.String(),
	}, *update)
	generated.Sections(t, "../../docs/webhooks.md", map[string]string{
		"event types": "| event | when | `data` |\n|---|---|---|\n" + table.String(),
	}, *update)
	generated.Sections(t, "../../web/src/pages/webhooks/events.ts", map[string]string{"event types": dashboard.String()}, *update)
}

const schemaTemplate = `%s:
  type: object
  additionalProperties: false
  required: [id, event, timestamp, data]
  properties:
    id: {$ref: '#/components/schemas/EventId'}
    event: {type: string, const: %s}
    timestamp:
      $ref: '#/components/schemas/Timestamp'
      description: When the event happened.
    data: {$ref: '#/components/schemas/%s'}
`

// pascal returns the name of a type as one word: RunStarted.
func pascal(kind event.Type) string {
	subject, verb, _ := strings.Cut(string(kind), ".")
	return capital(subject) + capital(verb)
}

func capital(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

func description(t *testing.T, d event.Declaration) string {
	t.Helper()
	words := []string{d.When}
	if d.Note != "" {
		words = append(words, d.Note)
	}
	if sample(t, d).WorkflowID == "" {
		words = append(words, "A webhook with a `workflow_id` does not receive it.")
	}
	return strings.Join(words, " ")
}

// sample returns a sample with ids that do not change.
func sample(t *testing.T, d event.Declaration) event.Event {
	t.Helper()
	e, err := event.Sample(d.Type, "ws_1", time.Date(2026, 11, 15, 9, 45, 10, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	e.Body = regexp.MustCompile(`_[0-9a-z]{26}"`).ReplaceAll(e.Body, []byte(`_01m7f9hb3mevr88y42wdngtn4v"`))
	return e
}

// members returns the names of the members of the data.
func members(t *testing.T, d event.Declaration) []string {
	t.Helper()
	var body struct{ Data yaml.Node }
	if err := yaml.Unmarshal(sample(t, d).Body, &body); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := 0; i < len(body.Data.Content); i += 2 {
		names = append(names, "`"+body.Data.Content[i].Value+"`")
	}
	return names
}

// notification returns the operation that a receiver of the event implements.
func notification(t *testing.T, d event.Declaration) string {
	t.Helper()
	e := sample(t, d)
	parameters := []string{"ServiceSignature", "ServiceEvent", "ServiceDelivery"}
	if e.RunID != "" {
		parameters = append(parameters, "ServiceDepth")
	}
	parameters = append(parameters, "StandardWebhookId", "StandardWebhookTimestamp", "StandardWebhookSignature", "UserAgent")
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n  post:\n    operationId: notify%s\n", d.Type, pascal(d.Type))
	fmt.Fprintf(&b, "    summary: %s\n", capital(strings.Replace(string(d.Type), ".", " ", 1)))
	fmt.Fprintf(&b, "    description: %q\n", description(t, d)+" See the tag for delivery and signatures.")
	b.WriteString("    tags: [Notifications]\n    security: []\n    parameters:\n")
	for _, name := range parameters {
		fmt.Fprintf(&b, "      - $ref: '#/components/parameters/%s'\n", name)
	}
	b.WriteString("    requestBody:\n      required: true\n      content:\n        application/json:\n")
	fmt.Fprintf(&b, "          schema: {$ref: '#/components/schemas/%sNotification'}\n          example: %s\n", pascal(d.Type), e.Body)
	b.WriteString("    responses:\n      2XX: {$ref: '#/components/responses/NotificationAccepted'}\n" +
		"      '410': {$ref: '#/components/responses/NotificationGone'}\n      default: {$ref: '#/components/responses/NotificationFailed'}\n")
	return b.String()
}
