package python_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tooltest"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

func pythonInput(code string, args any) func(*testing.T) interpreter.ToolInput {
	return func(*testing.T) interpreter.ToolInput {
		in := interpreter.ToolInput{Fields: tooltest.Fields(map[string]any{"code": code})}
		if args != nil {
			in.Args = tooltest.Value(args)
		}
		return in
	}
}

func pythonCatalogue(t *testing.T) *activities.Catalogue {
	t.Helper()

	c := activities.NewCatalogue(activities.Resources{AllowPython: true, Directory: t.TempDir(), MaxResponseBytes: 1 << 20})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func callPython(t *testing.T, code string, args any) (interpreter.ToolResult, error) {
	t.Helper()
	return tooltest.Call(t, pythonCatalogue(t), "python", "python", pythonInput(code, args)(t))
}

func TestPythonConforms(t *testing.T) {
	t.Parallel()

	c := pythonCatalogue(t)
	fails := func(name string, class interpreter.Class, typ, says, code string, args any) tooltest.FailureCase {
		return tooltest.FailureCase{Name: name, Input: pythonInput(code, args), Kind: "tool", Class: class, Type: typ, Says: says}
	}

	tooltest.Run(t, tooltest.Suite{
		Catalogue: c, Tool: "python",
		Good:  pythonInput("def main(a, b=2):\n  return {'sum': a + b, 'big': 2**70, 'half': 0.5, 'none': None}", map[string]any{"a": 1}),
		Slow:  pythonInput("import time\ndef main():\n  time.sleep(60)", nil),
		Large: pythonInput("def main():\n  return ['x' * 1000] * 400", nil),
		Failures: []tooltest.FailureCase{
			fails("exception", "retryable", "ValueError", "ValueError: no such dose", "def main():\n  raise ValueError('no such dose')", nil),
			fails("exception that is final", "final", "Refused", "Refused: no",
				"class Refused(Exception):\n  retryable = False\ndef main():\n  raise Refused('no')", nil),
			fails("exception that asks to wait", "rate_limited", "Busy", "Busy: later",
				"class Busy(Exception):\n  retry_after = 3\ndef main():\n  raise Busy('later')", nil),
			fails("exception at the top", "retryable", "KeyError", "KeyError: 'x'", "{}['x']\ndef main(): pass", nil),
			fails("does not compile", "final", "SyntaxError", "(line 2)", "def main():\n  return (", nil),
			fails("no main", "final", "NameError", "the code defines no function main", "x = 1", nil),
			fails("main lacks a parameter", "final", "TypeError", "main has no parameter 'dose', 'unit'; it takes a",
				"def main(a=1): pass", map[string]any{"unit": "mg", "dose": 2}),
			fails("main needs more", "final", "TypeError", "main needs 'b'; args gives a", "def main(a, *, b): pass", map[string]any{"a": 1}),
			fails("by position only", "final", "TypeError", "remove the /", "def main(a, /): pass", map[string]any{"a": 1}),
			fails("async", "final", "TypeError", "main is async", "async def main(): pass", nil),
			fails("not JSON", "final", "TypeError", "what JSON cannot hold", "def main(): return object()", nil),
			fails("not a number", "final", "ValueError", "what JSON cannot hold", "def main(): return float('nan')", nil),
			fails("keys that JSON has as one", "final", "", "the result of main cannot be represented: the key \"1\" occurs twice", `def main(): return [{1: "a", "1": "b"}]`, nil),
			fails("half of a surrogate pair", "final", "", "the result of main cannot be represented: the text at byte", `def main(): return ["ok", "\ud83d"]`, nil),
			fails("nested too deep", "final", "", "the result of main cannot be read",
				"import sys\nsys.setrecursionlimit(5000)\ndef main():\n  x = []\n  for _ in range(1100): x = [x]\n  return x", nil),
			fails("long number", "final", "", "at byte 0: the number 9999999999999999999999999999999999999999… has 1001 digits",
				"def main(): return int('9' * 1001)", nil),
			fails("sys.exit", "retryable", "SystemExit", "SystemExit: 3", "import sys\ndef main(): sys.exit(3)", nil),
			fails("dies", "retryable", "exit", "python ended without a result: exit status 7", "import os\ndef main(): os._exit(7)", nil),
			fails("killed", "retryable", "exit", "python ended without a result: signal: killed",
				"import os, signal\ndef main(): os.kill(os.getpid(), signal.SIGKILL)", nil),
			fails("args of another type", "final", "", "args of python must be a map", "def main(): pass", []any{1}),
			{
				Name: "too large", Input: pythonInput("def main(): return 'x' * (2 << 20)", nil),
				Kind: "payload_too_large", Class: "final", Says: "larger than the limit of 1048576 bytes",
			},
		},
		Write: &tooltest.WriteCase{
			AuthorsDuty: "the code decides what it writes and where",
			Input: func(t *testing.T) interpreter.ToolInput {
				t.Helper()
				return pythonInput("def main(path, rows):\n  open(path, 'a').write('%d rows' % len(rows))",
					map[string]any{"path": filepath.Join(t.TempDir(), "out"), "rows": []any{1, 2}})(t)
			},
			Effect: func(_ *testing.T, in interpreter.ToolInput) any {
				args, _ := in.Args.Data.(map[string]any)
				path, _ := args["path"].(string)
				content, _ := os.ReadFile(path)
				return string(content)
			},
		},
	})
}

// TestPythonThatCannotBeCalled: the policies are not asked about code that no
// attempt can call, but about what it returns.
func TestPythonThatCannotBeCalled(t *testing.T) {
	t.Parallel()

	for code, unfit := range map[string]bool{
		"def main(":                         true,
		"x = 1":                             true,
		"def main(a): pass":                 true,
		"def main(*, b): pass":              true,
		"async def main(): pass":            true,
		"def main(): return object()":       false,
		"def main(): raise TypeError('no')": false,
		"def f(a): pass\ndef main(): f()":   false,
	} {
		_, err := callPython(t, code, nil)
		object := tooltest.ErrorObject(t, err)

		require.Equal(t, unfit, object.Final, code)
	}
}

func TestPythonIsOffByDefault(t *testing.T) {
	t.Parallel()

	_, err := tooltest.Call(t, activities.DefaultCatalogue(), "python", "python", pythonInput("def main(): return 1", nil)(t))
	object := tooltest.ErrorObject(t, err)

	require.EqualValues(t, "tool", object.Kind)
	require.EqualValues(t, "final", object.Class)
	require.True(t, object.Final)
	require.Contains(t, object.Message, "python is off on this worker")
}

func TestPythonIsNotInstalled(t *testing.T) {
	t.Parallel()

	c := activities.NewCatalogue(activities.Resources{AllowPython: true, PythonCommand: "/nowhere/python9"})
	_, err := tooltest.Call(t, c, "python", "python", pythonInput("def main(): return 1", nil)(t))
	object := tooltest.ErrorObject(t, err)

	require.True(t, object.Final)
	require.Contains(t, object.Message, "python cannot be started on this worker: python9: no such file or directory")
}

func TestPythonNumbersStayExact(t *testing.T) {
	t.Parallel()

	result, err := callPython(t, "def main(n): return [n + 1, 9007199254740993 * 1000, 10**30]",
		map[string]any{"n": 9007199254740993})
	require.NoError(t, err)

	encoded, err := json.Marshal(result.Data)
	require.NoError(t, err)
	require.JSONEq(t, `[9007199254740994, 9007199254740993000, 1000000000000000000000000000000]`, string(encoded))
	require.Contains(t, string(encoded), "1000000000000000000000000000000")
}

// TestPythonNumbersPreserveTheirDigits: what the code only passes on is as it was; what it computes with is a float, or a Decimal.
func TestPythonNumbersPreserveTheirDigits(t *testing.T) {
	t.Parallel()

	long, zeros := json.Number("123456789012345678.5"), json.Number("19.90")
	args := map[string]any{"rows": []any{map[string]any{"a": long, "b": zeros, "c": 0.1, "d": json.Number("1e400"), "e": 1e-7}}}
	result, err := callPython(t, `
import copy, decimal
def main(rows):
    r = rows[0]
    return {"rows": copy.deepcopy(rows), "sum": r["b"] + 1, "half": r["c"] * 5, "text": str(r["a"]), "form": f"{r['b']} {r['b']:.1f}",
            "float": isinstance(r["a"], float), "exact": decimal.Decimal(str(r["a"])) * 2 + decimal.Decimal("0.25"), "keys": {r["b"]: 1}}`, args)
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"rows": args["rows"], "sum": 20.9, "half": 0.5, "text": "123456789012345678.5", "form": "19.90 19.9", "float": true,
		"exact": json.Number("246913578024691357.25"), "keys": map[string]any{"19.90": 1},
	}, result.Data.Data)

	result, err = callPython(t, "from decimal import Decimal\ndef main():\n  return [Decimal('19.90'), Decimal(7)]", nil)
	require.NoError(t, err)
	require.Equal(t, []any{zeros, 7}, result.Data.Data)

	_, err = callPython(t, "from decimal import Decimal\ndef main():\n  return Decimal('NaN')", nil)
	require.ErrorContains(t, err, "what JSON cannot hold")
}

