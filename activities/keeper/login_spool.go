package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/connect"
	"reprise/internal/base/sleep"
	"reprise/interpreter/login"
)

// TokenSpool keeps the tokens of exchanges until the workflow of their login has them: in a folder, where they outlive the
// worker, or in its memory, where they outlive a server that is away. They are sealed. It is safe for concurrent use.
type TokenSpool struct {
	// Directory is the folder; "" is memory alone.
	Directory string
	Logger    *slog.Logger

	mu     sync.Mutex // of the files
	failed sync.Map   // names of files that were logged
}

// spooledTokens is the content of a file of a spool.
type spooledTokens struct {
	Namespace  string                `json:"namespace"`
	Connection string                `json:"connection"`
	Outcome    login.ExchangeOutcome `json:"outcome"`
}

const (
	spoolSuffix = ".tokens.json"
	// firstReport is how long the activity has to report its outcome itself, and reportPause the wait between two
	// reports.
	firstReport = 2 * time.Second
	reportPause = 2 * time.Second
	// reportTimeout bounds one report, and reportPatience all of those for one exchange. By then a workflow has long made another.
	reportTimeout  = 10 * time.Second
	reportPatience = 15 * time.Minute
)

// fileName returns the name of the file with the tokens of one exchange.
func (s spooledTokens) fileName() string {
	sum := sha256.Sum256([]byte(s.Namespace + "\x00" + s.Connection))
	return fmt.Sprintf("%s-%d%s", hex.EncodeToString(sum[:digestBytes]), s.Outcome.Number, spoolSuffix)
}

// addTokens keeps tokens, and reports them unless their activity does.
func (s *TokenSpool) addTokens(ctx context.Context, tokens spooledTokens) error {
	err := s.writeFile(tokens)
	c, detached := activity.GetClient(ctx), context.WithoutCancel(ctx)
	go func() {
		bounded, cancel := context.WithTimeout(detached, reportPatience)
		defer cancel()
		if sleep.For(bounded, firstReport) == nil {
			s.reportTokens(bounded, c, tokens)
		}
	}()
	return err
}

// writeFile writes the file of tokens so that it outlives the machine.
func (s *TokenSpool) writeFile(tokens spooledTokens) error {
	if s.Directory == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := json.Marshal(tokens)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(s.Directory, "new-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(file.Name(), filepath.Join(s.Directory, tokens.fileName()))
	}
	if err != nil {
		_ = os.Remove(file.Name())
		return err
	}
	return syncFolder(s.Directory)
}

// syncFolder makes the names of a folder's files durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// reportTokens reports tokens until their workflow has them, or newer ones.
func (s *TokenSpool) reportTokens(ctx context.Context, c client.Client, tokens spooledTokens) {
	for {
		err := s.reportOnce(ctx, c, tokens)
		if err == nil {
			if s.Directory != "" {
				_ = os.Remove(filepath.Join(s.Directory, tokens.fileName())) // else it is reported again
			}
			return
		}
		if _, logged := s.failed.LoadOrStore(tokens.fileName(), true); !logged {
			s.Logger.Warn("the tokens of an exchange were not reported to the workflow of their login yet", "connection", tokens.Connection, "error", err)
		}
		if sleep.For(ctx, reportPause) != nil {
			return
		}
	}
}

// reportOnce sends an update only if the workflow does not have the tokens yet, which is rare.
func (s *TokenSpool) reportOnce(ctx context.Context, c client.Client, tokens spooledTokens) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	id := login.WorkflowID(tokens.Connection)
	var status login.TokenStatus
	answer, err := c.QueryWorkflow(ctx, id, "", login.StatusQuery)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil || status.Generation >= tokens.Outcome.Number {
		return err
	}
	return connect.SendUpdate(ctx, c, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: login.SpooledUpdate, Args: []any{tokens.Outcome},
	}, nil)
}

// RecoverTokens reports what an earlier worker of the namespace has left in the spool, until ctx ends. The error says that
// the spool cannot be read.
func (s *TokenSpool) RecoverTokens(ctx context.Context, c client.Client, namespace string) error {
	if s.Directory == "" {
		return nil
	}
	entries, err := os.ReadDir(s.Directory)
	if err != nil {
		return fmt.Errorf("read the token spool: %w", err)
	}
	for _, entry := range entries {
		if matched, _ := filepath.Match("*"+spoolSuffix, entry.Name()); !matched {
			continue
		}
		var tokens spooledTokens
		data, err := os.ReadFile(filepath.Join(s.Directory, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another worker has reported it
		}
		if err == nil {
			err = json.Unmarshal(data, &tokens)
		}
		if err != nil || tokens.Outcome.Check() != nil {
			s.Logger.Error("a file of the token spool cannot be read", "file", entry.Name(), "error", err)
			continue
		}
		if tokens.Namespace == namespace {
			go s.reportTokens(ctx, c, tokens)
		}
	}
	return nil
}
