package expr

import (
	"slices"
	"strconv"
)

// Vocabulary returns the sorted words of the language: its names such as steps, their
// fields such as run.id, and its functions with each number of arguments, such as
// date/2. A later release may add words. An expression whose words are all known can be
// evaluated; see [Refs].
func Vocabulary() []string {
	words := rootNames()
	for _, root := range rootNames() {
		for _, field := range fieldsOf(root) {
			words = append(words, root+"."+field)
		}
	}
	for _, field := range stepFields() {
		words = append(words, "steps."+field)
	}
	for _, field := range linkFields() {
		words = append(words, "links."+field)
	}
	for _, f := range table {
		for n := f.min; n <= f.max; n++ {
			words = append(words, f.word(n))
			if f.max == anyNumber {
				break
			}
		}
	}
	slices.Sort(words)
	return words
}

func (f *function) word(n int) string {
	if f.max == anyNumber {
		return f.Name + "/*"
	}
	return f.Name + "/" + strconv.Itoa(n)
}
