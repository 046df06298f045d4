package main

import "os"

// peak is not implemented on Windows.
func peak(*os.ProcessState) float64 { return 0 }
