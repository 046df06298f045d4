package workflow

import (
	"maps"

	"github.com/stepmill/stepmill/internal/duration"
)

// triggerSchema is a trigger with all members it can have; its type decides
// which of them it may.
func triggerSchema(inputs map[string]node) node {
	trigger := closed("Trigger", "Something that starts runs. Triggers fire only while the workflow is active.", node{
		"id": described("id", "Id", "The name of the trigger, unique among the triggers."),
		"type": node{
			"title": "Type", "description": "What starts runs.", "type": "string", "enum": TriggerTypes(),
			"enumDescriptions": []string{
				"A request.", "The time: cron or an interval.", "A call of an address of its own.",
				"What happens to other workflows and their runs.", "New items in the answer of a server that is asked regularly.",
			},
		},
		"cron": node{
			"title": "Cron", "description": "Minute, hour, day, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly, @every 15m.",
			"type": "string", "minLength": 1, "examples": []string{"0 3 * * *", "*/15 8-18 * * MON-FRI", "@daily"},
		},
		"every": bounded("Every", "How much time passes from one to the next, at least "+duration.Format(minInterval)+"."),
		"timezone": node{
			"title": "Time zone", "description": "The time zone of cron, by its IANA name; UTC unless given.",
			"type": "string", "minLength": 1, "examples": []string{"Europe/Paris", "America/New_York"},
		},
		"missed": node{
			"title": "Missed", "description": "What becomes of times that passed while the service was stopped.",
			"type": "string", "enum": []Missed{Skip, Latest}, "default": Skip,
			"enumDescriptions": []string{"Nothing.", "The latest of them is made up for, once."},
		},
		"jitter": bounded("Jitter", "Each time is moved by up to this, the same for each time of a trigger: "+duration.Format(defaultJitter)+
			" for cron and nothing for an interval unless given, at most "+duration.Format(maxJitter)+". 0s for none."),
		"methods": namesSchema("Methods", "With what methods the address can be called; POST unless given.", hookMethods()),
		"verify":  ref("verify"),
		"dedupe": node{
			"title": "Dedupe", "description": "Text with expressions over trigger. A call with a key that was there in the last 24 hours starts nothing.",
			"type": "string", "minLength": 1,
		},
		"respond": node{
			"title": "Respond", "description": "When the caller gets the answer.",
			"type": "string", "enum": []Respond{RespondNow, RespondResult}, "default": RespondNow,
			"enumDescriptions": []string{"Once the run has started, with its id.", "Once the run has ended, with what the workflow returns."},
		},
		"rate":   whole("Rate", "How many calls a minute may have.", maxRate, DefaultRate),
		"events": namesSchema("Events", "The events that start a run.", eventNames()),
		"workflows": node{
			"title": "Workflows", "description": "The ids of the workflows whose events count; all others unless given.",
			"type": "array", "minItems": 1, "maxItems": maxSubscribed, "uniqueItems": true, "items": node{"type": "string", "pattern": "^wf_"},
		},
		"request": requestSchema(inputs),
		"items": node{
			"title": "Items", "description": "An expression over response for the list of items.",
			"type": "string", "minLength": 1, "examples": []string{"response.body.orders"},
		},
		"key": node{
			"title": "Key", "description": "An expression over item for what tells one item from another, such as item.id.",
			"type": "string", "minLength": 1,
		},
		"cursor": node{
			"title": "Cursor", "description": "An expression over response for where to go on. The request reads it as cursor; it is nil the first time.",
			"type": "string", "minLength": 1,
		},
	})
	trigger["required"] = []string{"id", "type"}
	trigger["allOf"] = triggerCases()
	return trigger
}

// requestSchema is the input of the action that a poll asks with.
func requestSchema(inputs map[string]node) node {
	if _, known := inputs[PollAction]; !known {
		return node{"title": "Request", "description": "What is asked.", "type": "object"}
	}
	return described(inputDef(PollAction), "Request", "What is asked, as in "+PollAction+". It can use cursor, secrets and vars.")
}

// triggerCases say which members a type must and must not have.
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
	verify := closed("Verify", "How a call is known to come from whom it should.", node{
		"scheme": node{"title": "Scheme", "description": "How calls are signed, or how the caller names itself.", "type": "string", "enum": Schemes()},
		"secret": node{
			"title": "Secret", "description": "The secret that both sides know, as ${{ secrets.<name> }}.",
			"type": "string", "pattern": `\$\{\{`,
		},
		"username":  text("User name", "That of the scheme basic; its password is the secret."),
		"header":    header("Header", "The header that has the signature, or the token of bearer instead of Authorization."),
		"algorithm": choice("Algorithm", "With what the signature is made.", algorithms()),
		"encoding":  choice("Encoding", "How the signature is written.", encodings()),
		"prefix":    text("Prefix", "What stands before the signature in its header, such as sha256=."),
		"signed":    text("Signed", "What is signed: {body} stands for the body, {name} for the header of that name. Unless given it is {body}, after the time and a dot if there is a timestamp."),
		"timestamp": header("Time", "The header that has the time of the call, in Unix seconds."),
		"tolerance": bounded("Tolerance", "How old a signed call may be, "+duration.Format(defaultTolerance)+" unless given, at most "+duration.Format(maxTolerance)+"."),
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
