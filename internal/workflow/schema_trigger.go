package workflow

import (
	"maps"

	"github.com/stepmill/stepmill/internal/clock"
)

// triggerSchema lists all members of a trigger. Which ones are allowed depends on
// its type.
func triggerSchema(inputs map[string]node) node {
	trigger := objectSchema("Trigger", "Something that starts runs. Triggers fire only while the workflow is active.", node{
		"id": refWith("id", "Id", "The name of the trigger, unique among the triggers."),
		"type": node{
			"title": "Type", "description": "What starts runs.", "type": "string", "enum": TriggerTypes(),
			"enumDescriptions": []string{
				"A request to the API.", "A cron expression or an interval.", "A call to the trigger's own URL.",
				"Events of other workflows and their runs.", "New items in the response of a server that is polled regularly.",
			},
		},
		"cron": node{
			"title": "Cron", "description": "Minute, hour, day of the month, month and day of the week; or @hourly, @daily, @weekly, @monthly, @yearly, @every 15m.",
			"type": "string", "minLength": 1, "examples": []string{"0 3 * * *", "*/15 8-18 * * MON-FRI", "@daily"},
		},
		"every": durationProperty("Every", "The interval, at least "+clock.FormatDuration(minInterval)+"."),
		"timezone": node{
			"title": "Time zone", "description": "The IANA name of the time zone that cron uses. Default UTC.",
			"type": "string", "minLength": 1, "examples": []string{"Europe/Paris", "America/New_York"},
		},
		"missed": node{
			"title": "Missed", "description": "What happens to scheduled times that passed while the service was stopped.",
			"type": "string", "enum": []Missed{Skip, Latest}, "default": Skip,
			"enumDescriptions": []string{"They are skipped.", "The trigger fires once, for the latest of them."},
		},
		"jitter": durationProperty("Jitter", "Delays each time by up to this; for one trigger the delay is always the same. Default "+clock.FormatDuration(defaultJitter)+
			" for cron and none for an interval, at most "+clock.FormatDuration(maxJitter)+". 0s turns it off."),
		"methods": namesSchema("Methods", "The HTTP methods that the URL accepts. Default POST.", webhookMethods()),
		"verify":  ref("verify"),
		"dedupe": node{
			"title": "Dedupe", "description": "Text with expressions that read trigger. A call with a key that was already seen in the last 24 hours starts no run.",
			"type": "string", "minLength": 1,
		},
		"respond": node{
			"title": "Respond", "description": "When the caller gets the response.",
			"type": "string", "enum": []Respond{RespondNow, RespondResult}, "default": RespondNow,
			"enumDescriptions": []string{"Once the run has started, with its id.", "Once the run has ended, with the result of the workflow."},
		},
		"rate":   integerSchema("Rate", "How many calls are accepted per minute.", maxRate, DefaultRate),
		"events": namesSchema("Events", "The events that start a run.", eventNames()),
		"workflows": node{
			"title": "Workflows", "description": "The ids of the workflows whose events start runs. Default: all other workflows.",
			"type": "array", "minItems": 1, "maxItems": maxSubscribed, "uniqueItems": true, "items": node{"type": "string", "pattern": "^wf_"},
		},
		"request": requestSchema(inputs),
		"items": node{
			"title": "Items", "description": "An expression that reads response and returns the list of items.",
			"type": "string", "minLength": 1, "examples": []string{"response.body.orders"},
		},
		"key": node{
			"title": "Key", "description": "An expression that reads item and identifies it, such as item.id.",
			"type": "string", "minLength": 1,
		},
		"cursor": node{
			"title": "Cursor", "description": "An expression that reads response and returns where to continue. The next request reads it as cursor; it is nil the first time.",
			"type": "string", "minLength": 1,
		},
	})
	trigger["required"] = []string{"id", "type"}
	trigger["allOf"] = triggerCases()
	return trigger
}

// requestSchema is the input of PollAction.
func requestSchema(inputs map[string]node) node {
	if _, known := inputs[PollAction]; !known {
		return node{"title": "Request", "description": "The request to send.", "type": "object"}
	}
	return refWith(inputDef(PollAction), "Request", "The request to send, as in "+PollAction+". It can use cursor, secrets and vars.")
}

// triggerCases returns the required and allowed members of each type.
func triggerCases() []node {
	required := map[string]node{
		ScheduleTrigger: {"oneOf": []node{hasMember("cron"), hasMember("every")}},
		EventTrigger:    hasMember("events"),
		PollTrigger:     {"required": []string{"every", "request", "items"}, "anyOf": []node{hasMember("key"), hasMember("cursor")}},
	}
	var cases []node
	for _, kind := range TriggerTypes() {
		allowed := node{"id": true, "type": true}
		for _, name := range triggerMembers(kind) {
			allowed[name] = true
		}
		then := node{"properties": allowed, "additionalProperties": false}
		maps.Copy(then, required[kind])
		cases = append(cases, node{"if": node{"properties": node{"type": node{"const": kind}}, "required": []string{"type"}}, "then": then})
	}
	return cases
}

func namesSchema(title, description string, names []string) node {
	return node{
		"title": title, "description": description, "type": "array", "minItems": 1, "uniqueItems": true,
		"items": node{"type": "string", "enum": names},
	}
}

func verifySchema() node {
	text := func(title, description string) node {
		return node{"title": title, "description": description, "type": "string", "minLength": 1}
	}
	header := func(title, description string) node {
		return node{"title": title, "description": description, "type": "string", "pattern": headerName.String()}
	}
	choice := func(title, description string, names []string) node {
		return node{"title": title, "description": description, "type": "string", "enum": names, "default": names[0]}
	}
	verify := objectSchema("Verify", "How the trigger verifies who is calling.", node{
		"scheme": node{"title": "Scheme", "description": "How calls are signed, or how the caller authenticates.", "type": "string", "enum": Schemes()},
		"secret": node{
			"title": "Secret", "description": "The shared secret, as ${{ secrets.<name> }}.",
			"type": "string", "pattern": `\$\{\{`,
		},
		"username":  text("User name", "The user name of the scheme basic. The secret is the password."),
		"header":    header("Header", "The header that contains the signature, or for bearer the token. Default for bearer: Authorization."),
		"algorithm": choice("Algorithm", "The hash algorithm of the signature.", algorithms()),
		"encoding":  choice("Encoding", "How the signature is encoded.", encodings()),
		"prefix":    text("Prefix", "The text before the signature in its header, such as sha256=."),
		"signed":    text("Signed", "The signed text: {body} is the body, {name} the header of that name. Default {body}, preceded by the time and a dot if there is a timestamp."),
		"timestamp": header("Time", "The header that contains the time of the call, in Unix seconds."),
		"tolerance": durationProperty("Tolerance", "How old a signed call may be. Default "+clock.FormatDuration(defaultTolerance)+", at most "+clock.FormatDuration(maxTolerance)+"."),
	})
	verify["required"] = []string{"scheme"}
	var cases []node
	for _, scheme := range Schemes() {
		allowed := node{"scheme": true}
		for _, name := range schemeMembers(scheme) {
			allowed[name] = true
		}
		then := node{"properties": allowed, "additionalProperties": false}
		switch scheme {
		case SchemeNone:
		case SchemeHMAC:
			then["required"] = []string{"secret", "header"}
		case SchemeBasic:
			then["required"] = []string{"secret", "username"}
		default:
			then["required"] = []string{"secret"}
		}
		cases = append(cases, node{"if": node{"properties": node{"scheme": node{"const": scheme}}, "required": []string{"scheme"}}, "then": then})
	}
	verify["allOf"] = cases
	return verify
}