func TestPythonSinkGetsTheResult(t *testing.T) {
	t.Parallel()

	in := pythonInput("def main(result): return len(result)", nil)(t)
	in.Result = tooltest.Value([]any{1, 2, 3})
	result, err := tooltest.Call(t, pythonCatalogue(t), "python.write", "python", in)

	require.NoError(t, err)
	require.Equal(t, 3, result.Data.Data)
}

func TestPythonReadsNoStdin(t *testing.T) {
	t.Parallel()

	result, err := callPython(t, "import sys\ndef main(): return sys.stdin.read()", nil)
	require.NoError(t, err)
	require.Equal(t, "", result.Data.Data)
}

func TestPythonEnvironmentIsClean(t *testing.T) {
	t.Setenv("REPRISE_AUTH_PG_MAIN", "postgres://u:s3cret@h/db")
	t.Setenv("PYTHONPATH", "/nowhere")
	t.Setenv("SOMETHING_OF_THE_WORKER", "s3cret")

	// What stands in front of python3, such as a version manager, may add names.
	result, err := callPython(t, "import os\ndef main(): return dict(os.environ)", nil)
	require.NoError(t, err)

	environment, _ := result.Data.Data.(map[string]any)

	require.Contains(t, environment, "PATH")
	require.NotContains(t, environment, "REPRISE_AUTH_PG_MAIN")
	require.NotContains(t, environment, "PYTHONPATH")
	require.NotContains(t, environment, "SOMETHING_OF_THE_WORKER")
}

