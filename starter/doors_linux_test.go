package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"reprise/internal/base/exitcode"
	"reprise/internal/test/testenv"
	"reprise/starter/session"
)

// household is a folder of this user, in which programs run with a umask that takes no right from anybody.
type household struct {
	t       *testing.T
	folder  string
	mark    string
	ours    map[string]bool // files and folders that the test has made
	running []*inhabitant
}

// inhabitant is a program that runs there.
type inhabitant struct {
	name string
	cmd  *exec.Cmd
	out  string // file of what it prints
	in   io.WriteCloser
}

func newHousehold(t *testing.T) *household {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(folder), 0o755)) //nolint:gosec // others come in here
	h := &household{t: t, folder: folder, mark: fmt.Sprintf("%s-%d", t.Name(), time.Now().UnixNano()), ours: map[string]bool{}}
	t.Cleanup(func() {
		for _, one := range h.running {
			_ = one.cmd.Process.Kill()
			_ = testenv.WaitResult(t, one.cmd.Wait, one.name)
		}
	})
	return h
}

// write makes a file, and the folders on the way, that everybody may read.
func (h *household) write(name, text string) {
	h.t.Helper()
	path := filepath.Join(h.folder, name)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o755))  //nolint:gosec // others may look
	require.NoError(h.t, os.WriteFile(path, []byte(text), 0o644)) //nolint:gosec // others may read
	for ; path != h.folder; path = filepath.Dir(path) {
		h.ours[path] = true
	}
}

// command is a command of the starter in a folder below.
func (h *household) command(within string, args ...string) *exec.Cmd {
	h.t.Helper()
	starter, err := exec.LookPath("starter")
	require.NoError(h.t, err)
	cmd := exec.Command("sh", append([]string{"-c", `umask 000; exec "$0" "$@"`, starter}, args...)...)
	cmd.Dir = filepath.Join(h.folder, within)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.folder, "TMPDIR=" + filepath.Join(h.folder, "tmp"), runVariable + "=" + h.mark, localServer(h.t),
	}
	return cmd
}

// start starts a command, and waits until it has printed a pattern.
func (h *household) start(within, pattern string, args ...string) (*inhabitant, []string) {
	h.t.Helper()
	name := fmt.Sprintf("%s%d", args[0], len(h.running))
	h.write("printed/"+name, "")
	one := &inhabitant{name: name, cmd: h.command(within, args...), out: filepath.Join(h.folder, "printed", name)}
	out, err := os.OpenFile(one.out, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(h.t, err)
	defer out.Close()
	one.cmd.Stdout, one.cmd.Stderr = out, out
	one.in, err = one.cmd.StdinPipe()
	require.NoError(h.t, err)
	require.NoError(h.t, one.cmd.Start())
	h.running = append(h.running, one)
	found := []string(nil)
	require.Eventually(h.t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(one.printed())
		return found != nil
	}, patience, 20*time.Millisecond, "%s prints no %s", name, pattern)
	return one, found
}

func (i *inhabitant) printed() string {
	text, _ := os.ReadFile(i.out)
	return string(text)
}

// does runs a command to its end.
func (h *household) does(exit int, args ...string) {
	h.t.Helper()
	cmd := h.command("", args...)
	text, err := cmd.CombinedOutput()
	ended, failed := errors.AsType[*exec.ExitError](err)
	require.True(h.t, err == nil || failed, "%v", err)
	if failed {
		require.Equal(h.t, exit, ended.ExitCode(), "%v: %s", args, text)
	} else {
		require.Equal(h.t, exit, 0, "%v: %s", args, text)
	}
}

// asNobody does something with the rights of another user. The thread that has become that user ends with it.
func asNobody(do func()) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread()
		const nobody = 65534
		for _, call := range [][4]uintptr{
			{syscall.SYS_SETGROUPS, 0, 0, 0}, {syscall.SYS_SETRESGID, nobody, nobody, nobody}, {syscall.SYS_SETRESUID, nobody, nobody, nobody},
		} {
			if _, _, failed := syscall.RawSyscall(call[0], call[1], call[2], call[3]); failed != 0 {
				ended <- failed
				return
			}
		}
		do()
		ended <- nil
	}()
	return <-ended
}

