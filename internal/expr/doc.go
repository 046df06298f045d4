// Package expr is Stepmill's expression language: what stands between ${{ and
// }} in a workflow, and what if, until and foreach hold.
//
// It owns the grammar's meaning, the functions, the names an expression may
// use, and the bounds that make it safe to evaluate text written by strangers.
// It does not load data: the caller fills an [Env], and [Refs] says beforehand
// what an expression will ask for.
//
// The syntax is that of expr-lang, whose parser is used as it is. The meaning
// is this package's own: a small tree of nodes over plain JSON values. That is
// what lets every loop iteration and every byte built be charged to a [Budget],
// makes a missing key nil instead of an error, and leaves no way to reach a Go
// method, a field or a function that is not in the table of [Functions]. The
// language has no recursion and no unbounded loop, so every evaluation ends.
//
// Compiled values are immutable and safe for concurrent use: all that changes
// during an evaluation lives in a value made for that evaluation.
package expr