func TestPythonTracebackShowsTheAuthorsCode(t *testing.T) {
	t.Parallel()

	_, err := callPython(t, "def helper(x):\n  return 1 / x\ndef main():\n  return helper(0)", nil)
	object := tooltest.ErrorObject(t, err)
	body, _ := object.Body.Data.(map[string]any)
	trace, _ := body["traceback"].(string)

	require.Equal(t, "ZeroDivisionError", object.Type)
	require.Contains(t, trace, `File "<fetch>", line 4, in main`)
	require.Contains(t, trace, "return helper(0)")
	require.Contains(t, trace, `line 2, in helper`)
	require.NotContains(t, trace, "compiled")
}

func TestPythonToldWait(t *testing.T) {
	t.Parallel()

	for said, want := range map[string]float64{
		"2.5": 2.5, "'7'": 7, "'1m30s'": 90, "__import__('datetime').timedelta(seconds=9)": 9,
		"0": 0, "-3": 0, "__import__('datetime').datetime(2020, 1, 1, tzinfo=__import__('datetime').timezone.utc)": 0,
	} {
		_, err := callPython(t, "class Busy(Exception):\n  retry_after = "+said+"\ndef main():\n  raise Busy('later')", nil)
		object := tooltest.ErrorObject(t, err)
		require.Equal(t, interpreter.ClassRateLimited, object.Class, said)
		require.Equal(t, "Busy: later", object.Message, said)
		if want == 0 {
			require.Nil(t, object.RetryAfter, said)
			continue
		}
		require.NotNil(t, object.RetryAfter, said)
		require.InDelta(t, want, *object.RetryAfter, 0, said)
	}
	for said, named := range map[string]string{"'soon'": "soon", "True": "True", "float('inf')": "inf", "[1]": "[1]"} {
		_, err := callPython(t, "class Busy(Exception):\n  retry_after = "+said+"\ndef main():\n  raise Busy('later')", nil)
		object := tooltest.ErrorObject(t, err)
		require.Nil(t, object.RetryAfter, said)
		require.Contains(t, object.Message, `Busy: later; retry_after is "`+named+`", and must be seconds`)
	}
}

