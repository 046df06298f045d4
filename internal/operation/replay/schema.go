package replay

import (
	"maps"
	"reflect"
	"sync"

	"github.com/stepmill/stepmill/internal/typeschema"
)

// SchemaID is the id of the JSON Schema of tests.
const SchemaID = "urn:stepmill:schema:integration-tests:v1"

// Schema returns the JSON Schema of files with tests, for editors. Callers must not modify
// it.
var Schema = sync.OnceValues(func() ([]byte, error) {
	types := testTypes()
	maps.Copy(types, hookTestTypes())
	maps.Copy(types, exchangeTypes())
	return types.Document(SchemaID, reflect.TypeFor[Tests]())
})

type node = typeschema.Node

func object(description string) node { return node{"type": "object", "description": description} }

// testTypes describes the types of what belongs to a test.
func testTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[Tests](): {
			Title: "Tests of a Stepmill integration", Description: "What its operations and triggers send, and what they return.",
			Members: map[string]any{
				"connection": "The variables of the connection, for all tests.",
				"operations": "The tests of each operation, by its name.",
				"hooks":      "The tests of each hook, by its name.",
				"triggers":   "The tests of each trigger, by its name.",
			},
		},
		reflect.TypeFor[Test](): {
			Name: "test", Description: "A test of an operation.", Required: []string{"name"},
			Members: map[string]any{
				"name":        node{"minLength": 1, "description": "Names the test. It is unique among those of the operation."},
				"input":       object("What the step gives. {$file: name} is one of files."),
				"files":       "The files in the input, by name.",
				"interrupted": "The process has died while it sent the first request.",
				"exchanges":   "The requests that the operation must send, with the answers that they get.",
				"output":      "What the step returns. A file is {$file: name, text: content}.",
				"error":       "How the step fails.",
			},
			Keywords: node{"oneOf": []node{{"required": []string{"output"}}, {"required": []string{"error"}}}},
		},
		reflect.TypeFor[TriggerTest](): {
			Name: "trigger", Description: "A test of a trigger: one poll, or one call of its hook.", Required: []string{"name"},
			Members: map[string]any{
				"name":          node{"minLength": 1, "description": "Names the test. It is unique among those of the trigger."},
				"input":         object("The settings of the trigger."),
				"cursor":        "Where the last poll has ended. Without it, this is the first poll.",
				"exchanges":     "The requests that the poll must send, with the answers that they get.",
				"call":          "A call of the hook, in place of a poll.",
				"found":         "What the poll finds, or the call says.",
				"next":          "The cursor of the next poll, if it is another one.",
				"more":          "The next poll follows at once.",
				"account":       "The account that the events of the call are for, if the hook has the scope app.",
				"position_lost": "The service no longer knows the cursor.",
				"error":         "How the poll fails.",
			},
			Keywords: node{"not": node{"required": []string{"found", "error"}}},
		},
		reflect.TypeFor[FoundItem](): {
			Name: "found", Required: []string{"key", "payload"},
			Members: map[string]any{
				"key":     "What identifies the item.",
				"payload": object("The payload of the run that starts for it."),
			},
		},
		reflect.TypeFor[Content](): {
			Name: "content", Short: node{"type": "string", "description": "The text of the file."},
			Members: map[string]any{"size": node{"minimum": 0, "description": "The size of a large file, whose bytes are zero."}},
		},
		reflect.TypeFor[Failure](): {
			Name: "failure", Required: []string{"code"},
			Members: map[string]any{
				"code":         "The kind of the error, such as not_found.",
				"service_code": "The service's own code.",
				"message":      "The whole message. It can be left out.",
			},
		},
	}
}

func hookTestTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[HookTest](): {
			Name: "hook", Description: "A test of a hook: a request about it, or a call of the service that starts no run.", Required: []string{"name"},
			Members: map[string]any{
				"name":         node{"minLength": 1, "description": "Names the test. It is unique among those of the hook."},
				"does":         node{"enum": []string{registers, renews, unregisters}, "description": "What is tested. hook.url is " + hookURL + ", hook.id " + hookID + " and hook.secret " + hookSecret + "."},
				"input":        object("The settings of the trigger, with their defaults."),
				"interrupted":  "The process has died while it sent the first request.",
				"exchanges":    "The requests that must be sent, with the answers that they get.",
				"subscription": "What register returns, and what the other requests and calls read.",
				"expires_at":   "When the registration ends.",
				"error":        "How the request fails.",
				"call":         "A call of the service.",
				"reply":        "The response to the call.",
				"verified":     "Whether the call is genuine. A challenge is not verified.",
				"secret":       "The secret of the connection with which the call is signed.",
			},
			Keywords: node{"oneOf": []node{{"required": []string{"does"}}, {"required": []string{"call"}}}},
		},
		reflect.TypeFor[Call](): {
			Name: "call", Description: "A call of the service at the URL of a hook.",
			Members: map[string]any{
				"method":  node{"default": "POST", "description": "The method."},
				"headers": "The headers.",
				"query":   "The parameters of the query.",
				"body":    "What the body says: JSON, or the fields of a form.",
				"text":    "The body as it is signed. It can stand for body if it is JSON.",
			},
		},
	}
}

func exchangeTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[Exchange](): {
			Name: "exchange", Members: map[string]any{"request": "The request.", "answer": "The answer."}, Required: []string{"request"},
		},
		reflect.TypeFor[Request](): {
			Name: "request", Required: []string{"url"}, Description: "The query and the body must be equal; of the headers, those that are listed.",
			Members: map[string]any{
				"method":    node{"default": "GET", "description": "The method."},
				"url":       "The URL without its query. {auth} stands for a credential in it.",
				"query":     "The parameters of the query. A list has the values of one that is repeated.",
				"headers":   "Headers of the request, which can have others.",
				"json":      "The body as JSON.",
				"form":      "The body as a form.",
				"multipart": "The body as a form with files: text, or {filename, type, text}. A part that is repeated is a list.",
				"text":      "The body as text.",
				"message":   "The body as an e-mail message.",
				"size":      "The length of the body, whose bytes do not count.",
			},
		},
		reflect.TypeFor[Message](): {
			Name: "message", Description: "An e-mail message.",
			Members: map[string]any{
				"headers":     "The headers, decoded, but for the date and those about the content.",
				"text":        "The content as text.",
				"html":        "The content as HTML.",
				"attachments": "The attachments.",
			},
		},
		reflect.TypeFor[Attachment](): {
			Name:    "attachment",
			Members: map[string]any{"filename": "The name of the file.", "type": "Its media type.", "text": "Its content."},
		},
		reflect.TypeFor[Answer](): {
			Name: "answer",
			Members: map[string]any{
				"status":  node{"default": 200, "description": "The status."},
				"headers": "The headers. The Content-Type follows from the body.",
				"json":    "The body as JSON.",
				"text":    "The body as text.",
			},
		},
	}
}
