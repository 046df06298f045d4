//go:build !race

package sandbox

// mappingFactor is the ratio of mapped to used memory.
const mappingFactor = 1

const raceEnabled = false
