package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/internal/observe/ending"
	"reprise/interpreter"
)

// runPatience is how long a run may be open. The longest one takes seconds, and a queued one waits for those before it.
const runPatience = 10 * time.Minute

// load starts runs, answers what they ask, and has the oracle look at each that has ended.
type load struct {
	world  *world
	oracle *oracle
	kills  func() []time.Time

	running sync.WaitGroup
	mu      sync.Mutex
	open    map[int]time.Time // runs that have not ended, and when they began
	started int
}

// start starts a run of the next kind, and returns when it has ended and was looked at.
func (l *load) start(ctx context.Context) {
	l.mu.Lock()
	l.started++
	number := l.started
	l.open[number] = time.Now()
	l.mu.Unlock()
	all := kinds()
	k := all[number%len(all)]
	l.running.Go(func() {
		err := l.follow(ctx, k, number)
		l.mu.Lock()
		delete(l.open, number)
		l.mu.Unlock()
		l.oracle.judge(ctx, l.world.database.URL, k, number, err, l.kills())
	})
}

// follow starts a run and waits for its end.
func (l *load) follow(ctx context.Context, k kind, number int) error {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	id, err := l.begin(ctx, k.name, number)
	if err != nil {
		return err
	}
	if k.asks {
		if err := l.approve(ctx, id, time.Duration(1+number%3)*time.Second); err != nil {
			return err
		}
	}
	return awaitRun(ctx, l.world.client, id)
}

// errFailed is a run that has ended without doing its work.
var errFailed = errors.New("not completed")

// awaitRun returns an error unless a run completes.
func awaitRun(ctx context.Context, c client.Client, id string) error {
	result, err := ending.WaitForResult(ctx, c.GetWorkflow(ctx, id, ""))
	for connect.IsUnreachable(err) && sleep.For(ctx, time.Second) == nil { // a busy machine
		result, err = ending.WaitForResult(ctx, c.GetWorkflow(ctx, id, ""))
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: run %s", errStuck, id)
	case err != nil:
		return err
	case result.Status != interpreter.Completed:
		var why string
		if result.Error != nil {
			why = result.Error.Message
		}
		return fmt.Errorf("%w: run %s has ended as %s: %s", errFailed, id, result.Status, why)
	}
	return nil
}

// begin starts a run over HTTP, and returns its workflow ID. It repeats a request that failed, which starts no second run.
func (l *load) begin(ctx context.Context, name string, number int) (string, error) {
	body := map[string]any{"api": l.world.api.url, "number": number}
	for {
		status, text, err := l.world.post(ctx, "/v1/playbooks/"+name+"/runs", name+strconv.Itoa(number), body)
		if err == nil && status == http.StatusAccepted {
			return workflowIDOf(text)
		}
		if err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
			return "", fmt.Errorf("start %s: HTTP %d: %s", name, status, text)
		}
		if sleep.For(ctx, time.Second) != nil {
			return "", fmt.Errorf("start %s: HTTP %d: %s: %w", name, status, text, err)
		}
	}
}

// workflowIDOf reads the workflow ID of a response.
func workflowIDOf(text []byte) (string, error) {
	var made struct {
		WorkflowID string `json:"workflow_id"`
	}
	if err := json.Unmarshal(text, &made); err != nil || made.WorkflowID == "" {
		return "", fmt.Errorf("start a run: unexpected response %s", text)
	}
	return made.WorkflowID, nil
}

// approve answers the approval of a run, once it asks.
func (l *load) approve(ctx context.Context, id string, after time.Duration) error {
	for {
		if sleep.For(ctx, after) != nil {
			return fmt.Errorf("%w: run %s asks nobody", errStuck, id)
		}
		status, text, err := l.world.post(ctx, "/v1/runs/"+id+"/answer", "", map[string]any{"option": "approve"})
		switch {
		case err == nil && status == http.StatusAccepted:
			return nil
		case err == nil && status == http.StatusUnprocessableEntity, err == nil && status == http.StatusUnauthorized:
			return fmt.Errorf("approve run %s: HTTP %d: %s", id, status, text)
		}
	}
}

// post sends a request to serve.
func (w *world) post(ctx context.Context, path, key string, body any) (status int, text []byte, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, nil, fmt.Errorf("send a request to serve: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.serveURL+path, bytes.NewReader(data))
	if err != nil {
		return 0, nil, fmt.Errorf("send a request to serve: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+w.token)
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("send a request to serve: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err = io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

// counts returns how many runs were started, and how many are open.
func (l *load) counts() (started, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started, len(l.open)
}
