package python

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"syscall"
	"time"

	"reprise/activities/tool"
	"reprise/interpreter/playbook"
)

// compileTime bounds the compiling of all codes of a playbook.
const compileTime = 5 * time.Second

// maxCompiled bounds what is read of the answer, in bytes.
const maxCompiled = 1 << 20

// compileCode compiles what it reads from stdin and runs none of it.
const compileCode = `
import json, sys
found = []
for code in json.loads(sys.stdin.buffer.read()):
    try:
        compile(code, "<code>", "exec", dont_inherit=True)
        found.append(None)
    except SyntaxError as error:
        found.append({"line": error.lineno or 0, "column": error.offset or 0, "message": error.msg or "invalid syntax"})
    except Exception:
        found.append(None)
print(json.dumps(found))
`

// Compile compiles codes with a Python and runs none of them. It gives nothing
// where there is no Python, and where the time is not enough: the attempt will fail.
func Compile(command string, codes []string) []*playbook.CodeProblem {
	input, err := json.Marshal(codes)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), compileTime)
	defer cancel()
	var output limitedBuffer
	process := exec.CommandContext(ctx, command, "-I", "-X", "utf8", "-W", "ignore", "-c", compileCode)
	process.Env = cleanEnvironment()
	process.Stdin = bytes.NewReader(input)
	process.Stdout = &output
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	process.WaitDelay = drainTime
	if err := process.Run(); err != nil {
		return nil
	}
	var found []*struct {
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal(output.Bytes(), &found); err != nil || len(found) != len(codes) {
		return nil
	}
	problems := make([]*playbook.CodeProblem, len(found))
	for i, problem := range found {
		if problem != nil {
			problems[i] = &playbook.CodeProblem{Line: problem.Line, Column: problem.Column, Message: tool.CutText(problem.Message, tool.MaxMessage)}
		}
	}
	return problems
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxCompiled-b.Len()))])
	return len(p), nil
}
