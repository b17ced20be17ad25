package host

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"reprise/activities/tool"
	"reprise/interpreter"
	"reprise/interpreter/lists"
)

// SealTexts returns a code, in hex, for some texts that can only be made with the key. The same characters split
// differently have another code.
func SealTexts(key string, texts ...string) string {
	mac := hmac.New(sha256.New, []byte(key))
	for _, text := range texts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(text), text) // a hash takes everything
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// CodeMemo is the member of a run's memo that says which code its starter vouches for: a Code, kept in workflow
// history.
const CodeMemo = "reprise_code"

// Code lists the code of a run's playbook that its starter has read. It is valid for one workflow ID, so that copying
// it is useless.
type Code struct {
	Hashes []string `json:"hashes"` // SHA-256 of each, hex
	Seal   string   `json:"seal"`
	// Base is the workflow ID of a schedule's actions, to which the server appends the time; "" for other runs.
	Base string `json:"base,omitempty"`
}

// VouchMemo returns the memo of a run whose starter has the key of the local workers.
func VouchMemo(key, workflowID string, codes []string) map[string]any {
	hashes := hashesOf(codes)
	return map[string]any{CodeMemo: Code{Hashes: hashes, Seal: sealOf(key, "code", workflowID, hashes)}}
}

// VouchSchedule returns the memo of the runs of a schedule with the given workflow ID. It is valid for all of them:
// for the ID followed by a time.
func VouchSchedule(key, base string, codes []string) map[string]any {
	hashes := hashesOf(codes)
	return map[string]any{CodeMemo: Code{Hashes: hashes, Seal: sealOf(key, "code of schedule", base, hashes), Base: base}}
}

func hashesOf(codes []string) []string {
	return lists.Map(codes, hashOf)
}

func sealOf(key, what, id string, hashes []string) string {
	return SealTexts(key, append([]string{what, id}, hashes...)...)
}

func hashOf(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// maxKnownRuns bounds the runs that a Guard remembers; a worker meets any number of them.
const maxKnownRuns = 1000

// Guard checks, for a local worker, whether code comes from a starter that has the worker's key. Other clients of the
// server, such as a web page, may start runs, but their code is not run. It is safe for concurrent use.
type Guard struct {
	client client.Client
	key    string

	mu    sync.Mutex
	known map[string][]string // hashes by run ID
}

// NewGuard returns the guard of a worker.
func NewGuard(c client.Client, key string) *Guard {
	return &Guard{client: c, key: key, known: map[string][]string{}}
}

// CheckCode refuses code that no starter vouches for. It is called in the activity that would run the code.
func (g *Guard) CheckCode(ctx context.Context, code string) error {
	hashes, err := g.allowedHashes(ctx, activity.GetInfo(ctx).WorkflowExecution)
	if err != nil {
		return &tool.Error{
			Kind: interpreter.KindConnection, Message: fmt.Sprintf("ask the server who started the run: %v", err), Err: err,
		}
	}
	if slices.Contains(hashes, hashOf(code)) {
		return nil
	}
	return &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassFinal, Final: true,
		Message: "this local worker runs Python only of runs that were begun by its own starter, or by one in the directory of its " +
			"starter dev; begin the run there, or give starter --allow-python, which allows the code of everybody who reaches the server",
	}
}

// allowedHashes returns the hashes of the code that an execution may run, from the memo at the root of its tree of
// runs.
func (g *Guard) allowedHashes(ctx context.Context, of workflow.Execution) ([]string, error) {
	if of.ID == "" {
		return nil, nil // an activity that a client started by itself
	}
	g.mu.Lock()
	hashes, ok := g.known[of.RunID]
	g.mu.Unlock()
	if ok {
		return hashes, nil
	}
	root, err := g.describeExecution(ctx, of.ID, of.RunID)
	if err != nil {
		return nil, err
	}
	if above := root.root; above.GetRunId() != "" && above.GetRunId() != of.RunID {
		if root, err = g.describeExecution(ctx, above.GetWorkflowId(), above.GetRunId()); err != nil {
			return nil, err
		}
	}
	hashes = root.vouchedHashes(g.key)
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxKnownRuns {
		clear(g.known)
	}
	g.known[of.RunID] = hashes
	return hashes, nil
}

// executionInfo is the server's description of an execution.
type executionInfo struct {
	workflowID string
	root       *commonpb.WorkflowExecution
	memo       *commonpb.Memo
}

func (g *Guard) describeExecution(ctx context.Context, workflowID, runID string) (executionInfo, error) {
	answer, err := g.client.DescribeWorkflowExecution(ctx, workflowID, runID)
	if err != nil {
		return executionInfo{}, err
	}
	info := answer.GetWorkflowExecutionInfo()
	return executionInfo{workflowID: info.GetExecution().GetWorkflowId(), root: info.GetRootExecution(), memo: info.GetMemo()}, nil
}

// vouchedHashes returns the hashes in the memo if they are sealed with the key.
func (d executionInfo) vouchedHashes(key string) []string {
	var code Code
	payload := d.memo.GetFields()[CodeMemo]
	if payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &code) != nil {
		return nil
	}
	what, id := "code", d.workflowID
	if code.Base != "" {
		if what, id = "code of schedule", code.Base; !isScheduled(d.workflowID, code.Base) {
			return nil
		}
	}
	if !hmac.Equal([]byte(code.Seal), []byte(sealOf(key, what, id, code.Hashes))) {
		return nil
	}
	return code.Hashes
}

// isScheduled reports whether a workflow ID was made by a schedule's action, to which the
// server adds the time.
func isScheduled(workflowID, base string) bool {
	at, found := strings.CutPrefix(workflowID, base+"-")
	_, err := time.Parse(time.RFC3339, at)
	return found && err == nil
}

// IsVouched reports whether a starter with the key vouches for all the code of a run, or the run has none.
func IsVouched(ctx context.Context, c client.Client, key, workflowID, runID string, codes []string) (bool, error) {
	g := NewGuard(c, key)
	run, err := g.describeExecution(ctx, workflowID, runID)
	if err != nil {
		return false, err
	}
	if above := run.root; above.GetRunId() != "" && above.GetRunId() != runID {
		if run, err = g.describeExecution(ctx, above.GetWorkflowId(), above.GetRunId()); err != nil {
			return false, err
		}
	}
	hashes := run.vouchedHashes(key)
	return !slices.ContainsFunc(codes, func(code string) bool { return !slices.Contains(hashes, hashOf(code)) }), nil
}
