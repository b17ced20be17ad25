package python

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"os/exec"
	"slices"
	"syscall"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"reprise/activities/tool"
	"reprise/interpreter/playbook/check"
)

// compileTime bounds the compiling of all codes of a playbook.
const compileTime = 5 * time.Second

// maxAnswer bounds what is read of the answer of the process that compiles, in bytes: it is
// Python's text about code of an author.
const maxAnswer = 1 << 20

// compileCode compiles the code on stdin without running it.
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

// maxCompiled bounds how many compiled playbooks are remembered: a worker sees any number of
// them.
const maxCompiled = 1000

// compiled remembers which codes compiled, by the hash of Python's command and all of them: starting Python takes
// some 100 ms, and each run of a playbook is checked. Codes that do not compile are tried again.
var compiled, _ = lru.New[[sha256.Size]byte, struct{}](maxCompiled) // of more than none

// CompileCodes compiles Python code without running it. It reports nothing if there is no
// Python or too little time: then the attempt will fail.
func CompileCodes(command string, codes []string) []*check.CodeProblem {
	input, err := json.Marshal(codes)
	if err != nil {
		return nil
	}
	key := sha256.Sum256(append([]byte(command+"\x00"), input...))
	if compiled.Contains(key) {
		return make([]*check.CodeProblem, len(codes))
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
	problems := make([]*check.CodeProblem, len(found))
	for i, problem := range found {
		if problem != nil {
			problems[i] = &check.CodeProblem{Line: problem.Line, Column: problem.Column, Message: tool.CutText(problem.Message, tool.MaxMessage)}
		}
	}
	if !slices.ContainsFunc(problems, func(problem *check.CodeProblem) bool { return problem != nil }) {
		compiled.Add(key, struct{}{})
	}
	return problems
}

// limitedBuffer keeps the beginning of what is written.
type limitedBuffer struct{ bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, maxAnswer-b.Len()))])
	return len(p), nil
}
