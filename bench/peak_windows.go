package main

import "os"

// peak is not known here.
func peak(*os.ProcessState) float64 { return 0 }
