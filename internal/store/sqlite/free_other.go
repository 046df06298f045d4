//go:build !linux && !darwin

package sqlite

func freeBytes(string) int64 { return -1 }