// listeners are the TCP addresses and the sockets at which a process takes connections.
func listeners(t *testing.T, pid int) (addresses, sockets []string) {
	t.Helper()
	mine := map[string]bool{}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, file := range files {
		if target, err := os.Readlink(file); err == nil {
			mine[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	lines := func(table string, each func(fields []string)) {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table)) // none where the process has ended
		for line := range strings.Lines(string(text)) {
			each(strings.Fields(line))
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		lines(table, func(fields []string) {
			const listens = "0A"
			if len(fields) < 10 || fields[3] != listens || !mine[fields[9]] {
				return
			}
			_, hex, _ := strings.Cut(fields[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			addresses = append(addresses, "127.0.0.1:"+strconv.FormatUint(port, 10))
		})
	}
	lines("udp", func(fields []string) {
		if len(fields) >= 10 && mine[fields[9]] {
			require.NotRegexp(t, ":0000$", fields[2], "process %d takes packets", pid)
		}
	})
	lines("unix", func(fields []string) {
		const accepting = "00010000"
		if len(fields) == 8 && fields[3] == accepting && mine[fields[6]] {
			sockets = append(sockets, fields[7])
		}
	})
	return addresses, sockets
}

// answerOf is the answer of a port to one request.
func answerOf(address, method, path, body string, headers ...string) (code int, text string, err error) {
	conn, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	lines := append([]string{
		method + " " + path + " HTTP/1.1", "Host: " + address, "Connection: close", "Content-Type: application/json", "Content-Length: " + strconv.Itoa(len(body)),
	}, headers...)
	if _, err := io.WriteString(conn, strings.Join(lines, "\r\n")+"\r\n\r\n"+body); err != nil {
		return 0, "", err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(all), err
}

// wishes are what another user may ask of a port.
var wishes = [][3]string{
	{"GET", "/", ""},
	{"GET", "/runs/work", ""},
	{"GET", "/inbox", ""},
	{"GET", "/playbooks", ""},
	{"GET", "/api/v1/namespaces", ""},
	{"GET", "/api/v1/namespaces/default/workflows", ""},
	{"POST", "/api/v1/namespaces/default/workflows/stranger", `{"workflowType": {"name": "PlaybookWorkflow"}, "taskQueue": {"name": "reprise"}}`},
	{"GET", "/temporal/", ""},
	{"GET", "/temporal/api/v1/namespaces/default/workflows", ""},
	{"POST", "/temporal/api/v1/namespaces/default/workflows/stranger", `{"workflowType": {"name": "PlaybookWorkflow"}, "taskQueue": {"name": "reprise"}}`},
	{"POST", "/runs/work/do", "command=cancel"},
	{"GET", "/metrics", ""},
	{"GET", "/debug/pprof/", ""},
}

// calls asks a port by gRPC, with TLS or without, and gives what came of it.
func calls(t *testing.T, address string, transport credentials.TransportCredentials) map[string]error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(transport))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	service := workflowservice.NewWorkflowServiceClient(conn)
	_, listed := service.ListNamespaces(ctx, &workflowservice.ListNamespacesRequest{})
	_, started := service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{Namespace: "default", WorkflowId: "stranger"})
	all := map[string]error{"list": listed, "start": started}
	for _, method := range []string{
		"historyservice.v1.HistoryService/DescribeHistoryHost", "matchingservice.v1.MatchingService/PollWorkflowTaskQueue", "adminservice.v1.AdminService/DescribeCluster",
	} {
		all[method] = conn.Invoke(ctx, "/temporal.server.api."+method, &emptypb.Empty{}, &emptypb.Empty{})
	}
	return all
}

// work leaves files of each kind: a history, a log, a large value beside it, a state, a database.
const work = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: work}
workflow:
  - step: large
    tool: python
    code: |
      def main():
          print("a record of the log")
          return [{"id": i, "text": "x" * 3000} for i in range(100)]
    sink: {tool: sqlite, path: rows/rows.db, table: rows, mode: insert, schema_contract: evolve}
    next: exported
  - step: exported
    tool: python
    code: |
      def main():
          return [{"id": 1}]
    sink: {tool: file, path: made/rows.csv, format: csv}
`

const waits = `apiVersion: reprise/v1
kind: Playbook
metadata: {name: waits}
workflow:
  - step: ask
    tool: approval
    message: Go on?
`

// TestAnotherUser: what starter dev, ui, run, serve, docs, mcp and lsp open is closed to another user of the machine: ports, sockets
// and files, whatever the umask is. Links and keys of this user work.
func TestAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	t.Parallel()
	h := newHousehold(t)
	h.write("tmp/kept", "")
	h.write("work.yaml", work)
	h.write("alone/waits.yaml", waits)
	h.write("books/waits.yaml", waits)
	h.write("callers.yaml", "ci: {sha256: \""+strings.Repeat("ab", 32)+"\", playbooks: [\"*\"]}\n")
	require.NoError(t, os.Chmod(filepath.Join(h.folder, "callers.yaml"), 0o600))

	_, dev := h.start("", `Runs:\s+(\S+)\n(?s:.*)Ctrl-C stops it`, "dev", "--port", "0", "--ui-port", "0", "--page-port", "0", "--db-filename", "state/temporal.db")
	h.does(exitcode.OK, "run", "work.yaml", "--workflow-id", "work")
	h.does(exitcode.OK, "report", "work", "--output", "report.html")
	h.does(exitcode.OK, "try", "work.yaml", "--step", "large", "--allow-writes", "--record", "recorded.json")
	h.start("", `Runs:\s+(\S+)\n`, "ui", "--listen", "127.0.0.1:0")
	_, reader := h.start("", `Runs:\s+(\S+)\n`, "ui", "--listen", "127.0.0.1:0", "--read-only")
	h.start("", `"msg":"serving","url":"http://([^"]+)"`, "serve", "--listen", "127.0.0.1:0", "--playbooks", "books", "--tokens", "callers.yaml")
	_, docs := h.start("", `Documents: http://([^/]+)/`, "docs", "--listen", "127.0.0.1:0")
	_, alone := h.start("alone", `runs: (http\S+)\n`, "run", "waits.yaml")
	mcp, _ := h.start("", ``, "mcp")
	lsp, _ := h.start("", ``, "lsp")

	var addresses, sockets []string
	for _, pid := range testenv.ProcessesWith(t, runVariable+"="+h.mark) {
		ports, paths := listeners(t, pid)
		if pid == mcp.cmd.Process.Pid || pid == lsp.cmd.Process.Pid {
			require.Empty(t, slices.Concat(ports, paths), "they speak with whoever has started them")
		}
		addresses, sockets = append(addresses, ports...), append(sockets, paths...)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	// Two servers with five ports each, answers and a page beside each, two pages, serve and docs.
	require.Len(t, addresses, 2*5+2*2+2+2, "%v", addresses)
	require.Len(t, sockets, 2)

	for _, link := range []string{dev[1], reader[1], alone[1]} { // this user comes in
		at, err := url.Parse(link)
		require.NoError(t, err)
		base, key, port := at.Host, at.Query().Get("key"), at.Port()
		cookie := "Cookie: reprise_" + port + "=" + key
		code, _, err := answerOf(base, "GET", "/", "", cookie)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
		want := http.StatusOK
		if link == reader[1] { // who may only look gets nothing that writes
			want = http.StatusForbidden
		}
		for _, path := range []string{"/temporal/", "/temporal/api/v1/namespaces/default/workflows"} {
			code, text, err := answerOf(base, "GET", path, "", cookie)
			require.NoError(t, err)
			require.Equal(t, want, code, "%s: %s", path, text)
		}
		if link == reader[1] {
			for _, wish := range wishes {
				if wish[0] == "POST" {
					code, text, err := answerOf(base, wish[0], wish[1], wish[2], cookie)
					require.NoError(t, err)
					require.GreaterOrEqual(t, code, http.StatusBadRequest, "%v: %s", wish, text)
				}
			}
		}
	}

	var passed []string
	notef := func(format string, args ...any) { passed = append(passed, fmt.Sprintf(format, args...)) }
	require.NoError(t, asNobody(func() {
		for _, address := range addresses {
			for _, wish := range wishes {
				code, text, err := answerOf(address, wish[0], wish[1], wish[2])
				if err == nil && code < http.StatusBadRequest && address != docs[1] { // documents are for everybody
					notef("%s answers %v: %d %s", address, wish, code, text)
				}
			}
		}
		for _, socket := range sockets {
			if conn, err := net.Dial("unix", socket); err == nil || !errors.Is(err, fs.ErrPermission) {
				notef("the socket %s: %v, %v", socket, conn, err)
			}
		}
		passed = append(passed, h.intrudes()...)
	}))
	require.Empty(t, passed)
	for _, address := range addresses { // TCP does not know who calls
		for name, transport := range map[string]credentials.TransportCredentials{
			"plain": insecure.NewCredentials(), "TLS": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), //nolint:gosec // that is what others can do
		} {
			for method, err := range calls(t, address, transport) {
				require.Contains(t, []codes.Code{codes.Unavailable, codes.PermissionDenied, codes.Unimplemented, codes.Unauthenticated, codes.Unknown}, status.Code(err), "%s %s of %s: %v", name, method, address, err)
				require.NotContains(t, err.Error(), "DeadlineExceeded", "%s %s of %s", name, method, address)
			}
		}
	}
	h.tellsNoKey()

	for _, one := range h.running {
		require.NoError(t, one.cmd.Process.Signal(syscall.SIGTERM))
	}
	for _, one := range h.running {
		_ = testenv.WaitResult(t, one.cmd.Wait, "the end of "+one.name)
	}
	left, err := os.ReadDir(filepath.Join(h.folder, "tmp"))
	require.NoError(t, err)
	require.Len(t, left, 1, "only what was there before: %v", left)
	h.running = nil
	passed = nil
	require.NoError(t, asNobody(func() { passed = h.intrudes() }))
	require.Empty(t, passed, "what is left when all have ended")
}

