//go:build no_ui

// Package web holds the dashboard, which this build leaves out.
package web

import "io/fs"

// Dashboard is nil: the program answers the API alone.
func Dashboard() fs.FS { return nil }
