// Package stepmill is the root of the Stepmill module. It holds no code of its
// own, only the tests that keep the module's structure: who may import whom,
// how large a file may grow, what a package has to say about itself.
//
// The server and the command line are in cmd/stepmill, the public Go client in
// client, the API contract in openapi.
package stepmill
