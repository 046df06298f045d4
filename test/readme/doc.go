// Package readme tests the documentation: it runs the commands of README.md in a shell
// against the real server, and starts the workflows that the documentation shows. It
// does not check prose.
package readme
