package terminal

import (
	"os"
	"path/filepath"
	"strings"
)

// Program is this program as its user calls it: what is printed as a command is
// pasted.
func Program() string { return programName(os.Args[0]) }

func programName(called string) string {
	if filepath.Base(called) == called || strings.Contains(called, "go-build") { // go run leaves nothing behind
		return "starter"
	}
	if strings.ContainsAny(called, " '\"$\\") {
		return "'" + strings.ReplaceAll(called, "'", `'\''`) + "'"
	}
	return called
}
