package file

import "time"

// MakeSweepDue makes the next SweepOrphans look for orphans.
func MakeSweepDue(s *Service) { s.orphansFound = time.Time{} }
