// Package expr implements Stepmill's expression language: the text between ${{
// and }} in a workflow, and the values of if, until and foreach.
//
// It owns the semantics, the functions, the names that an expression can use, and
// the limits that make it safe to evaluate untrusted expressions. It does not load
// data: the caller fills an [Env], and [Refs] lists in advance what an expression
// reads.
//
// The syntax is that of expr-lang, whose parser the package uses unchanged. The
// evaluation is its own: a small tree of nodes over plain JSON values. So it can
// charge every loop iteration and every allocated byte to a [Budget], a missing
// key is nil instead of an error, and an expression cannot reach a Go method, a
// field or a function that is not one of [Functions]. The language has no
// recursion and no unbounded loop, so every evaluation ends.
//
// Compiled values are immutable and safe for concurrent use: the mutable state of
// an evaluation belongs to that evaluation only.
package expr
