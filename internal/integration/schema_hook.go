package integration

import (
	"reflect"

	"github.com/stepmill/stepmill/internal/signature"
	"github.com/stepmill/stepmill/internal/typeschema"
)

func hookTypes() typeschema.Types {
	return typeschema.Types{
		reflect.TypeFor[named[manifestHook]](): {
			Values: reflect.TypeFor[manifestHook](), Keywords: node{"propertyNames": names(operationName)},
		},
		reflect.TypeFor[manifestHook](): {
			Name: "hook", Title: "Hook", Required: []string{"scope", "verify"},
			Members: map[string]any{
				"scope":      oneOf(hookScopes(), "Whether each trigger has a URL, all triggers with the same connection share one, or all connections of the same OAuth app."),
				"setup":      "How people enter ${{ hook.url }} at the service, where no request does it.",
				"register":   "The request that tells the service the URL. It reads hook.url, hook.id, hook.secret and, per trigger, input.",
				"renew":      "The request that extends a registration. Without it, a registration that expires is replaced by a new one.",
				"unregister": "The request that removes a registration.",
				"expires":    expression("When a registration ends, a time. It reads subscription, what register has returned."),
				"verify":     "How a call proves that it comes from the service.",
				"challenge":  "A call with which the service checks the URL. It starts nothing.",
				"items":      expression("The events in a call, a list. It reads headers, query and body. Default: the body is the only one."),
				"account":    expression("The account that an event is for, for the scope app: an event starts runs with the connections that have learned this account. It reads item and headers."),
				"key":        expression("Identifies an event, such as item.id. What has the same key starts one run only."),
				"reply":      "The body of the response to a call, text or JSON. Default: none.",
			},
			Keywords: node{"oneOf": []node{
				{"required": []string{"register"}, "properties": node{"setup": false}},
				{"required": []string{"setup"}, "properties": node{"register": false, "renew": false, "unregister": false, "expires": false}},
			}},
		},
		reflect.TypeFor[manifestCalls](): {Schema: node{"anyOf": []node{
			{"$ref": "#/$defs/call", "properties": node{"id": false, "if": false, "page": false, "batch": false, "chunk": false}},
			{
				"type": "object", "required": []string{"do"}, "additionalProperties": false,
				"properties": node{
					"do":     node{"type": "array", "minItems": 1, "maxItems": maxCalls, "items": node{"$ref": "#/$defs/call", "required": []string{"id"}}},
					"output": node{"description": "What the registration is. Default: the result of the last call."},
				},
			},
		}}},
		reflect.TypeFor[manifestVerify](): {
			Name: "verify", Title: "Verification", Required: []string{"scheme", "secret"},
			Members: map[string]any{
				"scheme":          oneOf(verifySchemes(), "How calls are signed. equals compares what a call has with the secret."),
				"secret":          requiredText("The secret, such as ${{ hook.secret }} or ${{ subscription.secret }}. It also reads secret, the secrets of the connection."),
				"secret_encoding": withDefault("text", oneOf(secretEncodings(), "How the key of hmac is written.")),
				"given":           expression("What a call proves itself with, for equals."),
				"header":          "The header with the signature of hmac, or with the token of bearer.",
				"algorithm":       withDefault("sha256", oneOf(signature.Algorithms(), "The hash algorithm of hmac.")),
				"encoding":        withDefault("hex", oneOf(signature.Encodings(), "How the signature of hmac is encoded.")),
				"prefix":          "The text before the signature.",
				"timestamp":       "The header with the time of the call.",
				"signed":          "The text that is signed: {body} is the body, {url} and {method} those of the call, {name} the header of that name.",
				"tolerance":       duration("How old a call may be."),
			},
		},
		reflect.TypeFor[manifestChallenge](): {
			Name: "challenge", Required: []string{"when", "reply"},
			Members: map[string]any{
				"when":  expression("Whether a call is one. It reads method, headers, query, body and hook."),
				"reply": "The response, text or JSON.",
			},
		},
	}
}