// given are what playbooks make for others: they may be read, and not written.
var given = map[string]bool{"made": true, "made/rows.csv": true}

// intrudes tries to read, list and write what programs have made in the folder, and gives what went well.
func (h *household) intrudes() (passed []string) {
	seen := 0
	_ = filepath.WalkDir(h.folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(h.folder, path)
		if err != nil { // it cannot be listed
			if !errors.Is(err, fs.ErrPermission) {
				passed = append(passed, name+": "+err.Error())
			}
			return fs.SkipDir
		}
		if path == h.folder || h.ours[path] {
			return nil
		}
		seen++
		if entry.IsDir() {
			if made, err := os.CreateTemp(path, "intruder"); err == nil {
				passed = append(passed, "write into "+made.Name())
			}
			if !given[name] {
				if listed, err := os.ReadDir(path); err == nil {
					passed = append(passed, fmt.Sprintf("list %s: %v", name, listed))
				}
			}
			return nil
		}
		for verb, access := range map[string]int{"read": os.O_RDONLY, "write": os.O_WRONLY} {
			if file, err := os.OpenFile(path, access, 0); err == nil && (verb != "read" || !given[name]) {
				info, _ := file.Stat()
				passed = append(passed, fmt.Sprintf("%s %s, %s", verb, name, info.Mode()))
				_ = file.Close()
			}
		}
		return nil
	})
	if seen < 5 {
		passed = append(passed, fmt.Sprintf("only %d files were made", seen))
	}
	return passed
}

