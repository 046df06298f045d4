package replay

import (
	"encoding/json"
	"regexp"
)

// testFile matches a file in the input of a test, as compact JSON.
var testFile = regexp.MustCompile(`\{"\$file":"(?:[^"\\]|\\.)*"\}`)

// Payload returns the payload of the first item that a test of a trigger finds, as an
// example. It returns nil if there is none.
func (t *Tests) Payload(trigger string) json.RawMessage {
	for _, test := range t.Triggers[trigger] {
		for _, item := range test.Found {
			return item.Payload
		}
	}
	return nil
}

// TriggerExample returns the settings of the first test of a trigger that has some, as an
// example. It returns nil if there is none.
func (t *Tests) TriggerExample(trigger string) json.RawMessage {
	for _, test := range t.Triggers[trigger] {
		if test.Error == nil && test.Input != nil {
			return test.Input
		}
	}
	return nil
}

// Example returns the input of the first test of an operation that succeeds, as an example
// for steps. A file is one that a run was started with. It returns nil if there is no test.
func (t *Tests) Example(operation string) json.RawMessage {
	for _, test := range t.Operations[operation] {
		if test.Error == nil {
			return testFile.ReplaceAll(test.Input, []byte(`"$${{ trigger.files.file }}"`))
		}
	}
	return nil
}
