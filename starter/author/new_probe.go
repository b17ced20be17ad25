package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"reprise/activities/http"
	"reprise/activities/tool"
	"reprise/internal/program/scaffold"
	"reprise/interpreter"
	"reprise/interpreter/expression"
	"reprise/starter/cli"
)

// Limits of a probe.
const (
	probeTimeout = 30 * time.Second
	// mostProbed bounds how many bytes of the response a probe reads. It needs only some rows, and the API may send
	// any number.
	mostProbed = 16 << 20
)

// probeRequest sends the request of a curl command line once, as tool http would, and completes the description of
// the API from the response.
func probeRequest(a *cli.App, line string, described *scaffold.Description) error {
	probe, err := scaffold.ProbeOf(line, os.LookupEnv)
	if err != nil {
		return cli.UsageError("--probe: %w", err)
	}
	_, _ = fmt.Fprintf(a.Err, "sending %s once\n", probe)
	ctx, cancel := context.WithTimeout(a.Interrupts.Graceful, probeTimeout)
	defer cancel()
	client := http.New(tool.Resources{MaxResponseBytes: mostProbed, MaxPayload: mostProbed, MemoryBytes: 4 * mostProbed, Secrets: probe.Secrets()}, nil)
	defer func() { _ = client.Close() }()
	answer, err := client.Run(ctx, interpreter.ToolInput{Tool: "http", Step: "probe", Fields: map[string]expression.Value{
		"url": expression.Of(probe.URL), "params": expression.Of(probe.Params), "headers": expression.Of(probe.Headers),
	}})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("--probe: no response within %s", probeTimeout)
	case err != nil:
		return fmt.Errorf("--probe: %s", probe.Secrets().MaskText(err.Error()))
	}
	switch answer.Data.Data.(type) {
	case map[string]any, []any:
		described.ApplyProbe(probe, answer.Data.Data, answer.Meta.Links["next"] != "")
		return nil
	}
	return errors.New("--probe: the response is not JSON with rows, so it does not show how the API paginates")
}
