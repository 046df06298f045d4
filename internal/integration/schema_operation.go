package integration

import (
	"reflect"

	"github.com/stepmill/stepmill/internal/typeschema"
)

func operationTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[named[manifestOperation]](): {
			Values: reflect.TypeFor[manifestOperation](), Keywords: node{"propertyNames": names(operationName)},
		},
		reflect.TypeFor[manifestOperation](): {
			Name: "operation", Title: "Operation", Required: []string{"title"},
			Members: map[string]any{
				"title":      requiredText("What people see, such as “Send a message”."),
				"summary":    "A sentence about it, if the title does not say everything.",
				"hidden":     "People cannot use it: it only lists the values of inputs, or is polled.",
				"timeout":    duration("How long a request can take."),
				"input":      "What a step gives, in the order of the form.",
				"request":    "The only call.",
				"do":         node{"minItems": 1, "maxItems": maxCalls, "items": node{"$ref": "#/$defs/call", "required": []string{"id"}}, "description": "Several calls, which are made in order."},
				"output":     "What the step returns. Default: the result of the last call.",
				"rate":       "How often the operation can be used, beside the rate of the integration.",
				"option":     "What an item of the list means for a dropdown.",
				"field":      "What an item of the list means for an object that people fill in.",
				"deprecated": "What replaces the operation.",
			},
			Keywords: node{"oneOf": []node{
				{"required": []string{"request"}, "properties": node{"request": node{"properties": node{"id": false, "if": false}}}},
				{"required": []string{"do"}},
			}},
		},
		reflect.TypeFor[manifestOption](): {
			Name: "option", Required: []string{"value", "label"},
			Members: map[string]any{"value": expression("The value of the item."), "label": expression("What people see.")},
		},
		reflect.TypeFor[manifestMember](): {
			Name: "member", Required: []string{"name", "type"},
			Members: map[string]any{
				"name":     expression("The name of the member."),
				"title":    expression("What people see."),
				"type":     expression("The type of its value, such as 'string'."),
				"required": expression("Whether it must be given."),
				"options":  expression("The values to choose from."),
			},
		},
		reflect.TypeFor[manifestRate](): {
			Name: "rate", Description: "Either requests and every, or remaining and reset.",
			Members: map[string]any{
				"requests":  node{"minimum": 1, "description": "How many requests are allowed."},
				"every":     duration("In which time."),
				"per":       expression("What the rate applies to beside the connection, such as input.channel."),
				"remaining": expression("How many requests are left, as the answer says."),
				"reset":     expression("When there are more again, as the answer says: a time or a number of seconds."),
			},
			Keywords: node{"oneOf": []node{
				{"required": []string{"requests", "every"}, "properties": node{"remaining": false, "reset": false}},
				{"required": []string{"remaining", "reset"}, "properties": node{"requests": false}},
			}},
		},
		reflect.TypeFor[Deprecation](): {
			Name: "deprecation",
			Members: map[string]any{
				"since": "When it was replaced.",
				"use":   "The operation to use instead.",
				"ends":  "When it will be removed. Empty if that is not planned.",
			},
		},
	}
}

func inputTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[named[manifestInput]](): {
			Values:   reflect.TypeFor[manifestInput](),
			Keywords: node{"propertyNames": node{"pattern": identifier.String(), "not": node{"enum": []string{LimitInput, AllInput}}}},
		},
		reflect.TypeFor[manifestProperties](): {Values: reflect.TypeFor[manifestInput](), Keywords: node{"propertyNames": names(propertyName)}},
		reflect.TypeFor[manifestInput](): {
			Name: "input", Title: "Input", Required: []string{"type"},
			Members: map[string]any{
				"type":       oneOf(InputTypes(), "What values are."),
				"title":      "What people see. Default: the name.",
				"help":       "What to enter, and where to find it.",
				"required":   "A step must give it.",
				"advanced":   "Few people need it.",
				"default":    "The value if the step gives none.",
				"example":    "A value as an example.",
				"enum":       "The values to choose from.",
				"pattern":    node{"format": "regex", "description": "A regular expression that text must match."},
				"format":     oneOf(inputFormats(), "How a form shows text."),
				"min":        "The smallest number.",
				"max":        "The largest number.",
				"items":      "What a list has.",
				"properties": "The members of an object.",
				"options":    "The operation that lists the values. It has an option.",
				"fields":     "The operation that lists the members of the object. It has a field.",
				"search":     "Has the text that people type into a dropdown, in an operation that lists values.",
			},
			Keywords: node{"allOf": []node{
				{"if": node{"properties": node{"type": node{"const": "list"}}}, "then": node{"required": []string{"items"}}, "else": node{"properties": node{"items": false}}},
				{"if": node{"properties": node{"type": node{"not": node{"const": "object"}}}}, "then": node{"properties": node{"properties": false, "fields": false}}},
			}},
		},
	}
}

func callTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[manifestCall](): callType(),
		reflect.TypeFor[manifestPage](): {
			Name: "page", Description: "How to get the next page. Without next and next_url, it has the next number and offset.",
			Members: map[string]any{
				"next":     expression("The cursor of the next page, which it reads as page.cursor."),
				"next_url": expression("The URL of the next page."),
				"more":     expression("Whether there is a next page."),
				"size":     "How many items a full page has. Requests read it as page.size.",
			},
			Keywords: node{"not": node{"required": []string{"next", "next_url"}}},
		},
		reflect.TypeFor[manifestBatch](): {
			Name: "batch", Required: []string{"of", "size"},
			Members: map[string]any{"of": expression("The list to send in parts."), "size": node{"minimum": 1, "description": "The most items of a request."}},
		},
		reflect.TypeFor[manifestChunk](): {
			Name: "chunk", Required: []string{"file", "size"},
			Members: map[string]any{
				"file": expression("The file to send in parts."),
				"size": node{"minimum": 1, "description": "The most bytes of a request."},
				"next": expression("How many bytes of the file the service has, given its answer. Default: all that were sent."),
				"ask":  "Asks the service how many bytes it has, when that is not known. next reads the answer.",
			},
			Keywords: node{"dependentRequired": node{"ask": []string{"next"}}},
		},
		reflect.TypeFor[manifestIdempotency](): {
			Name: "idempotency", Short: oneOf(idempotencyWords(), "safe: the request can be repeated at any time. none: it must not be repeated."),
			Members: map[string]any{
				"remembered": duration("How long the service recognizes a repeated request by its key, step.key."),
				"find":       node{"required": []string{"output"}, "description": "Looks for what an earlier request has made. Its output is that, or nil."},
			},
			Keywords: node{"minProperties": 1, "maxProperties": 1},
		},
		reflect.TypeFor[manifestErrorRule](): {
			Name: "error", Description: "Recognizes an error in an answer.", Required: []string{"when"},
			Members: map[string]any{
				"when":        expression("The condition, such as status == 404."),
				"kind":        oneOf(errorKinds(), "What the error means. Without it, the status decides. none is no error; restart begins the operation anew."),
				"code":        "The service's own code.",
				"message":     "What people read.",
				"retry_after": "When to try again: a number of seconds or a time.",
			},
		},
	}
}

func callType() typeschema.Type {
	object := func(description string) node {
		return node{"type": []string{"object", "string"}, "pattern": `^\$\{\{`, "description": description + " An object, or one expression in ${{ }} that returns an object."}
	}
	bodies := []string{"json", "form", "multipart", "raw", "graphql"}
	var pairs []node
	for i, one := range bodies {
		for _, other := range bodies[:i] {
			pairs = append(pairs, node{"required": []string{other, one}})
		}
	}
	return typeschema.Type{
		Name: "call", Title: "Call", Description: "A request to the service.",
		Members: map[string]any{
			"id":          node{"pattern": identifier.String(), "description": "Names the result for the calls after it: results.<id>."},
			"if":          expression("Whether the call is made."),
			"method":      oneOf(methods(), "Default: GET, or POST with a body."),
			"path":        node{"pattern": "^/", "description": "The path after base_url. Text that an expression inserts stays one segment, and a list becomes several."},
			"url":         "The URL, in place of a path.",
			"auth":        oneOf(callAuths(), "none sends no credential. The url must then be what an earlier call has returned."),
			"query":       object("The parameters of the query."),
			"headers":     object("Further headers."),
			"json":        "The body as JSON.",
			"form":        object("The body as a form."),
			"multipart":   object("The body as a form with files."),
			"raw":         "The body as text, a file, or an e-mail message: an object with $mime.",
			"graphql":     "A GraphQL query, sent with its variables.",
			"variables":   object("The variables of the GraphQL query."),
			"response":    withDefault(ResponseJSON, oneOf(Responses(), "How the body of the answer is read.")),
			"blobs":       node{"items": requiredText(""), "description": "Where the JSON of the answer has files as text in base64, such as data or images[].content. They become files."},
			"file_name":   "The name of the file with response: file, or of the files of blobs.",
			"items":       expression("The list in the answer."),
			"page":        "How to get the next page of the list.",
			"batch":       "Sends a list in parts, with a request for each.",
			"chunk":       "Sends a file in parts, with a request for each. They read chunk.data, chunk.offset, chunk.end and chunk.total.",
			"idempotency": "What happens if the request is sent twice. Default: the method decides.",
			"on_unknown":  withDefault(Repeat, oneOf(unknownOutcomes(), "What to do if it is not known whether the service has received a request that must not be repeated.")),
			"errors":      "How to recognize errors, tried before the rules of the integration.",
			"output":      "The result. Default: the body or, of a list, the items.",
		},
		Keywords: node{
			"oneOf":             []node{{"required": []string{"path"}}, {"required": []string{"url"}}},
			"not":               node{"anyOf": pairs},
			"dependentRequired": node{"variables": []string{"graphql"}, "page": []string{"items"}},
		},
	}
}

func expression(description string) node {
	return node{"description": description + " A bare expression, without ${{ }}."}
}

func duration(description string) node {
	return node{"description": description, "examples": []string{"500ms", "1s", "1m", "24h"}}
}