// TestPythonPrintsAreOnlyLogsAndBounded passes maxLog.
func TestPythonPrintsAreOnlyLogsAndBounded(t *testing.T) {
	t.Parallel()

	log := &testenv.Output{}
	c := activities.NewCatalogue(activities.Resources{AllowPython: true, Logger: slog.New(slog.NewTextHandler(log, nil))})
	in := pythonInput("def main():\n  for i in range(200000): print('line', i)\n  return 'ok'", nil)(t)
	result, err := tooltest.Call(t, c, "python", "python", in)

	require.NoError(t, err)
	require.Equal(t, "ok", result.Data.Data)
	require.Contains(t, log.String(), "line 199999")
	require.NotContains(t, log.String(), "line 1000\\n")
	require.Less(t, len(log.String()), 128<<10)
}

// What main starts ends with the attempt's time, and with main however that
// ends; wherever it has gone meanwhile.
func TestPythonGrandchildrenEnd(t *testing.T) {
	t.Parallel()

	const spawn = `
import os, subprocess, time
def leave(program):
    """A daemon in a session of its own, whose parent has ended."""
    told, tell = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(tell, str(os.getpid()).encode())
            os.execvpe(program[0], program, {"PATH": os.environ["PATH"]})
        os._exit(0)
    os.wait()
    return int(os.read(told, 100))
def main(path, way, how):
    program = ["sleep", "120"]
    if how == "child":
        pid = subprocess.Popen(program).pid
    elif how == "session":
        pid = subprocess.Popen(program, start_new_session=True, env={}).pid
    else:
        pid = leave(program)
    with open(path + ".new", "w") as f:
        f.write(str(pid))
    os.rename(path + ".new", path)
    if way == "time is up":
        time.sleep(60)
    if way == "main is killed":
        os.kill(os.getpid(), 9)
`

	for _, how := range []string{"child", "session", "daemon"} {
		for _, way := range []string{"time is up", "main returned", "main is killed"} {
			t.Run(how+", "+way, func(t *testing.T) {
				t.Parallel()

				testGrandchild(t, spawn, how, way)
			})
		}
	}
}

func testGrandchild(t *testing.T, code, how, way string) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "pid")
	in := pythonInput(code, map[string]any{"path": path, "way": way, "how": how})(t)

	if way == "time is up" {
		in.TimeoutSeconds = 5
	}

	_, err := tooltest.Call(t, pythonCatalogue(t), "python", "python", in)

	switch way {
	case "time is up":
		require.Equal(t, interpreter.KindTimeout, tooltest.ErrorObject(t, err).Kind)
	case "main is killed":
		require.Contains(t, tooltest.ErrorObject(t, err).Message, "signal: killed")
	default:
		require.NoError(t, err)
	}

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	pid, err := strconv.Atoi(string(content))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !running(pid) }, testenv.Within(10*time.Second), 10*time.Millisecond)
}

// Code that writes wherever it can is not taken for what main returns, and what
// main returns twice is not taken at all.
func TestPythonReportIsNotForged(t *testing.T) {
	t.Parallel()

	const everywhere = `
import os
def main(end):
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2:
            try:
                os.write(fd, b'{"result": "forged"}\n')
            except OSError:
                pass
    if end:
        os._exit(0)
    return "real"
`

	const says = "something other than main wrote to the stream of its result, or main returned twice"

	for _, end := range []bool{true, false} {
		_, err := callPython(t, everywhere, map[string]any{"end": end})
		object := tooltest.ErrorObject(t, err)

		require.EqualValues(t, "final", object.Class)
		require.Contains(t, object.Message, says)
	}

	_, err := callPython(t, `
import os
def main():
    if os.fork() != 0:
        os.wait()
    return os.getpid()
`, nil)
	require.Contains(t, tooltest.ErrorObject(t, err).Message, says)

	result, err := callPython(t, "import __main__\ndef main(): return [n for n in dir(__main__) if n in ('report', 'CHANNEL', 'given')]", nil)
	require.NoError(t, err)
	require.Empty(t, result.Data.Data)
}

// running reports whether a process is there and no zombie.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}

	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}

	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
