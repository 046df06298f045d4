//go:build race

package sandbox

// mappingFactor is the ratio of mapped to used memory: the race detector maps
// shadow memory.
const mappingFactor = 16

const raceEnabled = true
