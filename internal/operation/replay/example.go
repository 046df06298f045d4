package replay

import (
	"encoding/json"
	"regexp"
)

// testFile matches a file in the input of a test, as compact JSON.
var testFile = regexp.MustCompile(`\{"\$file":"(?:[^"\\]|\\.)*"\}`)

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
