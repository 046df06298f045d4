package sandbox

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// clockTick is the unit of times in /proc, on every architecture.
const clockTick = 10 * time.Millisecond

func (c *child) cpuTime() (time.Duration, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(c.cmd.Process.Pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name of the program, in parentheses, may contain spaces.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // of the fields that follow the name
	if len(fields) <= system {
		return 0, false
	}
	ticks := 0
	for _, field := range fields[user : system+1] {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, true
}
