// Package readme holds the documentation to its word: what README.md prints is
// pasted into a shell beside the real server, and the workflows shown in the
// documentation are given to it. It does not check prose.
package readme
