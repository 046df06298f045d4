// Package stepmill is the root of the Stepmill module. It contains only the
// tests that enforce the module's structure: which package may import which, how
// large a file may grow, and what a package comment has to say.
//
// The program is in cmd/stepmill, the dashboard in web, and the API specification
// in openapi.
package stepmill