// tellsNoKey looks for keys in what everybody may read of processes.
func (h *household) tellsNoKey() {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.folder, session.StatePath()))
	require.NoError(h.t, err)
	var state session.DevState
	require.NoError(h.t, json.Unmarshal(text, &state))
	require.NotEmpty(h.t, state.Key)
	for _, pid := range testenv.ProcessesWith(h.t, runVariable+"="+h.mark) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		require.NoError(h.t, err)
		require.NotContains(h.t, string(line), state.Key)
		require.NoError(h.t, asNobody(func() { _, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) }))
		require.ErrorIs(h.t, err, fs.ErrPermission)
	}
}

// TestModesOfFiles: what programs write is for this user alone, whatever the umask is. It looks at the modes, so that it
// needs no other user.
func TestModesOfFiles(t *testing.T) {
	t.Parallel()
	h := newHousehold(t)
	h.write("tmp/kept", "")
	h.write("work.yaml", work)
	h.write("store/kept", "")
	_, _ = h.start("", `Ctrl-C stops it`, "dev", "--port", "0", "--ui-port", "0", "--page-port", "0", "--db-filename", "fresh/deep/temporal.db", "--payload-store", "file://"+filepath.Join(h.folder, "store/below"))
	h.does(exitcode.OK, "run", "work.yaml", "--workflow-id", "work")
	h.does(exitcode.OK, "report", "work", "--output", "report.html")
	h.does(exitcode.OK, "try", "work.yaml", "--step", "large", "--allow-writes", "--record", "recorded.json")
	made := map[string]fs.FileMode{}
	require.NoError(t, filepath.WalkDir(h.folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == h.folder || h.ours[path] {
			return err
		}
		name, _ := filepath.Rel(h.folder, path)
		info, err := os.Lstat(path)
		require.NoError(t, err)
		made[name] = info.Mode()
		const others, writable = 0o077, 0o022
		closed := fs.FileMode(others)
		if given[name] {
			closed = writable
		}
		require.Zero(t, info.Mode().Perm()&closed, "%s has mode %v", name, info.Mode())
		require.EqualValues(t, os.Geteuid(), info.Sys().(*syscall.Stat_t).Uid, name)
		return nil
	}))
	for _, name := range []string{
		".reprise/dev.json", ".reprise/worker.log", "fresh/deep/temporal.db", "fresh/deep/temporal.db.key", "fresh/deep/temporal.db.secret-key", "fresh/deep/temporal.db.callback-port",
		"fresh/deep/temporal.db-wal", "rows/rows.db", "made/rows.csv.reprise", "report.html", "recorded.json", "store/below",
	} {
		require.Contains(t, made, name)
	}
}
