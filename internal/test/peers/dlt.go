package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

//go:embed load.py
var loadWithDLT string

// findDLT returns a Python interpreter that has dlt installed.
func findDLT(ctx context.Context) (python string, err error) {
	if python, err = exec.LookPath("python3"); err != nil {
		return "", fmt.Errorf("find python3: %w", err)
	}
	if err := exec.CommandContext(ctx, python, "-c", "import dlt, psycopg2").Run(); err != nil {
		return "", fmt.Errorf("python3 does not have it (pip install 'dlt[postgres]'): %w", err)
	}
	return python, nil
}

// dltWay is a pipeline with dlt's rest_api source.
type dltWay struct{ python string }

func (dltWay) name() string { return "dlt" }

func (dltWay) prepare(_ context.Context, w *world, _ job) (*processes, error) {
	if err := os.WriteFile(filepath.Join(w.directory, "load.py"), []byte(loadWithDLT), 0o600); err != nil {
		return nil, fmt.Errorf("write the pipeline: %w", err)
	}
	return &processes{}, nil
}

func (d dltWay) load(ctx context.Context, w *world, j job, of *processes) error {
	env := []string{"DESTINATION__POSTGRES__CREDENTIALS=" + w.database.URL, "RUNTIME__DLTHUB_TELEMETRY=false"}
	return of.runCommand(ctx, w.directory, env, d.python, "load.py", w.api.url, strconv.Itoa(j.elements), strconv.Itoa(j.pages))
}
