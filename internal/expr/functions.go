package expr

import (
	"slices"
	"strconv"
)

//go:generate go test . -run "TestDocs|TestDashboard" -update

// Function describes a function of the language. The reference in the docs and the
// list for the dashboard are generated from it, and every example runs as a test.
type Function struct {
	Name      string
	Group     string
	Signature string
	Doc       string
	Examples  []Example
	// InSteps reports that the function is available only in steps.
	InSteps bool
}

// Example is an expression and its result as JSON.
type Example struct {
	Source string
	Result string
}

// function is a Function with its implementation: either call or loop is set.
type function struct {
	Function
	min, max int
	call     func(m *evaluation, a args) (any, error)
	loop     loopFunc
	pattern  bool // argument 2 is a regular expression
	selector bool // argument 2 is a CSS selector
}

const anyNumber = 1 << 20 // of arguments

// table has all functions by name. It is never changed.
var table = newTable()

func newTable() map[string]*function {
	out := make(map[string]*function)
	for _, group := range allGroups() {
		for _, f := range group.functions {
			f.Group = group.name
			out[f.Name] = &f
		}
	}
	return out
}

type group struct {
	name      string
	functions []function
}

func allGroups() []group {
	return []group{
		{"Text", slices.Concat(textFunctions(), searchFunctions(), regexFunctions())},
		{"Numbers", slices.Concat(numberFunctions(), formatFunctions())},
		{"Lists", slices.Concat(loopFunctions(), listFunctions())},
		{"Objects", objectFunctions()},
		{"Types and encodings", encodingFunctions()},
		{"Documents", slices.Concat(documentFunctions(), toXMLFunctions(), htmlFunctions())},
		{"URLs", urlFunctions()},
		{"Hashes and signatures", slices.Concat(hashFunctions(), jwtFunctions())},
		{"Random values", randomFunctions()},
		{"Dates and times", slices.Concat(timeFunctions(), calendarFunctions())},
	}
}

// Functions returns all functions that an expression can call, by group.
func Functions() []Function {
	var out []Function
	for _, group := range allGroups() {
		for _, f := range group.functions {
			f.Group = group.name
			out = append(out, f.Function)
		}
	}
	return out
}

func lookup(name string) (*function, bool) {
	f, ok := table[name]
	return f, ok
}

func functionNames() []string {
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func arguments(n int) string {
	if n == 1 {
		return "1 argument"
	}
	return strconv.Itoa(n) + " arguments"
}

// fn declares an ordinary function; example alternates sources and results.
func fn(name, signature, doc string, lo, hi int, call func(*evaluation, args) (any, error), example ...string) function {
	return function{Function: declare(name, signature, doc, example), min: lo, max: hi, call: call}
}

// loopFn declares a function that evaluates an expression for each element.
func loopFn(name, signature, doc string, lo, hi int, form loopFunc, example ...string) function {
	return function{Function: declare(name, signature, doc, example), min: lo, max: hi, loop: form}
}

func declare(name, signature, doc string, example []string) Function {
	f := Function{Name: name, Signature: signature, Doc: doc}
	for i := 0; i+1 < len(example); i += 2 {
		f.Examples = append(f.Examples, Example{Source: example[i], Result: example[i+1]})
	}
	return f
}
