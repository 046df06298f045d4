package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/stepmill/stepmill/internal/strictjson"
	"github.com/stepmill/stepmill/internal/strictyaml"
)

// FuzzDecode compares the result with another YAML parser: every accepted
// document must have the same value there.
func FuzzDecode(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := strictyaml.Decode(data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		var value any
		d := json.NewDecoder(bytes.NewReader(document.JSON))
		d.UseNumber()
		if err := d.Decode(&value); err != nil {
			t.Fatalf("%q gives %q, which is not JSON: %v", data, document.JSON, err)
		}
		if first := document.JSON[0]; first != '{' && first != '[' {
			return // the other parser requires indented block scalars even at the top level
		}
		var other yaml.Node
		if err := yaml.Unmarshal(data, &other); err != nil {
			if knownDifference(data) {
				return
			}
			t.Fatalf("%q is %s, but the other parser says %v", data, document.JSON, err)
		}
		if diff := differs(value, other.Content[0], ""); diff != "" {
			t.Fatalf("%q is %s, the other parser differs: %s", data, document.JSON, diff)
		}
		checkRoundTrip(t, document.JSON)
	})
}

// FuzzEncode decodes what was encoded.
func FuzzEncode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":["yes","1e3","0777",null,1.5e3,{"b":"x\ny\n"}]}`, `["- ","a: b","a #b","${{ x }}"," x","x "]`,
		`[[[1,[]],[{}]]]`, `"\u2028\u0085\ufeff\u0007"`, `["\n","a\n\n","  a\n b"," \n \n"]`, `{"":"","~":1,"<<":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) { checkRoundTrip(t, document) })
}

// fataler is implemented by *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkRoundTrip encodes a JSON document as YAML and decodes it, here and with
// the other parser.
func checkRoundTrip(t fataler, document []byte) {
	t.Helper()
	want, err := strictjson.DecodeAny(document)
	if err != nil {
		return
	}
	text, err := strictyaml.Encode(document)
	if err != nil {
		t.Fatalf("%q: %v", document, err)
	}
	again, err := strictyaml.Decode(text)
	if err != nil {
		t.Fatalf("%q is written as\n%s\nwhich cannot be read: %v", document, text, err)
	}
	got, err := strictjson.DecodeAny(again.JSON)
	if err != nil {
		t.Fatalf("%q: %v", again.JSON, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%q is written as\n%s\nand read back differently (-want +got):\n%s", document, text, diff)
	}
	var other yaml.Node
	if err := yaml.Unmarshal(text, &other); err != nil {
		t.Fatalf("%q is encoded as\n%s\nwhich the other parser rejects: %v", document, text, err)
	}
	if diff := differs(want, other.Content[0], ""); diff != "" {
		t.Fatalf("%q is encoded as\n%s\nwhich the other parser decodes differently: %s", document, text, diff)
	}
}

func checkError(t *testing.T, data []byte, err error) {
	t.Helper()
	var problems strictjson.Errors
	if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Message == "" {
		t.Fatalf("%q: %#v", data, err)
	}
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n"), "\n")
	at := problems[0]
	if at.Line < 1 || at.Line > len(lines) || at.Column < 1 || at.Column > len(lines[at.Line-1])+1 {
		t.Fatalf("%q: there is no line %d, column %d", data, at.Line, at.Column)
	}
}

// differs compares a value with a node of the other parser. It ignores the types
// of plain scalars, because that parser implements YAML 1.1.
func differs(value any, node *yaml.Node, at string) string {
	switch value := value.(type) {
	case map[string]any:
		if node.Kind != yaml.MappingNode || len(node.Content) != 2*len(value) {
			return at + ": not the same mapping"
		}
		for i := 0; i < len(node.Content); i += 2 {
			key := node.Content[i].Value
			member, ok := value[key]
			if !ok {
				return fmt.Sprintf("%s: has the key %q", at, key)
			}
			if diff := differs(member, node.Content[i+1], at+"/"+key); diff != "" {
				return diff
			}
		}
	case []any:
		if node.Kind != yaml.SequenceNode || len(node.Content) != len(value) {
			return at + ": not the same sequence"
		}
		for i := range value {
			if diff := differs(value[i], node.Content[i], at+"/"+strconv.Itoa(i)); diff != "" {
				return diff
			}
		}
	case string:
		if node.Kind != yaml.ScalarNode || node.Value != value {
			return fmt.Sprintf("%s: %q, not %q", at, node.Value, value)
		}
	default:
		if node.Kind != yaml.ScalarNode || node.Style&^yaml.FlowStyle != 0 {
			return fmt.Sprintf("%s: %q, not %v", at, node.Value, value)
		}
	}
	return ""
}

// knownDifference reports whether a valid document has something that the other
// parser rejects: tabs on empty lines, surrogate pairs as in JSON, or a question mark
// in a plain scalar in flow style, as in {url: http://a/?b}.
func knownDifference(data []byte) bool {
	return bytes.ContainsAny(data, "\t?") || bytes.Contains(bytes.ToLower(data), []byte(`\ud`))
}
