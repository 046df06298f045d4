// Package release numbers the releases and knows what each of them can execute.
//
// Nodes of two consecutive releases can share a database while they are upgraded one by
// one. A definition that uses something new must then not be executed by a node of the
// older release, which would ignore what it does not know. So each version of a workflow
// has a level, the number of the first release that knows everything in it, and a node
// only claims runs of levels that it knows.
package release

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Number is the number of this release, or of the next one between two releases. A
// release that only fixes something has the number of the release that it fixes.
const Number = 3

// First is the first release whose nodes know levels. Older nodes cannot run beside
// nodes of this release.
const First = 3

// names are the names of the releases, by their number minus 1.
var names = []string{"0.1.0", "0.2.0", "0.3.0"}

// Name returns the name of a release, such as 0.2.0.
func Name(number int) string {
	if number < 1 || number > len(names) {
		return fmt.Sprintf("release %d", number)
	}
	return names[number-1]
}

// oldest is the oldest release whose knowledge is on record. What it knows has its level.
const oldest = 2

// knownFiles has a directory for each earlier release from the oldest on. schema.json is
// the JSON Schema of workflows that the release published, without descriptions;
// words.txt is the vocabulary of its expressions.
//
//go:embed known
var knownFiles embed.FS

// knowledge is what an earlier release knows.
type knowledge struct {
	level  int
	schema *jsonschema.Schema
	words  map[string]bool
}

// earlier returns what the earlier releases know, the oldest first.
var earlier = sync.OnceValues(func() ([]knowledge, error) {
	var all []knowledge
	for number := oldest; number < Number; number++ {
		one, err := readKnowledge(number)
		if err != nil {
			return nil, fmt.Errorf("read what %s knows: %w", Name(number), err)
		}
		all = append(all, one)
	}
	return all, nil
})

func readKnowledge(number int) (knowledge, error) {
	dir := path.Join("known", Name(number))
	words, err := knownFiles.ReadFile(path.Join(dir, "words.txt"))
	if err != nil {
		return knowledge{}, err
	}
	text, err := knownFiles.ReadFile(path.Join(dir, "schema.json"))
	if err != nil {
		return knowledge{}, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return knowledge{}, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(Name(number), document); err != nil {
		return knowledge{}, err
	}
	schema, err := compiler.Compile(Name(number))
	if err != nil {
		return knowledge{}, err
	}
	out := knowledge{level: number, schema: schema, words: map[string]bool{}}
	for word := range strings.FieldsSeq(string(words)) {
		out.words[word] = true
	}
	return out, nil
}

// Level returns the level of a definition: the number of the first release that knows it.
// The definition is canonical JSON that this release accepts, and words are the words of
// its expressions.
func Level(definition []byte, words []string) (int, error) {
	all, err := earlier()
	if err != nil {
		return 0, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(definition))
	if err != nil {
		return 0, err
	}
	for _, release := range all {
		isUnknown := func(word string) bool { return !release.words[word] }
		if !slices.ContainsFunc(words, isUnknown) && release.schema.Validate(document) == nil {
			return release.level, nil
		}
	}
	return Number, nil
}
