//go:build !no_ui

// Package web holds the dashboard as it was built. Its sources, in TypeScript,
// lie beside; dist is committed, so that building the program needs no Node.
package web

import (
	"embed"
	"io/fs"
)

// Names of chunks may begin with an underscore, hence all.
//
//go:embed all:dist
var dist embed.FS

// Dashboard is the built dashboard, with index.html at its root. It is nil in a
// program that was built without one.
func Dashboard() fs.FS {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is valid
	}
	return built
}
